//! SubjectAccessReviews as JSON, one per line.
//!
//! A line is read at most twice. The fast path reads plainly written lines, which is nearly every
//! line. The slow path reads the others with positions and reports their faults, if any.
//!
//! There are three readers of a review, because each serves a caller that the others cannot. `review_serde_types`
//! derives serde on types that borrow from the body; it is the hot path of servers and allocates no tree, but it
//! cannot report faults: it returns `None` for every review that is not plain. `positioned_review` reads the tree
//! of the crate `document`, which has positions, for offline questions: it reports all faults of a line and rejects
//! unknown fields. `read_body` of this crate reads the tree that the server has decoded from JSON, YAML or
//! protobuf: such a tree has no positions, unknown fields were already handled, and Kubernetes reports only the
//! first wrong type. One reader for both trees would need an abstraction over the two tree types and over both ways
//! to report faults, and would be longer than the two readers.

mod access_question;
mod plain_v1_review_reader;
mod positioned_review;
mod review_line;
mod review_serde_types;
mod spec_to_question;
#[cfg(test)]
mod tests;

pub use access_question::{AccessQuestion, AccessTarget, ResourceTarget};
pub use review_line::{LINE_BYTES_MAX, Version, parse_plain_review, read_review_line};
pub use review_serde_types::{
    NonResourceAttributes, ResourceAttributes, SelectorAttributes, SelectorRequirement, Spec,
};
