//! Decisions of the index, compared with those of the reference implementation.

mod agreement;
mod coverage;
mod decisions;
mod escalation;
mod explain;
