//! Decisions, explanations and listings of ABAC, compared with the reference implementation and with tables.

mod agreement;
#[cfg(test)]
mod decisions;
#[cfg(test)]
mod explanation;
