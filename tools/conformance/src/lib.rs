//! Compares Portcullis with recorded answers of Kubernetes.
//!
//! A vector is an input with the answer of Kubernetes. A suite gives the input to our public functions and
//! compares the answers. Deliberate differences are rules of a ledger. HTTP scenarios are replayed against a
//! server through a socket.
//!
//! Owns: the form of vectors, how strictly answers compare, the ledger, the report.
//! Must not know: how an answer is computed. It calls the functions that the server and the program call.

mod compare;
pub mod http;
mod judge;
mod ledger;
mod report;
mod run;
mod suites;
mod vectors;

pub use compare::{Comparison, Difference, TextCounts};
pub use judge::{Judgement, VectorOutcome, judge};
pub use ledger::{LEDGER, Rule};
pub use report::{SuiteReport, print_ledger};
pub use run::{Options, RunError, run};
pub use suites::Suite;
pub use vectors::{LINE_BYTES_MAX, UnusableVector, Vector, Vectors, VectorsError, suites_in};

/// The folder in which the repository keeps its vectors, on the machine that compiled this crate.
pub const REPOSITORY_VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance");
