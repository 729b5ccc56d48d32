//! `portcullis who-can`: lists the users and groups that are allowed a request.

use std::io::{self, Read, Write};

use authz::{Attributes, Namespace, Resource, Subjects, Target, Verb};
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::offline::{
    LoadFailure, OfflineAuthorizer, PolicyFlags, Table, TargetArgument, WebhookMode, printable,
    write_yaml,
};
use crate::output::{ignore_closed_pipe, write_json};

/// The prefix of the user names of service accounts.
const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// List the users and groups that are allowed a request
///
/// Each listed user or group is sufficient by itself; a group stands for all its members.
/// system:masters is always listed, because its members may do everything. Groups that a server adds
/// to users, such as system:authenticated, are listed by name.
///
/// Exit codes: 0 the list is complete, 2 wrong usage, 3 something can not be read or is invalid,
/// 4 an authorizer can not list the users that it allows, so the printed list may be incomplete.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  portcullis who-can get secrets -n prod --objects manifests/
  portcullis who-can update deployments.apps/scale web -n prod --objects manifests/ -o json
  portcullis who-can get /healthz --objects manifests/

The second example is about the subresource scale of the deployment web, the last about a path. JSON
and YAML have the fields `users`, `groups` and `evaluationError`; `users` contains service accounts as
system:serviceaccount:NAMESPACE:NAME.")]
pub(crate) struct Args {
    /// Verb of the request: get, list, watch, create, update, patch, delete, ...
    verb: String,

    /// Resource of the request: `RESOURCE[.GROUP][/SUBRESOURCE]`, or a path that begins with `/`
    #[arg(value_name = "RESOURCE")]
    target: TargetArgument,

    /// Name of the object
    name: Option<String>,

    /// Namespace of the object; without it the request has cluster scope
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,

    /// Format of the list
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Output::Table)]
    output: Output,

    #[command(flatten)]
    policy: PolicyFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Text in aligned columns
    Table,
    /// One JSON object with all users and groups
    Json,
    /// The same object as YAML
    Yaml,
}

/// Lists the users and groups that the chain allows.
///
/// # Errors
/// Fails if the list can not be written.
pub(crate) fn run(
    args: &Args,
    stdin: &mut dyn Read,
    out: &mut dyn Write,
    err: &mut dyn Write,
    colour_of_errors: bool,
) -> io::Result<Exit> {
    let loaded = attributes_from_args(args).and_then(|attributes| {
        Ok((attributes, OfflineAuthorizer::load(&args.policy, WebhookMode::Skip, stdin)?))
    });
    let (attributes, authorizer) = match loaded {
        Ok(loaded) => loaded,
        Err(failure) => return failure.write_to(err, colour_of_errors),
    };
    let subjects = authorizer.chain().who_can(&attributes);
    let written = match args.output {
        Output::Table => write_table(out, err, &subjects),
        Output::Json => write_json(out, &review_status(&subjects)),
        Output::Yaml => write_yaml(out, &review_status(&subjects)),
    };
    ignore_closed_pipe(written)?;
    Ok(if subjects.is_incomplete { Exit::Undecided } else { Exit::Clean })
}

fn attributes_from_args(args: &Args) -> Result<Attributes<'_>, LoadFailure> {
    let name = args.name.as_deref().unwrap_or_default();
    let namespace = args.namespace.as_deref().unwrap_or_default();
    let target = match &args.target {
        TargetArgument::Path(path) if name.is_empty() && namespace.is_empty() => Target::Path(path),
        TargetArgument::Path(_) => {
            let message = "a path has neither a name nor a namespace".to_owned();
            return Err(LoadFailure::Usage(vec![message]));
        }
        TargetArgument::Resource(text) => Target::Resource(Resource {
            api_group: &text.api_group,
            api_version: "*",
            namespace: Namespace::new(namespace),
            resource: &text.resource,
            subresource: &text.subresource,
            name,
            ..Resource::default()
        }),
    };
    Ok(Attributes { user: None, verb: Verb::new(&args.verb), target })
}

/// Writes users, service accounts and groups to `out`, and notes to `err`.
fn write_table(out: &mut dyn Write, err: &mut dyn Write, subjects: &Subjects) -> io::Result<()> {
    let mut table = Table::new(["KIND", "NAME"]);
    let account = |name: &str| {
        let (namespace, name) = name.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
        Some(format!("{namespace}/{name}"))
    };
    for user in subjects.users.iter().filter(|user| account(user).is_none()) {
        table.push(["User", user]);
    }
    for account in subjects.users.iter().filter_map(|user| account(user)) {
        table.push(["ServiceAccount", &account]);
    }
    for group in &subjects.groups {
        table.push(["Group", group]);
    }
    table.write(out)?;
    for note in &subjects.notes {
        writeln!(err, "note: {}", printable(note))?;
    }
    Ok(())
}

/// Formats the subjects as the status of a ResourceAccessReview.
fn review_status(subjects: &Subjects) -> Value {
    let mut review_status = json!({ "users": subjects.users, "groups": subjects.groups });
    if !subjects.notes.is_empty() {
        review_status["evaluationError"] = subjects.notes.join("; ").into();
    }
    review_status
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
            notes: vec!["a".to_owned(), "b".to_owned()],
            ..Subjects::default()
        };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        write_table(&mut out, &mut err, &subjects).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "KIND            NAME\n\
             User            system:serviceaccount:odd\n\
             User            zoe\n\
             ServiceAccount  ns/ci\n\
             Group           g\n"
        );
        assert_eq!(String::from_utf8(err).unwrap(), "note: a\nnote: b\n");
        assert_eq!(
            review_status(&subjects).to_string(),
            r#"{"users":["system:serviceaccount:ns:ci","system:serviceaccount:odd","zoe"],"groups":["g"],"evaluationError":"a; b"}"#
        );
    }
}
