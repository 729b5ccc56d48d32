//! `portcullis explain --admission`: who would touch a write, without calling anybody.

mod cluster;
mod consider;
mod human;
mod json;
mod resource;
mod settle;
mod verdict;
mod waiting;
mod words;
mod write;

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ::admission::{Decisions, Operation};
use clap::ValueEnum;
use manifests::WholeObject;

use self::cluster::Cluster;
use self::consider::consider_all;
use self::verdict::Verdict;
use self::waiting::{Waiting, waiting};
use self::write::{How, Write};
use super::{Args, Output};
use crate::exit::Exit;
use crate::offline::{Trouble, Unusable, Wanted, read_objects, user};

/// The write that admission is explained for.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Admission of a write")]
pub(crate) struct AdmissionFlags {
    /// Explain the admission of a write: which hooks the server would call, and which initializers a
    /// new object waits for
    ///
    /// FILE contains the objects to write, as manifests. --objects contains the admission
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
    #[arg(long, value_name = "FILE", requires = "admission")]
    old: Option<PathBuf>,

    /// Subresource of the request, such as `status`, or `exec` for connect
    ///
    /// If the kind in FILE belongs to several resources, --resource selects one.
    #[arg(long, requires = "admission")]
    subresource: Option<String>,

    /// Explain a dry run: the server stores nothing, and refuses if a hook has side effects
    #[arg(long, requires = "admission")]
    dry_run: bool,

    /// Also show hooks that have no matching rule
    #[arg(long, requires = "admission")]
    all: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OperationArgument {
    /// Create an object
    Create,
    /// Replace or patch an object
    Update,
    /// Delete an object
    Delete,
    /// Connect to an object
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
/// Fails if an explanation can not be written.
pub(super) fn run(
    args: &Args,
    stdin: &mut dyn Read,
    out: &mut dyn io::Write,
    err: &mut dyn io::Write,
    colour: bool,
    colour_of_errors: bool,
) -> io::Result<Exit> {
    let (cluster, how, objects) = match load(args, stdin) {
        Ok(loaded) => loaded,
        Err(unusable) => return unusable.show(err, colour_of_errors),
    };
    let mut worst = Exit::Clean;
    for (idx, (new, old)) in objects.iter().enumerate() {
        let mut write = match Write::new(&cluster.registry, &how, new, old.as_ref()) {
            Ok(write) => write,
            Err(message) => {
                worst = worst.max(Exit::Unreadable);
                Unusable::one(placed(new, &message)).show(err, colour_of_errors)?;
                continue;
            }
        };
        let waiting = waiting(&cluster, &write);
        if let Some(pending) = waiting.assigned() {
            write.assign(pending);
        }
        let verdict = explain(&cluster, &how, &write, waiting);
        worst = worst.max(verdict.exit());
        let written = match args.output {
            Output::Human => {
                if idx > 0 {
                    writeln!(out)?;
                }
                human::write(out, &verdict, args.admission.all, colour)
            }
            Output::Json => json::write(out, &verdict, args.admission.all),
        };
        crate::output::ignore_closed_pipe(written)?;
    }
    Ok(worst)
}

/// What becomes of a write, as far as it is known without calling anybody.
fn explain<'a>(
    cluster: &'a Cluster,
    how: &'a How,
    write: &'a Write<'a>,
    waiting: Waiting<'a>,
) -> Verdict<'a> {
    let mut decisions = Decisions::default();
    // Whom the object waits for is decided before any hook is asked.
    let hooks = match &waiting {
        Waiting::Refused(_) => Vec::new(),
        Waiting::Nobody | Waiting::For(_, _) | Waiting::Open(_) => {
            consider_all(cluster, write, &mut decisions)
        }
    };
    Verdict { how, write, waiting, hooks }
}

/// The objects to be written, each with its stored state in an update.
type Objects = Vec<(WholeObject, Option<WholeObject>)>;

fn load(args: &Args, stdin: &mut dyn Read) -> Result<(Cluster, How, Objects), Unusable> {
    let how = how(args)?;
    let flags = &args.admission;
    let stdin_path = PathBuf::from("-");
    let files = match args.files.as_slice() {
        [] => std::slice::from_ref(&stdin_path),
        files => files,
    };
    let all = files.iter().chain(&flags.old).chain(&args.policy.objects);
    if all.filter(|path| *path == Path::new("-")).count() > 1 {
        return Err(usage("standard input can be read once: name a FILE, or files for --objects"));
    }
    let new = read_objects(files, stdin, Wanted::EVERYTHING).map_err(Unusable::Invalid)?.kept;
    let old = match &flags.old {
        None => Vec::new(),
        Some(path) => {
            let old = read_objects(std::slice::from_ref(path), stdin, Wanted::EVERYTHING);
            old.map_err(Unusable::Invalid)?.kept
        }
    };
    let cluster = Cluster::load(&args.policy, &args.calls, stdin)?;
    let objects = match how.operation {
        Operation::Update => new.into_iter().map(|new| with_old(new, &old)).collect(),
        Operation::Create | Operation::Delete | Operation::Connect => {
            Ok(new.into_iter().map(|new| (new, None)).collect())
        }
    };
    Ok((cluster, how, objects?))
}

/// What the flags say about all writes.
fn how(args: &Args) -> Result<How, Unusable> {
    let flags = &args.admission;
    let operation = match (flags.operation, &flags.old) {
        (Some(operation), _) => operation.into(),
        (None, Some(_)) => Operation::Update,
        (None, None) => Operation::Create,
    };
    let subject = &args.question.subject;
    if subject.user.is_none() && subject.groups.is_empty() {
        return Err(usage("--admission needs --as or --as-group: hooks are told who writes"));
    }
    match (operation, &flags.old) {
        (Operation::Update, None) => {
            let message = "--operation update needs --old: hooks are told the stored object, too";
            return Err(usage(message));
        }
        (Operation::Create | Operation::Delete | Operation::Connect, Some(_)) => {
            return Err(usage("--old is for --operation update"));
        }
        (_, _) => {}
    }
    if operation == Operation::Connect && flags.subresource.is_none() {
        return Err(usage("--operation connect needs --subresource, such as exec"));
    }
    Ok(How {
        operation,
        subresource: flags.subresource.clone().unwrap_or_default(),
        resource: args.question.resource.clone(),
        namespace: args.question.namespace.clone(),
        is_dry_run: flags.dry_run,
        user: user(subject),
    })
}

fn usage(message: &str) -> Unusable {
    Unusable::Usage(vec![message.to_owned()])
}

/// An object with its stored state. A namespace that one of the two does not say is no difference.
fn with_old(
    new: WholeObject,
    all: &[WholeObject],
) -> Result<(WholeObject, Option<WholeObject>), Unusable> {
    let is_old = |old: &&WholeObject| {
        let is_same_namespace =
            [new.namespace(), old.namespace()].contains(&"") || new.namespace() == old.namespace();
        (new.kind_name(), new.name()) == (old.kind_name(), old.name()) && is_same_namespace
    };
    match all.iter().find(is_old) {
        Some(old) => Ok((new.clone(), Some(old.clone()))),
        None => {
            let (kind, name) = (new.kind_name(), new.name());
            let message = format!("the file of --old has no {kind} of the name `{name}`");
            Err(Unusable::one(placed(&new, &message)))
        }
    }
}

fn placed(kept: &WholeObject, message: &str) -> Trouble {
    let position = kept.position();
    let (file, line, column) = (&kept.file, position.line, position.column);
    Trouble::Unreadable(format!("{file}:{line}:{column}: {message}"))
}
