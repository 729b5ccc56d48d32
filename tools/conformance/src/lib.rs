//! Compares Portcullis with recorded answers of Kubernetes.
//!
//! A vector is an input and the answer of Kubernetes; a suite asks our public functions the same
//! and compares. Differences on purpose are rules of a ledger. Scenarios of HTTP are replayed against
//! a server through a socket.
//!
//! Owns: the form of vectors, how strictly answers compare, the ledger, the report.
//! Must not know: how an answer is made. It calls what the server and the program call.

mod compare;
pub mod http;
mod judge;
mod ledger;
mod report;
mod run;
mod suites;
mod vectors;

pub use compare::{Comparison, Difference, Texts};
pub use judge::{Judgement, Outcome, judge};
pub use ledger::{LEDGER, Rule};
pub use report::{SuiteReport, print_ledger};
pub use run::{Options, RunError, run};
pub use suites::Suite;
pub use vectors::{LINE_BYTES_MAX, Vector, Vectors, VectorsError, suites_in};

/// Where the repository keeps its vectors, on the machine that compiled this crate.
pub const REPOSITORY_VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance");
