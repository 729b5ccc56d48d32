//! Runs recorded answers of Kubernetes against Portcullis and prints one line a suite.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use conformance::{Options, REPOSITORY_VECTORS, run};

/// Compares Portcullis with recorded answers of Kubernetes.
///
/// Exits with 0 when all agree, 1 when an answer differs in a way that the ledger of agreed
/// differences does not explain, and 2 when the vectors can not be used.
#[derive(Debug, Parser)]
#[command(name = "conformance")]
struct Args {
    /// Folder with the vectors; without it, those of the repository
    #[arg(long, value_name = "DIR", default_value = REPOSITORY_VECTORS, hide_default_value = true)]
    vectors: PathBuf,
    /// Run this suite only
    #[arg(long, value_name = "NAME")]
    suite: Option<String>,
    /// List every vector, and count the informative texts that are identical
    #[arg(short, long)]
    verbose: bool,
}

fn main() -> ExitCode {
    let Args { vectors, suite, verbose } = Args::parse();
    let options = Options { vectors, suite, verbose };
    match run(&options, &mut std::io::stdout().lock(), &mut std::io::stderr()) {
        Ok(reports) if reports.iter().all(|report| report.n_failed() == 0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(error) => {
            let mut text = format!("error: {error}");
            let mut cause = std::error::Error::source(&error);
            while let Some(error) = cause {
                text.push_str(&format!(": {error}"));
                cause = error.source();
            }
            // When not even this can be written, the exit code still says it.
            let _ = writeln!(std::io::stderr(), "{text}");
            ExitCode::from(2)
        }
    }
}
