//! The metrics of dynamic admission.

pub(crate) mod everything;
mod series;
