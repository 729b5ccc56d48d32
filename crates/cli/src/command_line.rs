//! The subcommands and their dispatch.

use std::io::{self, BufWriter, Write};

use anyhow::Context;
use clap::{Parser, Subcommand};

use crate::exit::Exit;
use crate::{
    check, colour, completion, convert, eval, explain, matrix, output_helpers, pki, rules, schema,
    serve, webhook, who_can,
};

/// Size of the buffer between a subcommand and standard output.
const OUTPUT_BUFFER_BYTES: usize = 64 << 10;

/// API server, authorization and admission for a Kubernetes-style API, with offline checks.
#[derive(Debug, Parser)]
#[command(
    name = "portcullis",
    version,
    max_term_width = 100,
    arg_required_else_help = true,
    subcommand_required = true,
    after_help = "Examples:
  portcullis serve
  portcullis check authorization.yaml
  portcullis explain --objects manifests/ --as ana --verb get --resource pods -n prod
  portcullis explain --admission pod.yaml --objects manifests/ --as ana
  portcullis who-can delete namespaces --objects manifests/
  portcullis convert --authorization-mode Node,RBAC > authorization.yaml
  portcullis schema > authorization.schema.json
  portcullis completion bash > /etc/bash_completion.d/portcullis

`portcullis help COMMAND` describes one command in full."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) subcommand: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Check(check::Args),
    Eval(Box<eval::Args>),
    Explain(Box<explain::Args>),
    #[command(name = "who-can")]
    WhoCan(Box<who_can::Args>),
    Rules(Box<rules::Args>),
    Matrix(Box<matrix::Args>),
    Convert(Box<convert::Args>),
    Serve(Box<serve::Args>),
    Webhook(Box<webhook::Args>),
    Pki(pki::Args),
    Schema(schema::Args),
    Completion(completion::Args),
}

/// Runs a subcommand with the standard streams of the process.
///
/// # Errors
/// Fails if the result cannot be written.
pub(crate) fn run(command: &Command) -> anyhow::Result<Exit> {
    // Standard output is not locked: other threads of `serve` write the audit log to it.
    let stdout = io::stdout();
    let colour = colour::is_colour_enabled(&stdout, |name| std::env::var_os(name));
    let err_colour = colour::is_colour_enabled(&io::stderr(), |name| std::env::var_os(name));
    let mut out = BufWriter::with_capacity(OUTPUT_BUFFER_BYTES, stdout);
    let exit = match command {
        Command::Check(args) => {
            check::run(args, &mut io::stdin().lock(), &mut out, &mut io::stderr(), colour)
        }
        Command::Eval(args) => {
            eval::run(args, &mut io::stdin().lock(), &mut out, &mut io::stderr(), err_colour)
        }
        Command::Explain(args) => {
            let (stdin, err) = (&mut io::stdin().lock(), &mut io::stderr());
            explain::run(args, stdin, &mut out, err, colour, err_colour)
        }
        Command::WhoCan(args) => {
            who_can::run(args, &mut io::stdin().lock(), &mut out, &mut io::stderr(), err_colour)
        }
        Command::Rules(args) => {
            rules::run(args, &mut io::stdin().lock(), &mut out, &mut io::stderr(), err_colour)
        }
        Command::Matrix(args) => {
            matrix::run(args, &mut io::stdin().lock(), &mut out, &mut io::stderr(), err_colour)
        }
        Command::Convert(args) => convert::run(args, &mut out, &mut io::stderr(), err_colour),
        Command::Serve(args) => serve::run(args, &mut out, &mut io::stderr(), err_colour),
        Command::Webhook(args) => webhook::run(args, &mut out, &mut io::stderr(), err_colour),
        Command::Pki(args) => pki::run(args, &mut out, &mut io::stderr()),
        Command::Schema(args) => schema::run(args, &mut out),
        Command::Completion(args) => completion::run(args, &mut out),
    };
    let exit = exit.context("cannot write the result")?;
    output_helpers::ignore_closed_pipe(out.flush()).context("cannot write the result")?;
    Ok(exit)
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

    /// Tests read the flags of the server from its help.
    #[test]
    fn no_flag_of_the_server_is_hidden() {
        let program = Cli::command();
        let serve = program.find_subcommand("serve").unwrap();
        for flag in serve.get_arguments() {
            assert!(!flag.is_hide_set() && !flag.is_hide_short_help_set(), "{}", flag.get_id());
        }
    }
}
