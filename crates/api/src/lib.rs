//! Configuration files, manifests, policy files and reviews: decoded, checked and converted to what
//! the server is built from and asked.
//!
//! Owns: YAML and JSON as Kubernetes reads them, with the place of everything; the tables of the
//! kinds; their defaults, rules and conversion; what a file is; hints for near misses; what is
//! allowed but hardly meant; the published schema.
//! Must not know: how a chain decides, HTTP, flags, how faults are shown.

pub mod abac;
pub mod authorization;
mod decode;
mod diagnostic;
mod document;
mod expression;
mod file_kind;
mod hint;
pub mod hooks;
mod json;
pub mod kubeconfig;
mod located;
pub mod manifest;
mod node_object;
pub mod rbac;
mod report;
pub mod review;
mod schema;
mod shape;
mod source;
mod tree;
mod type_meta;
mod view;
mod yaml;
mod yaml_tree;

pub use diagnostic::{Diagnostic, Fault, Note, Warning, WarningCode};
pub use document::{NESTING_MAX, NODES_MAX};
pub use file_kind::FileKind;
pub use located::Located;
pub use node_object::node_object;
pub use schema::schema;
pub use source::{DOCUMENT_BYTES_MAX, Place, Source};
pub use yaml_tree::{YAML_TREE_NODES_MAX, YamlTree, yaml_tree};
