//! Decisions, explanations and listings of ABAC, against a naive implementation and by hand.

mod agreement;
#[cfg(test)]
mod explanation;
