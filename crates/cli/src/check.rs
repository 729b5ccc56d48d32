//! `portcullis check`: says what is wrong with configuration files, manifests and policy files.

mod admission;
mod connection;
mod excerpt;
mod finding;
mod human;
mod input;
mod json;
mod load;
mod rule;
mod sarif;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use config::authorization_config::{self, LoadOptions, assume_regular_file, stat_file};

use crate::exit::Exit;
use crate::kind::KindArgument;
use crate::output::ignore_closed_pipe;
use finding::{Checked, Outcome};
use input::Input;
use load::{Options, check};

pub(crate) use excerpt::printable;
pub(crate) use finding::is_missing_file;
pub(crate) use human::write_errors;

/// Check configuration files, manifests of access and admission, and ABAC policies
///
/// Every fault is reported in kube-apiserver's words, with its place in the file and, for a near
/// miss, a hint. What a file is, its content tells: an AuthorizationConfiguration (v1, v1beta1 or
/// v1alpha1 of apiserver.config.k8s.io), a kubeconfig or a file of hooks
/// (ExternalAuthorizationHookConfiguration) that says how webhooks are reached, manifests of objects
/// in YAML or JSON, or ABAC policies, one JSON object a line. Of manifests, roles and bindings
/// (rbac.authorization.k8s.io/v1) are checked, and what configures admission
/// (admissionregistration.k8s.io): MutatingWebhookConfiguration and ValidatingWebhookConfiguration of
/// v1, InitializerConfiguration and ExternalAdmissionHookConfiguration of v1alpha1. Other objects are
/// passed over.
///
/// The files that a configuration names are checked with it, and so are the certificates and keys
/// that those name in turn; what is in order there is not mentioned. Nobody is called.
///
/// All manifests are also checked together: an object may occur only once, initializers must not
/// wait for each other in a circle, and who names a role or an initializer that is in none of them is
/// warned. A configuration of admission is held against the rules for new objects, by which an entry
/// of v1alpha1 begins with failurePolicy Ignore, unless it has a metadata.uid and so was stored once.
///
/// Exit codes: 0 when no file has an error, 1 when one has, 2 for wrong usage, 3 when a file can
/// not be read. All files are checked in any case, and the greatest code wins.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  portcullis check authorization.yaml
  portcullis check --strict -o json *.yaml
  portcullis check manifests/ policies.jsonl
  kubectl get clusterroles,mutatingwebhookconfigurations -o yaml | portcullis check -
  portcullis check --assume-files-exist -o sarif config/*.yaml > portcullis.sarif

The first reports for people. The second takes warnings for errors and writes one JSON object.
The third checks all manifests of a folder, and a policy file. The fourth reads standard input.
The last is for CI: the kubeconfig files that the configuration names are on the servers and not
here, and the result is for code scanning.")]
pub(crate) struct Args {
    /// Files and folders to check; `-` is standard input
    ///
    /// A folder stands for all files below it whose names end with .yaml, .yml or .json.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// What all files are, where their content does not tell
    #[arg(long, value_enum, ignore_case = true)]
    kind: Option<KindArgument>,

    /// How findings are written
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Output::Human)]
    output: Output,

    /// Take warnings for errors
    #[arg(long)]
    strict: bool,

    /// The server that the files are for
    #[arg(long, value_enum, default_value_t = ServerRole::Main)]
    role: ServerRole,

    /// Do not look for the files that a file names, such as kubeconfig files and certificates
    ///
    /// They are usually on the server only. Without this, a path that does not lead to a regular
    /// file on this machine is an error, as it is when the server starts.
    #[arg(long)]
    assume_files_exist: bool,

    /// Whether the default roles of Kubernetes exist beside those of the files
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    bootstrap_policy: bool,

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

impl From<ServerRole> for authorization_config::ServerRole {
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
    let mut inputs = Vec::new();
    let mut seen = HashSet::new();
    for path in &args.files {
        for input in Input::from_argument(path, args.stdin_filename.as_deref()) {
            // A file that is named and also in a folder that is named is one file.
            if seen.insert(input.clone()) || input.is_stdin() {
                inputs.push(input);
            }
        }
    }
    if inputs.iter().filter(|input| input.is_stdin()).count() > 1 {
        // When not even this can be written, the exit code still says it.
        let _ = writeln!(err, "error: `-` is given twice, but standard input can be read once");
        return Ok(Exit::Usage);
    }
    let configuration = LoadOptions {
        role: args.role.into(),
        stat_file: if args.assume_files_exist { &assume_regular_file } else { &stat_file },
        ..LoadOptions::default()
    };
    let options = Options {
        configuration,
        has_named_files: !args.assume_files_exist,
        kind: args.kind.map(Into::into),
        has_bootstrap_policy: args.bootstrap_policy,
        is_strict: args.strict,
    };
    let checked = check(&inputs, stdin, &options);
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
