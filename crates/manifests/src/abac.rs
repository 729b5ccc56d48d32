//! ABAC policy files: one JSON object a line.

mod detect_policy_file;
mod load_policies;
mod missing_discovery_warning;
mod policy_line;
#[cfg(test)]
mod tests;

pub use detect_policy_file::looks_like_policy_file;
pub use load_policies::{
    LINE_BYTES_MAX, LoadedPolicies, POLICY_FILE_BYTES_MAX, PolicyLoadError, PolicyLoadOptions,
    UnsetAttributeMatching, WARNINGS_MAX, load_policies,
};
pub use missing_discovery_warning::warn_of_missing_discovery;
pub use policy_line::GROUP;
