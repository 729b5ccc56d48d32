//! Compares Portcullis with recorded answers of Kubernetes and prints one line for each suite.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use conformance::http::{
    ALL_SUITES, Endpoint, HttpError, HttpOptions, HttpReport, Ratchet, SUITE_PREFIX,
    ServerUnderTest, http_folder, run_http,
};
use conformance::{Options, REPOSITORY_VECTORS, run};

/// The number of consecutive runs that a scenario must pass before it is added to the list.
const RATCHET_RUNS: usize = 3;

/// Compares Portcullis with recorded answers of Kubernetes.
///
/// Exits with 0 if all answers agree, 1 if an answer differs and the ledger of agreed differences does
/// not explain it, and 2 if the vectors or the server cannot be used.
#[derive(Debug, Parser)]
#[command(name = "conformance")]
struct Args {
    /// Folder with the vectors; the default is that of the repository
    #[arg(long, value_name = "DIR", default_value = REPOSITORY_VECTORS, hide_default_value = true)]
    vectors: PathBuf,
    /// Run this suite only; `http-NAME` replays recorded HTTP requests, `http` all of these suites
    #[arg(long, value_name = "NAME")]
    suite: Option<String>,
    /// List every vector, and the first difference of each HTTP scenario that fails
    #[arg(short, long)]
    verbose: bool,
    /// Replay HTTP scenarios against this running server
    #[arg(long, value_name = "URL", requires = "token")]
    server: Option<String>,
    /// Bearer token of a user `admin` in the group `system:masters` of that server
    #[arg(long, value_name = "TOKEN", requires = "server")]
    token: Option<String>,
    /// CA file that verifies the certificate of that server; without it the certificate is not verified
    #[arg(long, value_name = "FILE", requires = "server")]
    certificate_authority: Option<PathBuf>,
    /// Replay HTTP scenarios against this program; each worker starts one process
    #[arg(long, value_name = "FILE", conflicts_with = "server")]
    program: Option<PathBuf>,
    /// Number of HTTP scenarios that are replayed at the same time
    #[arg(long, value_name = "N", default_value_t = 6)]
    workers: usize,
    /// How long to repeat a step with `until` before it fails
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    until_seconds: u64,
    /// Add the HTTP scenarios that pass three times in a row to `passing.txt` beside them
    #[arg(long)]
    extend_ratchet: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let is_http = |name: &str| name == ALL_SUITES || name.starts_with(SUITE_PREFIX);
    let result: Result<bool, Box<dyn Error>> = match args.suite.as_deref().filter(|n| is_http(n)) {
        Some(suite) => replay(&args, suite).map_err(Into::into),
        None if args.server.is_some() || args.extend_ratchet => {
            Err("--server and --extend-ratchet go with --suite http-NAME or --suite http".into())
        }
        None => compare(args).map_err(Into::into),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            let mut text = format!("error: {error}");
            let mut cause = error.source();
            while let Some(error) = cause {
                text.push_str(&format!(": {error}"));
                cause = error.source();
            }
            // If this cannot be written, the exit code still reports the error.
            let _ = writeln!(io::stderr(), "{text}");
            ExitCode::from(2)
        }
    }
}

/// Runs the suites that call functions, and returns whether all answers agree.
fn compare(args: Args) -> Result<bool, conformance::RunError> {
    let Args { vectors, suite, verbose, .. } = args;
    let options = Options { vectors, suite, verbose };
    let reports = run(&options, &mut io::stdout().lock(), &mut io::stderr())?;
    Ok(reports.iter().all(|report| report.n_failed() == 0))
}

/// Replays the suites that send requests to a server, and returns whether all answers agree.
fn replay(args: &Args, suite: &str) -> Result<bool, HttpError> {
    let server = match (&args.server, &args.program) {
        (Some(url), _) => {
            let token = args.token.as_deref().unwrap_or_default();
            let authority = args.certificate_authority.as_deref();
            ServerUnderTest::Running(Endpoint::new(url, token, authority)?)
        }
        (None, Some(program)) => ServerUnderTest::Program(program.clone()),
        (None, None) => {
            let why = "give --program FILE or --server URL; `cargo xtask conformance` compiles the \
                       program and names it";
            return Err(HttpError::Start(why.to_owned()));
        }
    };
    let mut options = HttpOptions {
        vectors: args.vectors.clone(),
        suite: suite.to_owned(),
        only: None,
        server,
        n_workers: args.workers,
        until_timeout: Duration::from_secs(args.until_seconds),
    };
    let reports = run_http(&options)?;
    let mut out = io::stdout().lock();
    for report in &reports {
        report.print(&mut out, args.verbose)?;
    }
    if reports.len() > 1 {
        HttpReport::print_total(&reports, &mut out)?;
    }
    let mut ratchet = Ratchet::read(&http_folder(&args.vectors))?;
    let failed: BTreeSet<&str> = reports.iter().flat_map(|report| report.ids(false)).collect();
    for id in ratchet.ids().iter().filter(|id| failed.contains(id.as_str())) {
        writeln!(out, "ratchet: {id} is listed as passing and fails")?;
    }
    if args.extend_ratchet {
        let passed = reports.iter().flat_map(|report| report.ids(true)).map(str::to_owned);
        let mut new: BTreeSet<String> = passed.filter(|id| !ratchet.ids().contains(id)).collect();
        for _ in 1..RATCHET_RUNS {
            options.only = Some(new);
            let reports = run_http(&options)?;
            new = reports.iter().flat_map(|report| report.ids(true)).map(str::to_owned).collect();
        }
        let n_new = ratchet.extend(new)?;
        writeln!(out, "ratchet: {n_new} scenarios added, {} listed", ratchet.ids().len())?;
    }
    Ok(failed.is_empty())
}
