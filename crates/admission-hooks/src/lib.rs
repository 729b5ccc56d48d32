//! Asking the hooks of dynamic admission about a write.
//!
//! Owns: reviews on the wire, the order of calls, patches, failure policies, deadlines.
//! Must not know: how configurations are stored and followed, HTTP routing, files.
