//! Manifests and policy files: the objects that the authorizers decide from.
//!
//! Owns: reading files of objects with the position of every fault, the fields and validation rules
//! of RBAC objects, ABAC policy lines, the parts of pods and volumes that the node authorizer uses,
//! warnings about likely mistakes, and the default roles and bindings.
//! Must not know: how an authorizer decides, HTTP, flags, how a diagnostic is shown.

pub mod abac;
mod manifest_file;
mod node_object;
pub mod rbac;

pub use manifest_file::{
    ERRORS_MAX, KindHandler, KindHandling, MANIFEST_BYTES_MAX, ManifestObject, Manifests, Object,
    WARNINGS_MAX, WholeObject, YAML_NODES_MAX, duplicate_objects, duplicate_whole_objects,
    lint_role_references, read, read_and_keep_kinds,
};
pub use node_object::parse_node_object;
