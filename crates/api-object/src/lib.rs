//! API objects as JSON trees: their metadata, its validation, and the `Status` of a failed request.
//!
//! An object is the JSON tree that was received, with [normalized](normalize_metadata) metadata.
//! All functions work on such trees.
//!
//! Owns: names of kinds and resources, the lifecycle of metadata, its validation, selectors over
//! objects, deletion, continue tokens, the Status of a failed request.
//! Must not know: HTTP libraries, stores, clocks, randomness, which resources exist.

#![deny(clippy::indexing_slicing)]

mod continue_token;
mod decoded_size;
mod deletion;
mod format_timestamp;
mod group_version;
mod match_selector;
mod metadata_lifecycle;
mod normalize_metadata;
mod object_tree;
mod status;
mod validate_metadata;

pub use continue_token::{ContinueToken, ContinueTokenError};
pub use decoded_size::{count_json_values, estimate_tree_bytes};
pub use deletion::{
    DeleteOptions, DeletionPropagation, IGNORE_READ_ERROR, is_ready_for_removal, mark_for_deletion,
    parse_dry_run,
};
pub use format_timestamp::{format_rfc3339, format_rfc3339_micro};
pub use group_version::{GroupKind, GroupResource, GroupVersion};
pub use match_selector::{matches_fields, matches_labels};
pub use metadata_lifecycle::{
    SUFFIX_CHARS, check_and_set_namespace, copy_immutable_metadata, duplicate_owners_warning,
    format_uuid4, format_uuid4_ascii, generate_name, is_resource_version_set,
    remove_duplicate_owners, set_creation_metadata,
};
pub use normalize_metadata::{MetadataTypeError, normalize_metadata};
pub use object_tree::{
    Tree, finalizers, integer_member, is_terminating, metadata, metadata_mut, name, namespace,
    object_member_mut, owner_references, string_list_member, string_member, uid,
};
pub use status::{Details, Status, StatusCause, WebhookStatus};
pub use validate_metadata::{
    ANNOTATION_BYTES_MAX, FOREGROUND_FINALIZER, ORPHAN_FINALIZER, validate_metadata,
    validate_metadata_update, validate_qualified_finalizers,
};
