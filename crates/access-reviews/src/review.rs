//! SubjectAccessReviews as JSON, one per line.
//!
//! A line is read at most twice. The fast path reads plainly written lines, which is nearly every
//! line. The slow path reads the others with positions and reports their faults, if any.

mod plain_review;
mod positioned_review;
mod question;
mod read_line;
mod spec_to_question;
#[cfg(test)]
mod tests;

pub use plain_review::{
    NonResourceAttributes, Requirement, ResourceAttributes, SelectorAttributes, Spec,
};
pub use question::{AccessQuestion, AccessTarget, ResourceTarget};
pub use read_line::{LINE_BYTES_MAX, Version, parse_plain_review, read_line};
