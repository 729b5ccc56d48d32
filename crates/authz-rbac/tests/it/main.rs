//! Decisions of the index, beside those of the plainest implementation there could be.

mod agreement;
mod coverage;
mod decisions;
mod escalation;
mod explain;
