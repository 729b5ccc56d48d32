//! `portcullis rules`: lists the rules of a user.

mod rule_rows;

use std::io::{self, Read, Write};

use authz::{Namespace, Rules, User};
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::offline::{
    LoadFailure, OfflineAuthorizer, PolicyFlags, SubjectFlags, Table, WebhookMode, printable,
    user_from_flags, write_yaml,
};
use crate::output::{ignore_closed_pipe, write_json};
use rule_rows::{build_non_resource_rows, build_resource_rows};

/// The group whose members may do everything. No rule expresses that.
const SUPERUSER_GROUP: &str = "system:masters";

/// List what a user may do in a namespace
///
/// The command lists the rules that SelfSubjectRulesReview returns for the user: those of the
/// namespace and those of the whole cluster. The table has one row for each resource and path; JSON
/// and YAML contain the rules as the authorizers return them, in the fields `resourceRules`,
/// `nonResourceRules`, `incomplete` and `evaluationError`.
///
/// The list may be incomplete: the node authorizer decides from the pods of a node, and a webhook can
/// not list rules. Then the command prints a warning to standard error and sets `incomplete`.
///
/// Exit codes: 0 the rules are listed, 2 wrong usage, 3 something can not be read or is invalid.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  portcullis rules --as ana --as-group dev -n prod --objects manifests/
  portcullis rules --as system:serviceaccount:ci:builder -n ci --objects manifests/ -o yaml")]
pub(crate) struct Args {
    #[command(flatten)]
    subject: SubjectFlags,

    /// Namespace of the rules
    #[arg(short, long, value_name = "NAMESPACE", default_value = "default")]
    namespace: String,

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
    /// One JSON object with all rules
    Json,
    /// The same object as YAML
    Yaml,
}

/// Lists the rules of a user.
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
    let loaded = user_from_args(args).and_then(|user| {
        Ok((user, OfflineAuthorizer::load(&args.policy, WebhookMode::Skip, stdin)?))
    });
    let (user, authorizer) = match loaded {
        Ok(loaded) => loaded,
        Err(failure) => return failure.write_to(err, colour_of_errors),
    };
    let rules = authorizer.chain().rules_for(&user, Namespace::new(&args.namespace));
    if user.is_in_group(SUPERUSER_GROUP) {
        writeln!(err, "note: members of {SUPERUSER_GROUP} may do everything, whatever is listed")?;
    }
    if rules.is_incomplete {
        writeln!(err, "warning: the list is incomplete, more may be allowed")?;
    }
    if let Some(error) = &rules.error {
        writeln!(err, "warning: {}", printable(&error.to_string()))?;
    }
    let written = match args.output {
        Output::Table => write_tables(out, &rules),
        Output::Json => write_json(out, &review_status(&rules)),
        Output::Yaml => write_yaml(out, &review_status(&rules)),
    };
    ignore_closed_pipe(written)?;
    Ok(Exit::Clean)
}

fn user_from_args(args: &Args) -> Result<User, LoadFailure> {
    if args.subject.user.is_none() && args.subject.groups.is_empty() {
        let message = "`portcullis rules` needs --as or --as-group".to_owned();
        return Err(LoadFailure::Usage(vec![message]));
    }
    Ok(user_from_flags(&args.subject))
}

fn write_tables(out: &mut dyn Write, rules: &Rules) -> io::Result<()> {
    let (resources, paths) = (build_resource_rows(rules), build_non_resource_rows(rules));
    if !resources.is_empty() || paths.is_empty() {
        let mut table = Table::new(["VERBS", "API GROUPS", "RESOURCES", "NAMES"]);
        for row in &resources {
            let group = if row.api_group.is_empty() { "\"\"" } else { &row.api_group };
            table.push([&row.verbs.join(","), group, &row.resource, &row.resource_names.join(",")]);
        }
        table.write(out)?;
    }
    if !paths.is_empty() {
        if !resources.is_empty() {
            writeln!(out)?;
        }
        let mut table = Table::new(["VERBS", "NON-RESOURCE URLS"]);
        for (path, verbs) in &paths {
            table.push([&verbs.join(","), path]);
        }
        table.write(out)?;
    }
    Ok(())
}

/// Formats the rules as the status of a SelfSubjectRulesReview.
fn review_status(rules: &Rules) -> Value {
    let resource_rules = rules.resource_rules.iter().map(|rule| {
        let mut shown = json!({
            "verbs": rule.verbs, "apiGroups": rule.api_groups, "resources": rule.resources,
        });
        if !rule.resource_names.is_empty() {
            shown["resourceNames"] = rule.resource_names.clone().into();
        }
        shown
    });
    let non_resource_rules = rules
        .non_resource_rules
        .iter()
        .map(|rule| json!({ "verbs": rule.verbs, "nonResourceURLs": rule.non_resource_urls }));
    let mut review_status = json!({
        "resourceRules": resource_rules.collect::<Vec<_>>(),
        "nonResourceRules": non_resource_rules.collect::<Vec<_>>(),
        "incomplete": rules.is_incomplete,
    });
    if let Some(error) = &rules.error {
        review_status["evaluationError"] = error.to_string().into();
    }
    review_status
}
