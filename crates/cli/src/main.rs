//! `portcullis`: checks configuration files and prints what editors and shells need.
//!
//! Owns: arguments, how findings are shown to people and programs, exit codes.
//! Must not know: what makes a file valid.
//!
//! Each subcommand is a file with its `Args` and a function that returns an [`Exit`].

mod check;
mod colour;
mod completion;
mod exit;
mod kind;
mod output;
mod schema;

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};

use exit::Exit;

/// Checks the configuration of a Kubernetes-style API server.
#[derive(Debug, Parser)]
#[command(
    name = "portcullis",
    version,
    max_term_width = 100,
    arg_required_else_help = true,
    subcommand_required = true,
    after_help = "Examples:
  portcullis check authorization.yaml
  portcullis schema > authorization.schema.json
  portcullis completion bash > /etc/bash_completion.d/portcullis

`portcullis help COMMAND` tells all about a command."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(check::Args),
    Schema(schema::Args),
    Completion(completion::Args),
}

fn main() -> ExitCode {
    let Cli { command } = Cli::parse();
    run(&command).unwrap_or_else(report_failure).into()
}

fn run(command: &Command) -> anyhow::Result<Exit> {
    let stdout = io::stdout().lock();
    let colour = colour::is_wanted(&stdout, |name| std::env::var_os(name));
    let mut out = BufWriter::new(stdout);
    let exit = match command {
        Command::Check(args) => {
            check::run(args, &mut io::stdin().lock(), &mut out, &mut io::stderr(), colour)
        }
        Command::Schema(args) => schema::run(args, &mut out),
        Command::Completion(args) => completion::run(args, &mut out),
    };
    let exit = exit.context("can not write the result")?;
    output::ignore_closed_pipe(out.flush()).context("can not write the result")?;
    Ok(exit)
}

/// Says why there is no result. When not even this can be written, the exit code still says it.
fn report_failure(error: anyhow::Error) -> Exit {
    let _ = writeln!(io::stderr(), "error: {error:#}");
    Exit::Unreadable
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_examples() {
        for command in Cli::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.starts_with("Examples:\n"), "{}", command.get_name());
        }
    }
}
