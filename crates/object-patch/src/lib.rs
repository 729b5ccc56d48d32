//! Three ways to change a tree: JSON Patch, merge patch, strategic merge patch.
//!
//! All are functions from a tree and a patch to a new tree or an error; the bytes of both were read
//! elsewhere. What a patch may cost is limited: its own size is that of a request, the operations of
//! a JSON Patch are counted together with what they move and copy, and nothing gets nested deeper
//! than [`NESTING_MAX`].
//!
//! Owns: the semantics of the three patches, which lists of built-in kinds are merged by which key.
//! Must not know: bytes, media types, what a resulting object must look like.

#![deny(clippy::indexing_slicing)]

mod error;
mod json_patch;
mod merge_patch;
mod nesting;
mod pointer;
mod schema;
mod strategic;
#[cfg(test)]
mod upstream;

pub use error::PatchError;
pub use json_patch::{COPIED_BYTES_MAX, OPERATIONS_MAX, WORK_MAX, json_patch};
pub use merge_patch::merge_patch;
pub use nesting::NESTING_MAX;
pub use schema::SmpSchema;
pub use strategic::strategic_merge_patch;
