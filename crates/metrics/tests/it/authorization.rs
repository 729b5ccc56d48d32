//! The metrics of authorization.

mod cost;
pub(crate) mod everything;
mod series;
