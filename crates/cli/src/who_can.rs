//! `portcullis who-can`: lists the users and groups that are allowed a request.

use std::io::{self, Read, Write};

use api_resources::VerbTarget;
use authz::{Attributes, Namespace, Resource, Subjects, Target, TraceRecorder, User, Verb};
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::offline::{
    LoadFailure, NameResolver, NodeObjectsNeed, OfflineAuthorizer, PolicyListingFlags,
    TargetArgument, TextTable, print_remarks, replace_control_characters, user_for_listed_group,
    user_for_listed_name, write_yaml,
};
use crate::output_helpers::{ignore_closed_pipe, write_pretty_json};

/// The prefix of the user names of service accounts.
const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// List the users and groups that are allowed a request
///
/// RESOURCE is a plural, a singular, a kind or a short name, with or without its API group, as for
/// kubectl: `secrets`, `deploy`, `ingresses.networking.k8s.io`, `pods/log`; or a path such as /healthz.
/// Resources of CustomResourceDefinitions are known if -f or --objects names the definition.
///
/// Each listed user or group alone is allowed; a group stands for all its members, and system:nodes
/// for all nodes.
/// system:masters is always listed, because its members may do everything. Groups that a server adds
/// to users, such as system:authenticated, are listed by name.
///
/// Exit codes: 0 the list is complete, 2 wrong usage or an unknown resource, 3 an input cannot be
/// read or is invalid,
/// 4 an authorizer cannot list the users that it allows, so the printed list may be incomplete.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  portcullis who-can get secrets -n prod -f manifests/ -R
  portcullis who-can update deploy/scale web -n prod -f manifests/ -R -o json
  portcullis who-can delete ns -f manifests/ -R -o wide
  portcullis who-can get /healthz -f manifests/ -R

The second example is about the subresource scale of the deployment web, the third also shows which binding allows each subject, the last is about a path. JSON
and YAML have the fields `users`, `groups` and `evaluationError`; `users` contains service accounts as
system:serviceaccount:NAMESPACE:NAME.")]
pub(crate) struct Args {
    /// Verb of the request: get, list, watch, create, update, patch, delete, ...
    verb: String,

    /// Resource of the request: `RESOURCE[.GROUP][/SUBRESOURCE]`, or a path that begins with `/`
    #[arg(value_name = "RESOURCE")]
    request_target: TargetArgument,

    /// Name of the object
    name: Option<String>,

    /// Namespace of the request, and of given objects that have none; without it the request has
    /// cluster scope
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,

    /// Format of the list
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Human)]
    output: OutputFormat,

    #[command(flatten)]
    listing_flags: PolicyListingFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// Text in aligned columns
    Human,
    /// Also the authorizer that allows each of them, and its reason
    Wide,
    /// One per line: user/NAME, serviceaccount/NAMESPACE/NAME or group/NAME
    Name,
    /// One JSON object with all users and groups
    Json,
    /// The same object as YAML
    Yaml,
}

/// Lists the users and groups that the chain allows.
///
/// # Errors
/// Fails if the list cannot be written.
pub(crate) fn run(
    args: &Args,
    stdin: &mut dyn Read,
    out: &mut dyn Write,
    err: &mut dyn Write,
    colour_of_errors: bool,
) -> io::Result<Exit> {
    let (request, authorizer, remarks) = match load_who_can_request(args, stdin) {
        Ok(loaded) => loaded,
        Err(failure) => return failure.print_errors(err, colour_of_errors),
    };
    print_remarks(err, authorizer.input_remarks())?;
    print_remarks(err, &remarks)?;
    let attributes = request.to_attributes(args);
    let mut subjects = authorizer.authorizer_chain().who_can(&attributes);
    if authorizer.is_policy_partial() {
        subjects.is_incomplete = true;
        subjects
            .subject_listing_notes
            .push("a part of the policy of the cluster cannot be read".to_owned());
    }
    let written = match args.output {
        OutputFormat::Human => write_subject_table(out, err, &subjects),
        OutputFormat::Wide => {
            write_wide_subject_table(out, err, &subjects, &authorizer, &attributes)
        }
        OutputFormat::Name => write_subject_names(out, err, &subjects),
        OutputFormat::Json => {
            write_pretty_json(out, &resource_access_review_status_json(&subjects))
        }
        OutputFormat::Yaml => write_yaml(out, &resource_access_review_status_json(&subjects)),
    };
    ignore_closed_pipe(written)?;
    let n_disagreements = verify_subjects_with_cluster(err, &subjects, &authorizer, &attributes)?;
    let is_complete =
        !subjects.is_incomplete && !authorizer.is_policy_partial() && n_disagreements == 0;
    Ok(if is_complete { Exit::Clean } else { Exit::Undecided })
}

