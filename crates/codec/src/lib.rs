//! Encoding and decoding of requests, responses and stored objects.
//!
//! Owns: media types and their negotiation, JSON, YAML and protobuf in, JSON and YAML out, the
//! field tables of kinds, strict decoding, warnings, the form of stored objects, tables, watch
//! events, compression.
//! Must not know: HTTP libraries, stores, which resources are served, what their columns show.

#![deny(clippy::indexing_slicing)]

mod accept_header;
mod compress;
mod conform_to_kind;
mod content_type;
mod decode;
mod decoded_size;
mod encode;
mod field_tables;
mod field_types;
mod json_parser;
mod list_writer;
mod lists_and_tables;
mod protobuf;
mod response_format;
mod stored_object;
mod stored_object_check;
mod strict_finding;
#[cfg(test)]
mod testing;
mod value_path;
mod warning_header;
mod yaml_writer;

pub use compress::{GZIP_BYTES_MIN, GzipStream, accepts_gzip, gzip};
pub use conform_to_kind::WrongTypeError;
pub use content_type::{
    PatchType, RequestBodyFormat, UnsupportedMediaType, check_content_encoding,
    delete_options_format, patch_type_of_content_type, request_body_format,
};
pub use decode::{
    DecodeError, DecodedObject, ExpectedKind, conform_object, decode_delete_options, decode_object,
};
pub use decoded_size::estimate_decoded_bytes;
pub use encode::{
    WatchEventType, encode_object, encode_status, reencode_json, write_watch_event_end,
    write_watch_event_start,
};
pub use field_tables::has_field_table;
pub use json_parser::{JsonError, NESTING_MAX, ParsedJson, parse_json};
pub use list_writer::ListWriter;
pub use lists_and_tables::{
    ListMetadata, TableColumn, TableRow, encode_table, to_partial_metadata, write_table_row,
};
pub use protobuf::JSON_BYTES_MAX;
pub use response_format::{
    DiscoveryFormat, DiscoveryVersion, EndpointKind, FormatRequest, MetaVersion, NegotiationError,
    ObjectTransform, ResponseBodyFormat, ResponseEncoding, negotiate_discovery_format,
    negotiate_response_format,
};
pub use stored_object::{
    IncludeTypeMeta, MalformedStoredObject, ObjectSplicer, decode_stored_object,
    encode_stored_object, splice_partial_metadata, splice_resource_version,
};
pub use stored_object_check::{check_stored_object, salvage_metadata};
pub use strict_finding::{StrictDecodingError, StrictFinding, check_no_strict_findings};
pub use warning_header::warning_headers;
