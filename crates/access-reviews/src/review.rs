//! SubjectAccessReview: a question in JSON, one a line.
//!
//! A line is read twice at most. The quick look takes what is written plainly, which is nearly
//! every line; what it does not take is read again with places, which tells what is wrong with it,
//! or that nothing is.

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
pub use question::{Question, QuestionTarget, ResourceQuestion};
pub use read_line::{LINE_BYTES_MAX, Version, parse_plain_review, read_line};
