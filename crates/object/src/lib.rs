//! Objects as trees: the metadata that all have, its rules, and the answer that says what went wrong.
//!
//! Owns: names of kinds and resources, the Status of a failed request.
//! Must not know: HTTP libraries, stores, which resources exist.

mod name;
mod status;

pub use name::{GroupKind, GroupResource, GroupVersion};
pub use status::{Cause, Details, Status};
