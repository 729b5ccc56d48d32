//! `portcullis check`: checks configuration files, manifests, policy files, and the roles and bindings of a cluster.

mod admission_configurations;
mod check_inputs;
mod check_webhook_connection_files;
mod cluster_manifests;
mod finding;
mod finding_rule;
mod human_output;
mod json_output;
mod read_input;
mod sarif_output;
mod source_excerpt;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use config::authorization_config::{self, LoadOptions, assume_regular_file, stat_file};

use crate::exit::Exit;
use crate::file_arguments::FilenameFlags;
use crate::file_kinds::FileKindArgument;
use crate::offline::{ClusterConnectionFlags, StoredRbac, print_remarks};
use crate::output_helpers::ignore_closed_pipe;
use crate::program::plugin_authorizers;
use check_inputs::{CheckOptions, check_inputs};
use cluster_manifests::ClusterManifests;
use finding::{CheckOutcome, CheckedFile};
use read_input::CheckInput;

pub(crate) use finding::is_missing_file_fault;
pub(crate) use human_output::write_file_errors;
pub(crate) use source_excerpt::replace_control_characters;

/// Check configuration files, RBAC and admission manifests, and ABAC policies
///
/// The command reports every error in kube-apiserver's words, with its position in the file and, if
/// a valid name is close to the given one, a hint. It detects the kind of a file from its content:
///
/// - AuthorizationConfiguration: v1, v1beta1 or v1alpha1 of apiserver.config.k8s.io;
///
/// - kubeconfig, or ExternalAuthorizationHookConfiguration: the connections to webhooks;
///
/// - manifests in YAML or JSON: the command checks roles and bindings of
///   rbac.authorization.k8s.io/v1, MutatingWebhookConfiguration and ValidatingWebhookConfiguration of
///   admissionregistration.k8s.io/v1, and InitializerConfiguration and
///   ExternalAdmissionHookConfiguration of admissionregistration.k8s.io/v1alpha1, and skips all other
///   objects;
///
/// - ABAC policies: one JSON object per line.
///
/// The command also checks the files that a configuration names, and the certificates and keys that
/// those files name; it reports them only if they have errors or warnings. It makes no network calls.
///
/// It also checks all manifests together: it is an error if an object occurs twice with different
/// content, or if initializers wait for each other in a cycle; an object that occurs twice with the
/// same content, and a reference to a role or an initializer that no file contains, are warnings.
/// Admission configurations must follow the rules for new objects, which require failurePolicy Ignore
/// for a new v1alpha1 entry. An object with a metadata.uid was stored before and follows the rules for
/// updates.
///
/// Files without Kubernetes objects, such as the values of a Helm chart, are skipped with a note. A
/// Helm template is an error that says so; render it with `helm template`, or use --exclude.
///
/// Without files the command reads a cluster as `who-can` does, and checks its roles and bindings. With files
/// and --kubeconfig or --context it reports about the files alone, as applied to the cluster: a role that
/// the cluster has is not missing.
///
/// Exit codes: 0 no file has an error, 1 a file has an error, 2 wrong usage, 3 a file or the cluster
/// cannot be read, 4 no file has an error, and a part of the cluster cannot be read. The command always checks
/// all files and returns the worst code: 3, then 1.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  portcullis check authorization.yaml
  portcullis check --strict -o json *.yaml
  portcullis check manifests/ policies.jsonl
  portcullis check -f chart/ -R --exclude templates -n prod
  kubectl get clusterroles,mutatingwebhookconfigurations -o yaml | portcullis check -
  portcullis check --context prod
  portcullis check -f new/ -R --context prod
  portcullis check --assume-files-exist -o sarif config/*.yaml > portcullis.sarif

The first example prints a report for people. The second treats warnings as errors and prints one
JSON object. The third checks all manifests in a directory, and a policy file. The fourth leaves out
templates, and objects without a namespace are in prod. The fifth reads standard input. The next two
check the roles and bindings of a cluster, and files that will be applied to it. The last is for CI, where the kubeconfig files that the configuration names do not
exist; it prints SARIF for code scanning.")]
pub(crate) struct Args {
    /// Files and directories to check; `-` is standard input
    ///
    /// In a directory the command checks all files, at any depth, whose names end with .yaml, .yml
    /// or .json.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    filename_flags: FilenameFlags,

    /// Namespace of objects that have none
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,

    /// Kind of all files; detected from the content of each file if not given
    #[arg(long, value_enum, ignore_case = true)]
    kind: Option<FileKindArgument>,

    /// Format of the findings
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Human)]
    output: OutputFormat,

    /// Treat warnings as errors
    #[arg(long = "strict")]
    warnings_are_errors: bool,

    /// Role of the server that will load the files
    #[arg(long, value_enum, default_value_t = ServerRoleArgument::Main)]
    role: ServerRoleArgument,

    /// Do not check the files that a file names, such as kubeconfig files and certificates
    ///
    /// Those files often exist only on the server. Without this flag, a path that is not a regular
    /// file on this machine is an error, as it is when the server starts.
    #[arg(long)]
    assume_files_exist: bool,

    /// Assume that the default roles of Kubernetes exist in addition to the roles in the files
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

    /// The file name that findings about standard input show. `help` has the text, because rustdoc would read
    /// `<stdin>` as HTML.
    #[arg(
        long,
        value_name = "PATH",
        help = "File name to report for standard input, for editors that check a buffer [default: <stdin>]"
    )]
    stdin_filename: Option<PathBuf>,

    #[command(flatten)]
    cluster: ClusterConnectionFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// Text for people, with the source lines
    Human,
    /// One JSON object with all findings
    Json,
    /// SARIF 2.1.0 for code scanning
    Sarif,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ServerRoleArgument {
    /// The main API server, such as kube-apiserver
    Main,
    /// A server that delegates authorization to the main one; it may use InClusterConfig
    Delegated,
}

impl From<ServerRoleArgument> for authorization_config::ServerRole {
    fn from(role: ServerRoleArgument) -> Self {
        match role {
            ServerRoleArgument::Main => Self::Main,
            ServerRoleArgument::Delegated => Self::Delegated,
        }
    }
}

/// Checks all files and writes the findings.
///
/// # Errors
/// Fails if the result cannot be written.
pub(crate) fn run(
    args: &Args,
    stdin: &mut dyn Read,
    out: &mut dyn Write,
    err: &mut dyn Write,
    colour: bool,
) -> io::Result<Exit> {
    let mut inputs = Vec::new();
    let mut seen = HashSet::new();
    for path in args.filename_flags.input_paths(&args.files) {
        for input in CheckInput::inputs_from_argument(path, args.stdin_filename.as_deref()) {
            // An argument may name a file and another argument its directory.
            if seen.insert(input.clone()) || input.is_stdin() {
                inputs.push(input);
            }
        }
    }
    if inputs.iter().filter(|input| input.is_stdin()).count() > 1 {
        // If standard error cannot be written, the exit code still reports it.
        let _ = writeln!(err, "error: `-` is given twice, but standard input can be read once");
        return Ok(Exit::Usage);
    }
    let stored = StoredRbac::read(&args.cluster, !inputs.is_empty(), args.namespace.as_deref());
    let cluster = match stored {
        Ok(None) if inputs.is_empty() => {
            // If standard error cannot be written, the exit code still reports it.
            let _ = writeln!(err, "{NOTHING_TO_CHECK}");
            return Ok(Exit::Usage);
        }
        Ok(None) => None,
        Ok(Some(stored)) => {
            print_remarks(err, &stored.remarks)?;
            Some(ClusterManifests::from_stored_rbac(stored))
        }
        Err(failure) => return failure.print_errors(err, colour),
    };
    let plugin_authorizer_types = plugin_authorizers().plugin_types();
    let load_options = LoadOptions {
        plugin_authorizer_types: &plugin_authorizer_types,
        role: args.role.into(),
        stat_file: if args.assume_files_exist { &assume_regular_file } else { &stat_file },
        ..LoadOptions::default()
    };
    let options = CheckOptions {
        load_options,
        checks_referenced_files: !args.assume_files_exist,
        kind: args.kind.map(Into::into),
        has_bootstrap_policy: args.bootstrap_policy,
        warnings_are_errors: args.warnings_are_errors,
        namespace: args.namespace.as_deref(),
    };
    let checked = check_inputs(&inputs, stdin, &options, cluster.as_ref());
    let written = match args.output {
        OutputFormat::Human => human_output::write_human_report(out, err, &checked, colour),
        OutputFormat::Json => json_output::write_json_report(out, &checked),
        OutputFormat::Sarif => sarif_output::write_sarif_report(out, &checked),
    };
    ignore_closed_pipe(written)?;
    Ok(match worst_exit(&checked) {
        Exit::Clean if cluster.is_some_and(|own| own.is_rbac_partial) => Exit::Undecided,
        exit => exit,
    })
}

/// The error of a command without files where no cluster is configured.
const NOTHING_TO_CHECK: &str =
    "error: nothing to check: name files, or a cluster with --kubeconfig";

fn worst_exit(checked: &[CheckedFile]) -> Exit {
    let exits = checked.iter().map(|checked| match &checked.check_outcome {
        CheckOutcome::Unreadable { .. } => Exit::Unreadable,
        CheckOutcome::Read(read) if read.errors.is_empty() => Exit::Clean,
        CheckOutcome::Read(_) => Exit::Findings,
    });
    exits.max().unwrap_or(Exit::Clean)
}
