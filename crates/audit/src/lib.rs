//! What happened at the gate, one line per event.