/// The target of the request, with resolved names.
enum ResolvedTarget {
    Resource { api_group: String, resource: String, subresource: String, namespace: String },
    Path(String),
}

impl ResolvedTarget {
    fn to_attributes<'a>(&'a self, args: &'a Args) -> Attributes<'a> {
        let target = match self {
            Self::Path(path) => Target::Path(path),
            Self::Resource { api_group, resource, subresource, namespace } => {
                Target::Resource(Resource {
                    api_group,
                    api_version: "*",
                    namespace: Namespace::new(namespace),
                    resource,
                    subresource,
                    name: args.name.as_deref().unwrap_or_default(),
                    ..Resource::default()
                })
            }
        };
        Attributes { user: None, verb: Verb::new(&args.verb), target }
    }
}

/// Reads all files and resolves the names. Returns remarks about the names.
fn load_who_can_request(
    args: &Args,
    stdin: &mut dyn Read,
) -> Result<(ResolvedTarget, OfflineAuthorizer, Vec<String>), LoadFailure> {
    let namespace = args.namespace.as_deref();
    let is_path = matches!(args.request_target, TargetArgument::Path(_));
    if is_path && (args.name.is_some() || namespace.is_some()) {
        let message = "a path has neither a name nor a namespace".to_owned();
        return Err(LoadFailure::Usage(vec![message]));
    }
    let node_objects = match &args.request_target {
        TargetArgument::Path(_) => NodeObjectsNeed::Skip,
        TargetArgument::Resource(resource) => {
            NodeObjectsNeed::node_objects_needed_for_resource(&resource.name)
        }
    };
    let authorizer = args.listing_flags.load_authorizer(namespace, stdin, node_objects)?;
    let mut resolver = NameResolver::new(&authorizer, args.listing_flags.resource_name_flags);
    let target = match &args.request_target {
        TargetArgument::Path(path) => {
            resolver.warn_of_unknown_verb(&args.verb, VerbTarget::Path);
            ResolvedTarget::Path(path.clone())
        }
        TargetArgument::Resource(name) => {
            resolver.warn_of_unknown_verb(&args.verb, VerbTarget::Resource);
            let resolved = resolver.resolve_resource(name, namespace.unwrap_or_default())?;
            let namespace = resolver.request_namespace(&resolved, namespace);
            ResolvedTarget::Resource {
                namespace,
                api_group: resolved.group,
                resource: resolved.plural,
                subresource: resolved.subresource,
            }
        }
    };
    let remarks = resolver.name_resolution_remarks;
    Ok((target, authorizer, remarks))
}

/// Asks the cluster about each listed subject, if --verify is given. Returns the number of disagreements.
fn verify_subjects_with_cluster(
    err: &mut dyn Write,
    subjects: &Subjects,
    authorizer: &OfflineAuthorizer,
    attributes: &Attributes<'_>,
) -> io::Result<usize> {
    let mut n_disagreements = 0;
    for subject in list_subjects(subjects) {
        let user = subject.to_user();
        let attributes = Attributes { user: Some(&user), ..*attributes };
        if let Some(line) = authorizer.verify_with_cluster(&attributes, true) {
            n_disagreements += 1;
            writeln!(err, "{}", replace_control_characters(&line))?;
        }
    }
    Ok(n_disagreements)
}

/// A listed user, service account or group.
struct ListedSubject<'s> {
    kind: &'static str,
    /// The name to show; that of a service account has its namespace.
    display_name: String,
    user_name: &'s str,
}

impl ListedSubject<'_> {
    /// A user with this name, or a member of this group.
    fn to_user(&self) -> User {
        match self.kind {
            "Group" => user_for_listed_group(self.user_name),
            _ => user_for_listed_name(self.user_name),
        }
    }
}

