//! Recorded scenarios of HTTP: sequences of requests that a server must answer as kube-apiserver did.
//!
//! A suite is a file `http-NAME.jsonl` and a scenario one line of it. The server is reached through
//! a socket, be it one that this crate starts for each worker or one that runs already.

mod client;
mod normalize;
mod ratchet;
mod replay;
mod report;
mod run;
mod scenario;
mod server;

use std::io;
use std::path::PathBuf;

use crate::vectors::VectorsError;

pub use client::{ClientError, Endpoint};
pub use ratchet::{Ratchet, RatchetError};
pub use replay::{ScenarioOutcome, StepDifference};
pub use report::HttpReport;
pub use run::{HttpOptions, ServerUnderTest, folder_of, run_http};

/// What the name of every suite of this kind begins with.
pub const SUITE_PREFIX: &str = "http-";
/// All suites of this kind together.
pub const ALL_SUITES: &str = "http";
/// Where these suites are below the folder of vectors.
pub const FOLDER: &str = "http";

/// The reasons for which scenarios can not be replayed at all.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The vectors are unusable.
    #[error(transparent)]
    Vectors(#[from] VectorsError),
    /// The folder holds no suite of this name.
    #[error("no vectors of suite `{name}` in `{}`", folder.display())]
    NoVectors {
        /// The name of the suite.
        name: String,
        /// The folder that was searched.
        folder: PathBuf,
    },
    /// The server can not be started.
    #[error("cannot start the server: {0}")]
    Start(String),
    /// The server can not be reached, or the connection to it breaks.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The list of passing scenarios can not be used.
    #[error(transparent)]
    Ratchet(#[from] RatchetError),
    /// The report can not be written.
    #[error("cannot write the report")]
    Report(#[from] io::Error),
}
