//! Manifests and policy files: the objects that the authorizers decide from.
//!
//! Owns: reading files of objects with the position of every fault, the fields and validation rules
//! of RBAC objects and of flow schemas, ABAC policy lines, the parts of pods and volumes that the node authorizer uses,
//! warnings about likely mistakes, and the default roles and bindings.
//! Must not know: how an authorizer decides, HTTP, flags, how a diagnostic is shown.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod abac;
pub mod flow_control;
mod manifest_file;
mod node_authorizer_object;
pub mod rbac;

pub use manifest_file::{
    AuthorizerObject, DuplicateObjects, ERRORS_MAX, KindHandler, KindHandling, MANIFEST_BYTES_MAX,
    ManifestObject, ManifestReadOptions, Manifests, UnstructuredObject, WARNINGS_MAX,
    YAML_NODES_MAX, find_duplicate_objects, find_duplicate_unstructured_objects,
    lint_role_references, read, read_manifests_with_options,
};
pub use node_authorizer_object::parse_node_authorizer_object;
