//! YAML and JSON documents as Kubernetes reads them, with the position of every key and value.
//!
//! Owns: the two parsers, the tree that they build, the check of a tree against the table of a
//! kind's fields, positions in a file, diagnostics with hints, and how a file is read from disk.
//! Must not know: any kind of object, how a diagnostic is shown, flags, HTTP.

pub mod decode;
mod diagnostic;
mod expression;
pub mod hint;
pub mod json;
mod located;
mod node;
mod read_file;
mod report;
mod shape;
mod source;
pub mod tree;
mod type_meta;
mod view;
pub mod yaml;
mod yaml_tree;

pub use decode::DecodeError;
pub use diagnostic::{
    Caution, Diagnostic, Fault, Finding, FindingNote, Note, Warning, WarningCode,
};
pub use expression::span_within;
pub use located::Located;
pub use node::{Entry, Limits, NESTING_MAX, NODES_MAX, Node, Text, Value};
pub use read_file::{ReadError, go_error_text, read_file};
pub use report::Report;
pub use shape::{Field, Object, Shape, TextRule};
pub use source::{DOCUMENT_BYTES_MAX, Lines, Place, Source, Span};
pub use type_meta::TypeMeta;
pub use view::{Nanos, Scalar, View};
pub use yaml_tree::{YAML_TREE_NODES_MAX, YamlTree, yaml_tree};
