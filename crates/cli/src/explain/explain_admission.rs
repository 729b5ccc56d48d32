//! `portcullis explain --admission`: shows which hooks and initializers apply to a write, without calling
//! hooks.

mod admission_enum_names;
mod admission_write;
mod expected_initializers;
mod explained_write;
mod find_resource;
mod hook_outcomes;
mod human_output;
mod json_output;
mod manifest_cluster;
mod prepare_for_admission;

use std::io::{self, Read};
use std::path::PathBuf;

use ::admission::{AuthorizerDecisions, Operation};
use authz::User;
use clap::ValueEnum;
use manifests::UnstructuredObject;

use self::admission_write::{AdmissionWrite, AdmissionWriteOptions};
use self::expected_initializers::{ExpectedInitializers, determine_expected_initializers};
use self::explained_write::ExplainedWrite;
use self::hook_outcomes::explain_hooks;
use self::manifest_cluster::ManifestCluster;
use super::{Args, OutputFormat};
use crate::exit::Exit;
use crate::file_arguments::InputPath;
use crate::offline::{
    FileProblem, LoadFailure, NameResolver, ObjectSelection, ResourceNameFlags, print_remarks,
    read_manifests,
};

/// The write that admission is explained for.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Admission of a write")]
pub(crate) struct ExplainAdmissionFlags {
    /// Explain the admission of a write: which hooks the server would call, and which initializers a
    /// new object waits for
    ///
    /// FILE contains the objects to write, as manifests. -f and --objects contain the admission
    /// configurations, the namespaces that their selectors match, the CustomResourceDefinitions, and
    /// the roles and bindings that `authorizer` in match conditions evaluates. --as and --as-group set
    /// the user who writes. An object without a namespace goes to the one of --namespace, or to
    /// `default`. The command calls no admission hook.
    #[arg(long, conflicts_with_all = ["verb", "name", "path"])]
    pub(super) admission: bool,

    /// Operation to explain; defaults to update if --old is given, otherwise to create
    ///
    /// FILE contains the new objects for create and update, the objects to delete for delete, and the
    /// objects to connect to for connect.
    #[arg(long, value_enum, requires = "admission")]
    operation: Option<OperationArgument>,

    /// Manifest with the stored objects, for an update; `-` is standard input
    #[arg(long = "old", value_name = "FILE", requires = "admission")]
    old_objects_file: Option<PathBuf>,

    /// Subresource of the request, such as `status`, or `exec` for connect
    ///
    /// If the kind in FILE belongs to several resources, --resource selects one.
    #[arg(long, requires = "admission")]
    subresource: Option<String>,

    /// Explain a dry run: the server stores nothing, and refuses if a hook has side effects
    #[arg(long, requires = "admission")]
    dry_run: bool,

    /// Also show hooks that have no matching rule
    #[arg(long = "all", requires = "admission")]
    show_all_hooks: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OperationArgument {
    /// Create a new object
    Create,
    /// Replace or patch a stored object
    Update,
    /// Delete a stored object
    Delete,
    /// Connect to an object, such as exec into a pod
    Connect,
}

impl From<OperationArgument> for Operation {
    fn from(operation: OperationArgument) -> Self {
        match operation {
            OperationArgument::Create => Self::Create,
            OperationArgument::Update => Self::Update,
            OperationArgument::Delete => Self::Delete,
            OperationArgument::Connect => Self::Connect,
        }
    }
}

/// Explains the admission of each object.
///
/// # Errors
/// Fails if an explanation cannot be written.
pub(super) fn run(
    args: &Args,
    stdin: &mut dyn Read,
    out: &mut dyn io::Write,
    err: &mut dyn io::Write,
    colour: bool,
    colour_of_errors: bool,
) -> io::Result<Exit> {
    let (cluster, options, objects, remarks) = match load_admission_inputs(args, stdin) {
        Ok(loaded) => loaded,
        Err(failure) => return failure.print_errors(err, colour_of_errors),
    };
    print_remarks(err, &remarks)?;
    let mut worst = Exit::Clean;
    for (idx, (new, old)) in objects.iter().enumerate() {
        let mut write =
            match AdmissionWrite::new(&cluster.resource_registry, &options, new, old.as_ref()) {
                Ok(write) => write,
                Err(error) => {
                    worst = worst.max(Exit::Unreadable);
                    LoadFailure::from_problem(file_problem_at_object(new, &error.to_string()))
                        .print_errors(err, colour_of_errors)?;
                    continue;
                }
            };
        let expected_initializers = determine_expected_initializers(&cluster, &write);
        if let Some(pending) = expected_initializers.assigned_initializers() {
            write.assign_initializers(pending);
        }
        let explained = explain_write(&cluster, &options, &write, expected_initializers);
        worst = worst.max(explained.exit_code());
        let written = match args.output {
            OutputFormat::Human => {
                if idx > 0 {
                    writeln!(out)?;
                }
                human_output::write_human_explanation(
                    out,
                    &explained,
                    args.admission_flags.show_all_hooks,
                    colour,
                )
            }
            OutputFormat::Json => json_output::write_json_explanation(
                out,
                &explained,
                args.admission_flags.show_all_hooks,
            ),
        };
        crate::output_helpers::ignore_closed_pipe(written)?;
    }
    Ok(worst)
}

/// Explains a write as far as possible without calling hooks.
fn explain_write<'a>(
    cluster: &'a ManifestCluster,
    options: &'a AdmissionWriteOptions,
    write: &'a AdmissionWrite<'a>,
    expected_initializers: ExpectedInitializers<'a>,
) -> ExplainedWrite<'a> {
    let mut decisions = AuthorizerDecisions::default();
    // The server decides about initializers before it calls a hook.
    let hooks = match &expected_initializers {
        ExpectedInitializers::Refused(_) => Vec::new(),
        ExpectedInitializers::None
        | ExpectedInitializers::For(_, _)
        | ExpectedInitializers::Unknown(_) => explain_hooks(cluster, write, &mut decisions),
    };
    ExplainedWrite { options, write, expected_initializers, explained_hooks: hooks }
}

