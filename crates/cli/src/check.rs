//! `portcullis check`: says what is wrong with configuration files.

mod excerpt;
mod finding;
mod human;
mod input;
mod json;
mod rule;
mod sarif;
#[cfg(test)]
mod tests;

use std::io::{self, Read, Write};
use std::path::PathBuf;

use api::authorization::{LoadOptions, Role, assume_regular, stat};
use clap::ValueEnum;

use crate::exit::Exit;
use crate::output::ignore_closed_pipe;
use finding::{Checked, Outcome, check};
use input::Input;

/// Check configuration files
///
/// Every fault is reported in kube-apiserver's words, with its place in the file and, for a near
/// miss, a hint. The kind of a file is found from its `kind` and `apiVersion`; the kind known
/// today is AuthorizationConfiguration in the versions v1, v1beta1 and v1alpha1 of
/// apiserver.config.k8s.io.
///
/// Exit codes: 0 when no file has an error, 1 when one has, 2 for wrong usage, 3 when a file can
/// not be read. All files are checked in any case, and the greatest code wins.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  portcullis check authorization.yaml
  portcullis check --strict -o json *.yaml
  kubectl get configmap authz -o jsonpath='{.data.config}' | portcullis check -
  portcullis check --assume-files-exist -o sarif config/*.yaml > portcullis.sarif

The first reports for people. The second takes warnings for errors and writes one JSON object.
The third reads standard input. The last is for CI: the kubeconfig files that the configuration
names are on the servers and not here, and the result is for code scanning.")]
pub(crate) struct Args {
    /// Files to check; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// How findings are written
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Output::Human)]
    output: Output,

    /// Take warnings for errors
    #[arg(long)]
    strict: bool,

    /// The server that the files are for
    #[arg(long, value_enum, default_value_t = ServerRole::Main)]
    role: ServerRole,

    /// Do not look for the files that a configuration names, such as kubeconfig files
    ///
    /// They are usually on the server only. Without this, a path that does not lead to a regular
    /// file on this machine is an error, as it is when the server starts.
    #[arg(long)]
    assume_files_exist: bool,

    /// What findings call standard input, for editors that check a buffer
    #[arg(long, value_name = "PATH")]
    stdin_filename: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people, with the lines of the source
    Human,
    /// One JSON object for programs
    Json,
    /// SARIF 2.1.0 for code scanning
    Sarif,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ServerRole {
    /// The server that others delegate to, such as kube-apiserver
    Main,
    /// A server that delegates to the main one; it may use InClusterConfig
    Delegated,
}

impl From<ServerRole> for Role {
    fn from(role: ServerRole) -> Self {
        match role {
            ServerRole::Main => Self::Main,
            ServerRole::Delegated => Self::Delegated,
        }
    }
}

/// Checks all files and writes what is found.
///
/// # Errors
/// Fails if the result can not be written.
pub(crate) fn run(
    args: &Args,
    stdin: &mut dyn Read,
    out: &mut dyn Write,
    err: &mut dyn Write,
    colour: bool,
) -> io::Result<Exit> {
    let inputs: Vec<_> = args
        .files
        .iter()
        .map(|path| Input::from_argument(path, args.stdin_filename.as_deref()))
        .collect();
    if inputs.iter().filter(|input| input.is_stdin()).count() > 1 {
        // When not even this can be written, the exit code still says it.
        let _ = writeln!(err, "error: `-` is given twice, but standard input can be read once");
        return Ok(Exit::Usage);
    }
    let options = LoadOptions {
        role: args.role.into(),
        probe: if args.assume_files_exist { &assume_regular } else { &stat },
        ..LoadOptions::default()
    };
    let checked: Vec<_> =
        inputs.iter().map(|input| check(input, stdin, &options, args.strict)).collect();
    let written = match args.output {
        Output::Human => human::write(out, err, &checked, colour),
        Output::Json => json::write(out, &checked),
        Output::Sarif => sarif::write(out, &checked),
    };
    ignore_closed_pipe(written)?;
    Ok(exit(&checked))
}

fn exit(checked: &[Checked]) -> Exit {
    let exits = checked.iter().map(|checked| match &checked.outcome {
        Outcome::Unreadable { .. } => Exit::Unreadable,
        Outcome::Read(read) if read.errors.is_empty() => Exit::Clean,
        Outcome::Read(_) => Exit::Findings,
    });
    exits.max().unwrap_or(Exit::Clean)
}
