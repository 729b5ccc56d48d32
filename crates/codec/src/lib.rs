//! Bytes on the wire: which form a client sends and wants, and how trees are read and written in it.
//!
//! Owns: media types and their negotiation, JSON, YAML and protobuf in, JSON and YAML out, the field
//! tables of kinds, what strict reading finds, warnings, the form of stored objects, tables, watch
//! events, compression.
//! Must not know: HTTP libraries, stores, which resources are served, what their columns show.

#![deny(clippy::indexing_slicing)]

mod accept;
mod age;
#[cfg(test)]
mod arbitrary;
mod compress;
mod conform;
mod content_type;
mod decode;
mod encode;
mod finding;
mod json;
mod kinds;
mod media_type;
mod path;
mod protobuf;
mod shape;
mod sound;
mod stored;
mod table;
mod warning;
mod yaml;

pub use accept::{
    Answer, Asked, DiscoveryAnswer, DiscoveryVersion, Endpoint, Format, MetaVersion, Transform,
    negotiate, negotiate_discovery,
};
pub use age::age;
pub use compress::{GZIP_BYTES_MIN, accepts_gzip, gzip};
pub use conform::WrongType;
pub use content_type::{
    BodyFormat, PatchType, body_format, check_content_encoding, options_format, patch_type,
};
pub use decode::{Decoded, Expected, conform_object, decode_object, decode_options};
pub use encode::{EventType, begin_event, encode_status, encode_tree, end_event, reencode};
pub use finding::{Finding, strict_error};
pub use json::{JsonError, JsonTree, NESTING_MAX, json_tree};
pub use kinds::has_table;
pub use sound::{check_stored, salvage_metadata};
pub use stored::{
    MalformedObject, TypeMeta, from_stored, splice_partial_metadata, splice_resource_version,
    to_stored,
};
pub use table::{Column, ListMetadata, Row, begin_list, encode_table, end_list, partial_metadata};
pub use warning::warning_headers;
