//! Configuration files: decoded, checked and converted to what the server is built from.
//!
//! Owns: YAML and JSON as Kubernetes reads them, with the place of everything; the tables of the
//! configuration kinds; their defaults, rules and conversion; hints for near misses; the published
//! schema.
//! Must not know: how a chain decides, HTTP, flags, how faults are shown.

pub mod abac;
pub mod authorization;
mod decode;
mod diagnostic;
mod document;
mod hint;
mod json;
mod node_object;
pub mod rbac;
mod schema;
mod shape;
mod source;
mod yaml;

pub use diagnostic::{Diagnostic, Fault, Note, Warning, WarningCode};
pub use document::{NESTING_MAX, NODES_MAX};
pub use node_object::node_object;
pub use schema::schema;
pub use source::{DOCUMENT_BYTES_MAX, Place, Source};
