//! Validation errors of documents: the path of a field and the fault.
//!
//! Validation descends through a document with a [`FieldPath`] and reports a [`FieldError`] for each
//! fault; [`FieldErrors`] holds them all. The words are those of Kubernetes, byte for byte, since
//! clients and people read them.
//!
//! Owns: paths, fault classes, their text, the aggregate of several messages, name syntaxes.
//! Must not know: which documents exist, how they are decoded, status codes.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod aggregate_messages;
mod error;
mod name_syntax;
mod nearest_word;
mod path;
mod truncate_text;

pub use aggregate_messages::aggregate_messages;
pub use error::{BadValue, FAULTS_MAX, FieldError, FieldErrorKind, FieldErrors};
pub use name_syntax::{
    DNS1123_LABEL_BYTES_MAX, DNS1123_SUBDOMAIN_BYTES_MAX, LABEL_NAME_BYTES_MAX,
    LABEL_VALUE_BYTES_MAX, dns1035_label_faults, dns1123_label_faults, dns1123_subdomain_faults,
    label_key_faults, label_value_faults, mask_trailing_dash, path_segment_faults,
};
pub use nearest_word::nearest_word;
pub use path::FieldPath;
pub use truncate_text::truncate_to_bytes;
