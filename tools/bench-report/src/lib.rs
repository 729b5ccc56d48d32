//! What the reports of all benchmarks share: numbers as people read them, and their place in a
//! document.
//!
//! Owns: the forms of numbers in tables, the lines between which a document is refreshed.
//! Must not know: what is measured.

mod document;
mod numbers;

pub use document::refresh;
pub use numbers::{duration, ratio, thousands};
