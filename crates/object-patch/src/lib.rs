//! JSON Patch, JSON merge patch and strategic merge patch.
//!
//! Each is a function from a tree and a patch to a new tree or an error; decoding happens
//! elsewhere. The cost of a patch is limited: the operations of a JSON Patch are counted with the
//! values that they move and copy, and no result is nested deeper than [`NESTING_MAX`].
//!
//! Owns: the semantics of the three patch types, and the merge keys of the lists of built-in kinds.
//! Must not know: bytes, media types, validation of the result.

#![deny(clippy::indexing_slicing)]

mod json_patch;
mod json_pointer;
mod merge_keys;
mod merge_patch;
mod nesting_depth;
mod patch_error;
mod strategic_merge;
#[cfg(test)]
mod upstream_results_test;

pub use json_patch::{COPIED_BYTES_MAX, OPERATIONS_MAX, PATCH_STEPS_MAX, apply_json_patch};
pub use merge_keys::StrategicMergeSchema;
pub use merge_patch::apply_merge_patch;
pub use nesting_depth::NESTING_MAX;
pub use patch_error::PatchError;
pub use strategic_merge::apply_strategic_merge_patch;
