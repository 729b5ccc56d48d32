//! SubjectAccessReview: a question in JSON, one a line.
//!
//! A line is read twice at most. The quick look takes what is written plainly, which is nearly
//! every line; what it does not take is read again with places, which tells what is wrong with it,
//! or that nothing is.

mod convert;
mod decode;
mod question;
mod read;
#[cfg(test)]
mod tests;
mod wire;

pub use question::{Question, QuestionTarget, ResourceQuestion};
pub use read::{LINE_BYTES_MAX, Version, plain_review, read_line};
pub use wire::{NonResourceAttributes, Requirement, ResourceAttributes, SelectorAttributes, Spec};
