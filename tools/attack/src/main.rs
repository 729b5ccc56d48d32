//! `cargo xtask attack`: runs the attacks of docs/attacks.md at full size against `portcullis serve`, and prints
//! what other users noticed of them.
//!
//! ```text
//! attack [ROW...] [--runs N] [--program FILE]
//! ```
//!
//! The server has one core. Attackers and innocent users share another one, on which attackers have a lower
//! priority, so that the latencies of the innocents are those of the server. The exit code is 1 if a row did not
//! hold.
//!
//! Owns: the attacks, the innocent users, the measurements and the verdicts.
//! Must not know: how the server defends itself; it sees only what clients see, and `/proc`.

mod arguments;
mod attacks;
mod client;
mod documented_tests;
mod hook_service;
mod http2_frames;
mod innocents;
mod program;
mod report;
mod runner;
mod scene;
mod server_process;
mod users;

use std::process::ExitCode;

use arguments::Arguments;
use report::Report;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The descriptors that 20,000 connections of an attacker need.
const DESCRIPTORS_MAX: u64 = 40_000;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(report) => {
            print!("{}", report.render());
            if report.has_held() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("attack: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[String]) -> anyhow::Result<Report> {
    let arguments = Arguments::parse(words)?;
    let program = program::find(arguments.program.as_deref())?;
    server_process::pin_this_process()?;
    let server_descriptors = raise_descriptors();
    let mut report = Report::default();
    for row in arguments.rows {
        eprintln!("{}: {} ({})", row.name, row.title, row.by);
        let result = runner::run(&row, &program, arguments.n_runs, server_descriptors);
        let result = report::RowReport::new(&row, result);
        eprintln!("{}", result.line());
        report.rows.push(result);
    }
    Ok(report)
}

/// Raises the limit of descriptors of this process as far as the system allows, and returns the limit before, which
/// the server gets.
fn raise_descriptors() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let before = getrlimit(Resource::Nofile);
    let wanted = Some(DESCRIPTORS_MAX);
    let raised = Rlimit { current: wanted, maximum: wanted };
    if setrlimit(Resource::Nofile, raised).is_err() {
        // Only root may raise the hard limit. The attack then has fewer connections.
        let _ = setrlimit(
            Resource::Nofile,
            Rlimit { current: before.maximum, maximum: before.maximum },
        );
        eprintln!("attack: at most {:?} descriptors", before.maximum);
    }
    before.maximum.unwrap_or(DESCRIPTORS_MAX)
}
