//! `portcullis rules`: lists the rules of a user.

mod rule_rows;

use std::io::{self, Read, Write};

use api_resources::{ResolvedResource, ResourceName, ResourceNameTable, Scope};
use authz::{Namespace, Rules, User};
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::offline::{
    LoadFailure, NameFlags, NameResolver, NodeObjects, OfflineAuthorizer, PolicyFlags,
    SubjectFlags, Table, WebhookMode, printable, write_remarks, write_yaml,
};
use crate::output::{ignore_closed_pipe, write_json};
use rule_rows::{build_non_resource_rows, build_resource_rows, keep_rules_for};

/// The group whose members may do everything. No rule expresses that.
const SUPERUSER_GROUP: &str = "system:masters";

/// The namespace of the rules without `-n`.
const DEFAULT_NAMESPACE: &str = "default";

/// List what a user may do in a namespace
///
/// The command lists the rules that SelfSubjectRulesReview returns for the user: those of the
/// namespace and those of the whole cluster. With RESOURCE it lists only the rules that match that
/// resource, which may be a plural, a singular, a kind or a short name, as for kubectl. The table has one row for each resource and path; JSON
/// and YAML contain the rules as the authorizers return them, in the fields `resourceRules`,
/// `nonResourceRules`, `incomplete` and `evaluationError`.
///
/// The list may be incomplete: the node authorizer decides from the pods of a node, and a webhook can
/// not list rules. Then the command prints a warning to standard error and sets `incomplete`.
///
/// Exit codes: 0 the rules are listed, 2 wrong usage or an unknown resource, 3 something can not be read or is invalid.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  portcullis rules --as ana --as-group dev -n prod -f manifests/ -R
  portcullis rules deploy --as ci/builder -n ci -f manifests/ -R -o wide
  portcullis rules --as ci/builder -n ci -f manifests/ -R -o yaml

The second example lists only the rules about deployments, with their kind and scope.")]
pub(crate) struct Args {
    /// List only the rules that match this resource: `RESOURCE[.GROUP][/SUBRESOURCE]`
    #[arg(value_name = "RESOURCE", value_parser = ResourceName::parse)]
    resource: Option<ResourceName>,

    #[command(flatten)]
    subject: SubjectFlags,

    /// Namespace of the rules, and of given objects that have none [default: default]
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,

    /// Format of the list
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Output::Human)]
    output: Output,

    #[command(flatten)]
    names: NameFlags,

    #[command(flatten)]
    policy: PolicyFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Text in aligned columns
    Human,
    /// Also the kind and the scope of each resource
    Wide,
    /// One resource or path per line, such as deployments.apps
    Name,
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
    let LoadedRequest { user, resource, authorizer, remarks } = match load(args, stdin) {
        Ok(loaded) => loaded,
        Err(failure) => return failure.write_to(err, colour_of_errors),
    };
    write_remarks(err, authorizer.remarks())?;
    write_remarks(err, &remarks)?;
    let namespace = args.namespace.as_deref().or(authorizer.context_namespace());
    let namespace = namespace.unwrap_or(DEFAULT_NAMESPACE);
    let mut rules = authorizer.chain().rules_for(&user, Namespace::new(namespace));
    if let Some(resource) = &resource {
        keep_rules_for(&mut rules, resource);
    }
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
        Output::Human => write_tables(out, &rules),
        Output::Wide => write_wide_tables(out, &rules, authorizer.resource_names()),
        Output::Name => write_names(out, &rules),
        Output::Json => write_json(out, &review_status(&rules)),
        Output::Yaml => write_yaml(out, &review_status(&rules)),
    };
    ignore_closed_pipe(written)?;
    Ok(if authorizer.is_partial() { Exit::Undecided } else { Exit::Clean })
}

/// The user whose rules are listed, with the policy that has them.
struct LoadedRequest {
    user: User,
    /// The resource to which the list is limited.
    resource: Option<ResolvedResource>,
    authorizer: OfflineAuthorizer,
    /// Notes and warnings about the names, for standard error.
    remarks: Vec<String>,
}

fn load(args: &Args, stdin: &mut dyn Read) -> Result<LoadedRequest, LoadFailure> {
    if args.subject.user.is_none() && args.subject.groups.is_empty() {
        let message = "`portcullis rules` needs --as or --as-group".to_owned();
        return Err(LoadFailure::Usage(vec![message]));
    }
    let namespace = args.namespace.as_deref();
    let node_objects = NodeObjects::for_user(args.subject.user.as_deref());
    let authorizer =
        OfflineAuthorizer::load(&args.policy, WebhookMode::Skip, namespace, stdin, node_objects)?;
    let mut resolver = NameResolver::new(&authorizer, args.names);
    let user = resolver.resolve_user(&args.subject);
    // Rules of the whole cluster match in every namespace, so the scope of the resource does not matter.
    let resource = args.resource.as_ref().map(|name| resolver.resolve_resource(name, ""));
    let resource = resource.transpose()?;
    let remarks = resolver.remarks;
    Ok(LoadedRequest { user, resource, authorizer, remarks })
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
    write_path_table(out, rules, !resources.is_empty())
}

/// Writes the tables with the kind and the scope of each resource, as far as they are known.
fn write_wide_tables(
    out: &mut dyn Write,
    rules: &Rules,
    names: &ResourceNameTable,
) -> io::Result<()> {
    let resources = build_resource_rows(rules);
    if !resources.is_empty() || rules.non_resource_rules.is_empty() {
        let mut table =
            Table::new(["VERBS", "API GROUPS", "RESOURCES", "NAMES", "KIND", "NAMESPACED"]);
        for row in &resources {
            let group = if row.api_group.is_empty() { "\"\"" } else { &row.api_group };
            let plural = row.resource.split('/').next().unwrap_or_default();
            let (kind, scope) = names.kind_and_scope_of(&row.api_group, plural).unzip();
            let is_namespaced = match scope {
                Some(Scope::Namespaced) => "true",
                Some(Scope::Cluster) => "false",
                None => "",
            };
            let (verbs, object_names) = (row.verbs.join(","), row.resource_names.join(","));
            let kind = kind.unwrap_or_default();
            table.push([&verbs, group, &row.resource, &object_names, kind, is_namespaced]);
        }
        table.write(out)?;
    }
    write_path_table(out, rules, !resources.is_empty())
}

fn write_path_table(out: &mut dyn Write, rules: &Rules, is_second: bool) -> io::Result<()> {
    let paths = build_non_resource_rows(rules);
    if paths.is_empty() {
        return Ok(());
    }
    if is_second {
        writeln!(out)?;
    }
    let mut table = Table::new(["VERBS", "NON-RESOURCE URLS"]);
    for (path, verbs) in &paths {
        table.push([&verbs.join(","), path]);
    }
    table.write(out)
}

/// Writes each resource and path once.
fn write_names(out: &mut dyn Write, rules: &Rules) -> io::Result<()> {
    let mut last = String::new();
    for row in build_resource_rows(rules) {
        let (resource, subresource) = row.resource.split_once('/').unwrap_or((&row.resource, ""));
        let dot = if row.api_group.is_empty() { "" } else { "." };
        let slash = if subresource.is_empty() { "" } else { "/" };
        let name = format!("{resource}{dot}{}{slash}{subresource}", row.api_group);
        if name != last {
            writeln!(out, "{}", printable(&name))?;
        }
        last = name;
    }
    let paths = build_non_resource_rows(rules);
    paths.keys().try_for_each(|path| writeln!(out, "{}", printable(path)))
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
