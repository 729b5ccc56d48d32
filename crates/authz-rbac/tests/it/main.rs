//! Decisions of the index, compared with those of the reference implementation.

mod agreement;
mod coverage;
#[cfg(test)]
mod decision_table;
mod decisions;
mod escalation;
mod explain;
