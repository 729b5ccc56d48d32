//! YAML and JSON documents as Kubernetes reads them, with the position of every key and value.
//!
//! Owns: the two parsers, the tree that they build, the check of a tree against the schema of a
//! kind, positions in a file, diagnostics with hints, and how a file is read from disk.
//! Must not know: any kind of object, how a diagnostic is shown, flags, HTTP.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod diagnostic;
pub mod hint;
pub mod json;
mod node;
mod object_reader;
mod parse_document;
mod read_file;
mod schema;
mod schema_check;
mod source;
mod span_of_expression_position;
mod type_meta;
mod validation_report;
mod with_position;
pub mod yaml;
mod yaml_to_json;

pub use diagnostic::{
    Diagnostic, ExpressionIssue, Fault, SpannedExpressionIssue, SpannedFault, SpannedWarning,
    Warning, WarningCode,
};
pub use node::{DocumentLimits, Entry, NESTING_MAX, NODES_MAX, Node, SpannedText, Value};
pub use object_reader::{FieldValue, Nanoseconds, ObjectReader};
pub use parse_document::{ParsedDocument, SpannedDecodeError, parse_document};
pub use read_file::{ReadError, go_io_error_text, read_file};
pub use schema::{FieldSchema, FieldType, ObjectSchema, SchemaTextRule};
pub use schema_check::{
    DecodeError, DecodeProblem, DecodeProblems, NodePath, check_against_schema,
};
pub use source::{DOCUMENT_BYTES_MAX, LineIndex, Source, SourcePosition, Span};
pub use span_of_expression_position::span_of_expression_position;
pub use type_meta::TypeMeta;
pub use validation_report::ValidationReport;
pub use with_position::WithPosition;
pub use yaml_to_json::{YAML_TO_JSON_NODES_MAX, YamlAsJson, yaml_to_json};