/// Lists users, then service accounts, then groups.
fn list_subjects(subjects: &Subjects) -> Vec<ListedSubject<'_>> {
    let account = |name: &str| {
        let (namespace, name) = name.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
        Some(format!("{namespace}/{name}"))
    };
    let listed =
        |kind, display_name: String, user_name| ListedSubject { kind, display_name, user_name };
    let users = subjects.users.iter().filter(|user| account(user).is_none());
    let users = users.map(|user| listed("User", user.clone(), user.as_str()));
    let accounts = subjects.users.iter().filter_map(|user| Some((account(user)?, user)));
    let accounts = accounts.map(|(shown, user)| listed("ServiceAccount", shown, user.as_str()));
    let groups = subjects.groups.iter().map(|group| listed("Group", group.clone(), group.as_str()));
    users.chain(accounts).chain(groups).collect()
}

/// Writes users, service accounts and groups to `out`, and notes to `err`.
fn write_subject_table(
    out: &mut dyn Write,
    err: &mut dyn Write,
    subjects: &Subjects,
) -> io::Result<()> {
    let mut table = TextTable::new(["KIND", "NAME"]);
    for subject in list_subjects(subjects) {
        table.push([subject.kind, &subject.display_name]);
    }
    table.write(out)?;
    write_subject_notes(err, subjects)
}

/// Writes the table with the authorizer that allows each subject, and its reason.
fn write_wide_subject_table(
    out: &mut dyn Write,
    err: &mut dyn Write,
    subjects: &Subjects,
    authorizer: &OfflineAuthorizer,
    attributes: &Attributes<'_>,
) -> io::Result<()> {
    let mut table = TextTable::new(["KIND", "NAME", "AUTHORIZER", "REASON"]);
    for subject in list_subjects(subjects) {
        let user = subject.to_user();
        let attributes = Attributes { user: Some(&user), ..*attributes };
        let decision = authorizer.authorize(&attributes, TraceRecorder::disabled_recorder());
        let reason = decision.decision.reason.to_string();
        let decided_by = decision.deciding_authorizer_name.unwrap_or_default();
        table.push([subject.kind, &subject.display_name, decided_by, &reason]);
    }
    table.write(out)?;
    write_subject_notes(err, subjects)
}

fn write_subject_names(
    out: &mut dyn Write,
    err: &mut dyn Write,
    subjects: &Subjects,
) -> io::Result<()> {
    for subject in list_subjects(subjects) {
        let kind = subject.kind.to_ascii_lowercase();
        writeln!(out, "{kind}/{}", replace_control_characters(&subject.display_name))?;
    }
    write_subject_notes(err, subjects)
}

fn write_subject_notes(err: &mut dyn Write, subjects: &Subjects) -> io::Result<()> {
    subjects
        .subject_listing_notes
        .iter()
        .try_for_each(|note| writeln!(err, "note: {}", replace_control_characters(note)))
}

/// Formats the subjects as the status of a ResourceAccessReview.
fn resource_access_review_status_json(subjects: &Subjects) -> Value {
    let mut access_review_status = json!({ "users": subjects.users, "groups": subjects.groups });
    if !subjects.subject_listing_notes.is_empty() {
        access_review_status["evaluationError"] = subjects.subject_listing_notes.join("; ").into();
    }
    access_review_status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_accounts_are_shown_apart() {
        let users = ["zoe", "system:serviceaccount:ns:ci", "system:serviceaccount:odd"];
        let subjects = Subjects {
            users: users.map(str::to_owned).into(),
            groups: ["g".to_owned()].into(),
            subject_listing_notes: vec!["a".to_owned(), "b".to_owned()],
            ..Subjects::default()
        };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        write_subject_table(&mut out, &mut err, &subjects).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "KIND            NAME\n\
             User            system:serviceaccount:odd\n\
             User            zoe\n\
             ServiceAccount  ns/ci\n\
             Group           g\n"
        );
        assert_eq!(String::from_utf8(err).unwrap(), "note: a\nnote: b\n");
        let mut names = Vec::new();
        write_subject_names(&mut names, &mut Vec::new(), &subjects).unwrap();
        assert_eq!(
            String::from_utf8(names).unwrap(),
            "user/system:serviceaccount:odd\nuser/zoe\nserviceaccount/ns/ci\ngroup/g\n"
        );
        assert_eq!(
            resource_access_review_status_json(&subjects).to_string(),
            r#"{"users":["system:serviceaccount:ns:ci","system:serviceaccount:odd","zoe"],"groups":["g"],"evaluationError":"a; b"}"#
        );
    }
}
