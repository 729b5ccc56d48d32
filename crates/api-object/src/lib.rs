//! Objects as trees: the metadata that all have, its rules, and the answer that says what went wrong.
//!
//! An object is the JSON tree that was received, brought into [shape](shape_metadata) where its
//! metadata is concerned. Everything here is a function over such trees.
//!
//! Owns: names of kinds and resources, the life of metadata, its validation, selectors over objects,
//! deletion, continue tokens, the Status of a failed request.
//! Must not know: HTTP libraries, stores, clocks, randomness, which resources exist.

#![deny(clippy::indexing_slicing)]

mod deletion;
mod lifecycle;
mod name;
mod rules;
mod selector;
mod shape;
mod status;
mod time;
mod token;
mod tree;

pub use deletion::{DeleteOptions, Propagation, begin_deletion, can_go, check_dry_run};
pub use lifecycle::{
    SUFFIX_CHARS, begin_metadata, carry_metadata, dedup_owners, fit_namespace, generated_name,
    owners_warning, uuid4,
};
pub use name::{GroupKind, GroupResource, GroupVersion};
pub use rules::{
    ANNOTATION_BYTES_MAX, FOREGROUND_FINALIZER, ORPHAN_FINALIZER, metadata_errors,
    metadata_update_errors,
};
pub use selector::{matches_fields, matches_labels};
pub use shape::{ShapeError, shape_metadata};
pub use status::{Cause, Details, Foreign, Status};
pub use time::{rfc3339, rfc3339_micro};
pub use token::{ContinueToken, TokenError};
pub use tree::{
    Tree, finalizers, is_terminating, metadata, metadata_mut, name, namespace, number, object_mut,
    owner_references, text, texts, uid,
};