/// The objects to be written, each with its stored state in an update.
type NewAndStoredObjects = Vec<(UnstructuredObject, Option<UnstructuredObject>)>;

fn load_admission_inputs(
    args: &Args,
    stdin: &mut dyn Read,
) -> Result<(ManifestCluster, AdmissionWriteOptions, NewAndStoredObjects, Vec<String>), LoadFailure>
{
    let mut options = parse_write_options(args)?;
    let flags = &args.admission_flags;
    let stdin_path = PathBuf::from("-");
    let files = match args.arguments.as_slice() {
        [] => std::slice::from_ref(&stdin_path),
        files => files,
    };
    let input = |path| InputPath {
        path,
        is_recursive: true,
        exclude_patterns: &args.answer_flags.policy_flags.filename_flags.exclude_patterns,
    };
    let new_files: Vec<InputPath<'_>> = files.iter().map(|path| input(path)).collect();
    let old_files: Vec<InputPath<'_>> =
        flags.old_objects_file.iter().map(|path| input(path)).collect();
    let object_files = args.answer_flags.policy_flags.object_input_paths();
    let all = new_files.iter().chain(&old_files).chain(&object_files);
    if all.filter(|path| path.is_stdin()).count() > 1 {
        return Err(usage_failure("standard input can be read once: name a FILE, or files for -f"));
    }
    let new = read_manifests(&new_files, stdin, None, ObjectSelection::ALL);
    let new = new.map_err(LoadFailure::Files)?;
    let old = read_manifests(&old_files, stdin, None, ObjectSelection::ALL);
    let old = old.map_err(LoadFailure::Files)?;
    let namespace = args.answer_flags.question_flags.namespace.as_deref();
    let cluster = ManifestCluster::load_from_flags(
        &args.answer_flags.policy_flags,
        &args.answer_flags.webhook_call_flags,
        namespace,
        stdin,
    )?;
    let mut resolver = NameResolver::new(&cluster.offline_authorizer, ResourceNameFlags::default());
    options.user = resolver.resolve_user(&args.answer_flags.question_flags.subject_flags);
    let mut remarks = new.input_remarks;
    remarks.extend(old.input_remarks);
    remarks.extend_from_slice(cluster.offline_authorizer.input_remarks());
    remarks.extend(resolver.name_resolution_remarks);
    let (new, old) = (new.selected_objects, old.selected_objects);
    let objects = match options.operation {
        Operation::Update => {
            new.into_iter().map(|new| pair_with_stored_object(new, &old)).collect()
        }
        Operation::Create | Operation::Delete | Operation::Connect => {
            Ok(new.into_iter().map(|new| (new, None)).collect())
        }
    };
    Ok((cluster, options, objects?, remarks))
}

/// Reads the flags that apply to all writes.
fn parse_write_options(args: &Args) -> Result<AdmissionWriteOptions, LoadFailure> {
    let flags = &args.admission_flags;
    let operation = match (flags.operation, &flags.old_objects_file) {
        (Some(operation), _) => operation.into(),
        (None, Some(_)) => Operation::Update,
        (None, None) => Operation::Create,
    };
    let subject = &args.answer_flags.question_flags.subject_flags;
    if subject.user.is_none() && subject.groups.is_empty() {
        return Err(usage_failure("--admission needs --as or --as-group"));
    }
    match (operation, &flags.old_objects_file) {
        (Operation::Update, None) => {
            let message = "--operation update needs --old, the stored object";
            return Err(usage_failure(message));
        }
        (Operation::Create | Operation::Delete | Operation::Connect, Some(_)) => {
            return Err(usage_failure("--old is for --operation update"));
        }
        (_, _) => {}
    }
    if operation == Operation::Connect && flags.subresource.is_none() {
        return Err(usage_failure("--operation connect needs --subresource, such as exec"));
    }
    Ok(AdmissionWriteOptions {
        operation,
        subresource: flags.subresource.clone().unwrap_or_default(),
        resource: args.answer_flags.question_flags.resource.clone(),
        namespace: args.answer_flags.question_flags.namespace.clone(),
        is_dry_run: flags.dry_run,
        user: User::default(),
    })
}

fn usage_failure(message: &str) -> LoadFailure {
    LoadFailure::Usage(vec![message.to_owned()])
}

/// Pairs an object with its stored state. An omitted namespace matches every namespace.
fn pair_with_stored_object(
    new: UnstructuredObject,
    all: &[UnstructuredObject],
) -> Result<(UnstructuredObject, Option<UnstructuredObject>), LoadFailure> {
    let is_old = |old: &&UnstructuredObject| {
        let is_same_namespace =
            [new.namespace(), old.namespace()].contains(&"") || new.namespace() == old.namespace();
        (new.kind_name(), new.name()) == (old.kind_name(), old.name()) && is_same_namespace
    };
    match all.iter().find(is_old) {
        Some(old) => Ok((new.clone(), Some(old.clone()))),
        None => {
            let (kind, name) = (new.kind_name(), new.name());
            let message = format!("the file of --old contains no {kind} named `{name}`");
            Err(LoadFailure::from_problem(file_problem_at_object(&new, &message)))
        }
    }
}

fn file_problem_at_object(object: &UnstructuredObject, message: &str) -> FileProblem {
    let position = object.position();
    let (file, line, column) = (&object.file_name, position.line, position.column);
    FileProblem::Unreadable(format!("{file}:{line}:{column}: {message}"))
}
