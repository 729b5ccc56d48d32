//! `portcullis`: runs the API server, checks files, answers access questions from them, and prints
//! schemas and shell completions.
//!
//! Owns: flags, the output for people and programs, exit codes.
//! Must not know: the rules that make a file valid, how an authorizer decides.
//!
//! Each subcommand is a module with its `Args` and a function `run` that returns an [`Exit`].

mod admission_validation;
mod authorization_settings;
mod check;
mod colour;
mod command_line;
mod completion;
mod convert;
mod eval;
mod exit;
mod explain;
mod file_arguments;
mod file_kinds;
mod flag_spelling;
mod offline;
mod output;
mod pki;
mod rules;
mod schema;
mod serve;
mod who_can;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use command_line::{Cli, run};
use exit::Exit;

/// mimalloc is faster than the system allocator and returns memory earlier, above all when one thread
/// allocates memory and another frees it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let (args, warnings) = flag_spelling::replace_underscores(std::env::args_os());
    let Cli { command } = Cli::parse_from(args);
    for warning in warnings {
        // A failed write to standard error must not prevent the result.
        let _ = writeln!(io::stderr(), "warning: {warning}");
    }
    run(&command).unwrap_or_else(report_failure).into()
}

/// Prints the error. If standard error can not be written, the exit code still reports it.
fn report_failure(error: anyhow::Error) -> Exit {
    let _ = writeln!(io::stderr(), "error: {error:#}");
    Exit::Unreadable
}
