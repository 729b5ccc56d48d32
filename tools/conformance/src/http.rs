//! Recorded HTTP scenarios: sequences of requests that a server must answer as kube-apiserver did.
//!
//! A suite is a file `http-NAME.jsonl`, and a scenario is one line of it. Requests go through a socket to a
//! server that this crate starts for each worker, or to one that is already running.

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

pub use client::{ClientError, Endpoint, ExchangeError};
pub use ratchet::{Ratchet, RatchetError};
pub use replay::{ScenarioOutcome, StepDifference};
pub use report::HttpReport;
pub use run::{HttpOptions, ServerUnderTest, http_folder, run_http};

/// The prefix of the names of these suites.
pub const SUITE_PREFIX: &str = "http-";
/// The name that selects all of these suites.
pub const ALL_SUITES: &str = "http";
/// The folder of these suites below the folder of vectors.
pub const FOLDER: &str = "http";

/// The reason why scenarios cannot be replayed.
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
    /// The server cannot be started.
    #[error("cannot start the server: {0}")]
    Start(String),
    /// The server cannot be reached, or the connection to it breaks.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The list of passing scenarios cannot be used.
    #[error(transparent)]
    Ratchet(#[from] RatchetError),
    /// The report cannot be written.
    #[error("cannot write the report")]
    Report(#[from] io::Error),
}
