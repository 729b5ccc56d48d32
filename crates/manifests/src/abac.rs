//! ABAC policy files: one JSON object a line.

mod detect_abac_policy_file;
mod load_abac_policies;
mod policy_line;
#[cfg(test)]
mod tests;
mod ungranted_discovery_warning;

pub use detect_abac_policy_file::looks_like_abac_policy_file;
pub use load_abac_policies::{
    AbacPolicyLoadError, AbacPolicyLoadOptions, LINE_BYTES_MAX, LoadedAbacPolicies,
    POLICY_FILE_BYTES_MAX, UnsetAttributeMatching, WARNINGS_MAX, load_abac_policies,
};
pub use policy_line::GROUP;
pub use ungranted_discovery_warning::warn_of_ungranted_discovery_paths;
