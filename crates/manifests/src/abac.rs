//! ABAC policy files: one JSON object a line.

mod detect;
mod discovery_paths;
mod load;
mod policy_line;
#[cfg(test)]
mod tests;

pub use detect::looks_like_policy_file;
pub use discovery_paths::warn_of_missing_discovery;
pub use load::{
    LINE_BYTES_MAX, LoadError, LoadOptions, LoadedPolicies, POLICY_FILE_BYTES_MAX, UnsetAttributes,
    WARNINGS_MAX, load,
};
pub use policy_line::GROUP;
