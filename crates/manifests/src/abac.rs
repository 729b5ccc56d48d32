//! ABAC policy files: one JSON object a line.

mod line;
mod load;
mod recognise;
#[cfg(test)]
mod tests;

pub use line::GROUP;
pub use load::{
    LINE_BYTES_MAX, LoadError, LoadOptions, Loaded, POLICY_FILE_BYTES_MAX, WARNINGS_MAX, load,
};
pub use recognise::looks_like_policies;
