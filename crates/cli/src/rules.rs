//! `portcullis rules`: lists the rules of a user.

mod rule_rows;
mod verify_rules_with_cluster;

use std::io::{self, Read, Write};

use api_resources::{ResolvedResource, ResourceName, ResourceNameTable, Scope};
use authz::{Namespace, Rules, User};
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::offline::{
    LoadFailure, NameResolver, NodeObjectsNeed, OfflineAuthorizer, PolicyListingFlags,
    SubjectFlags, TextTable, print_remarks, replace_control_characters,
    write_cluster_disagreements, write_yaml,
};
use crate::output_helpers::{ignore_closed_pipe, write_pretty_json};
use rule_rows::{build_non_resource_rows, build_resource_rows, retain_rules_for_resource};
use verify_rules_with_cluster::verify_rules_with_cluster;

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
/// The list may be incomplete: the node authorizer decides from the pods of a node, and a webhook
/// cannot list rules. Then the command prints a warning to standard error and sets `incomplete`.
///
/// Exit codes: 0 the rules are listed, 2 wrong usage or an unknown resource, 3 an input cannot be
/// read or is invalid, 4 a part of the policy cannot be read, or --verify found a disagreement.
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
    subject_flags: SubjectFlags,

    /// Namespace of the rules, and of given objects that have none [default: default]
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
/// Fails if the list cannot be written.
pub(crate) fn run(
    args: &Args,
    stdin: &mut dyn Read,
    out: &mut dyn Write,
    err: &mut dyn Write,
    colour_of_errors: bool,
) -> io::Result<Exit> {
    let LoadedRulesRequest {
        user,
        resource,
        offline_authorizer: authorizer,
        name_resolution_remarks: remarks,
    } = match load_rules_request(args, stdin) {
        Ok(loaded) => loaded,
        Err(failure) => return failure.print_errors(err, colour_of_errors),
    };
    print_remarks(err, authorizer.input_remarks())?;
    print_remarks(err, &remarks)?;
    let namespace = args.namespace.as_deref().or(authorizer.context_namespace());
    let namespace = namespace.unwrap_or(DEFAULT_NAMESPACE);
    let mut rules = authorizer.authorizer_chain().rules_for(&user, Namespace::new(namespace));
    rules.is_incomplete |= authorizer.is_policy_partial();
    if let Some(resource) = &resource {
        retain_rules_for_resource(&mut rules, resource);
    }
    if user.is_in_group(SUPERUSER_GROUP) {
        writeln!(err, "note: members of {SUPERUSER_GROUP} may do everything, whatever is listed")?;
    }
    if rules.is_incomplete {
        writeln!(err, "warning: the list is incomplete, more may be allowed")?;
    }
    if let Some(error) = &rules.error {
        writeln!(err, "warning: {}", replace_control_characters(&error.to_string()))?;
    }
    let written = match args.output {
        OutputFormat::Human => write_rule_tables(out, &rules),
        OutputFormat::Wide => write_wide_rule_tables(out, &rules, authorizer.resource_names()),
        OutputFormat::Name => write_resource_names(out, &rules),
        OutputFormat::Json => write_pretty_json(out, &rules_review_status_json(&rules)),
        OutputFormat::Yaml => write_yaml(out, &rules_review_status_json(&rules)),
    };
    ignore_closed_pipe(written)?;
    let disagreements = verify_rules_with_cluster(&rules, &authorizer, &user, namespace);
    let exit = if authorizer.is_policy_partial() { Exit::Undecided } else { Exit::Clean };
    write_cluster_disagreements(err, &disagreements, exit)
}

/// The user whose rules are listed, with the policy that has them.
struct LoadedRulesRequest {
    user: User,
    /// The resource to which the list is limited.
    resource: Option<ResolvedResource>,
    offline_authorizer: OfflineAuthorizer,
    /// Notes and warnings about the names, for standard error.
    name_resolution_remarks: Vec<String>,
}

fn load_rules_request(
    args: &Args,
    stdin: &mut dyn Read,
) -> Result<LoadedRulesRequest, LoadFailure> {
    if args.subject_flags.user.is_none() && args.subject_flags.groups.is_empty() {
        let message = "`portcullis rules` needs --as or --as-group".to_owned();
        return Err(LoadFailure::Usage(vec![message]));
    }
    let namespace = args.namespace.as_deref();
    let node_objects =
        NodeObjectsNeed::node_objects_needed_for_user(args.subject_flags.user.as_deref());
    let authorizer = args.listing_flags.load_authorizer(namespace, stdin, node_objects)?;
    let mut resolver = NameResolver::new(&authorizer, args.listing_flags.resource_name_flags);
    let user = resolver.resolve_user(&args.subject_flags);
    // Rules of the whole cluster match in every namespace, so the scope of the resource does not matter.
    let resource = args.resource.as_ref().map(|name| resolver.resolve_resource(name, ""));
    let resource = resource.transpose()?;
    let remarks = resolver.name_resolution_remarks;
    Ok(LoadedRulesRequest {
        user,
        resource,
        offline_authorizer: authorizer,
        name_resolution_remarks: remarks,
    })
}

fn write_rule_tables(out: &mut dyn Write, rules: &Rules) -> io::Result<()> {
    let (resources, paths) = (build_resource_rows(rules), build_non_resource_rows(rules));
    if !resources.is_empty() || paths.is_empty() {
        let mut table = TextTable::new(["VERBS", "API GROUPS", "RESOURCES", "NAMES"]);
        for row in &resources {
            let group = if row.api_group.is_empty() { "\"\"" } else { &row.api_group };
            table.push([&row.verbs.join(","), group, &row.resource, &row.resource_names.join(",")]);
        }
        table.write(out)?;
    }
    write_non_resource_url_table(out, rules, !resources.is_empty())
}

/// Writes the tables with the kind and the scope of each resource, as far as they are known.
fn write_wide_rule_tables(
    out: &mut dyn Write,
    rules: &Rules,
    names: &ResourceNameTable,
) -> io::Result<()> {
    let resources = build_resource_rows(rules);
    if !resources.is_empty() || rules.non_resource_rules.is_empty() {
        let mut table =
            TextTable::new(["VERBS", "API GROUPS", "RESOURCES", "NAMES", "KIND", "NAMESPACED"]);
        for row in &resources {
            let group = if row.api_group.is_empty() { "\"\"" } else { &row.api_group };
            let plural = row.resource.split('/').next().unwrap_or_default();
            let (kind, scope) = names.kind_and_scope_of_resource(&row.api_group, plural).unzip();
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
    write_non_resource_url_table(out, rules, !resources.is_empty())
}

fn write_non_resource_url_table(
    out: &mut dyn Write,
    rules: &Rules,
    is_second: bool,
) -> io::Result<()> {
    let paths = build_non_resource_rows(rules);
    if paths.is_empty() {
        return Ok(());
    }
    if is_second {
        writeln!(out)?;
    }
    let mut table = TextTable::new(["VERBS", "NON-RESOURCE URLS"]);
    for (path, verbs) in &paths {
        table.push([&verbs.join(","), path]);
    }
    table.write(out)
}

/// Writes each resource and path once.
fn write_resource_names(out: &mut dyn Write, rules: &Rules) -> io::Result<()> {
    let mut last = String::new();
    for row in build_resource_rows(rules) {
        let (resource, subresource) = row.resource.split_once('/').unwrap_or((&row.resource, ""));
        let dot = if row.api_group.is_empty() { "" } else { "." };
        let slash = if subresource.is_empty() { "" } else { "/" };
        let name = format!("{resource}{dot}{}{slash}{subresource}", row.api_group);
        if name != last {
            writeln!(out, "{}", replace_control_characters(&name))?;
        }
        last = name;
    }
    let paths = build_non_resource_rows(rules);
    paths.keys().try_for_each(|path| writeln!(out, "{}", replace_control_characters(path)))
}

/// Formats the rules as the status of a SelfSubjectRulesReview.
fn rules_review_status_json(rules: &Rules) -> Value {
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
    let mut rules_review_status = json!({
        "resourceRules": resource_rules.collect::<Vec<_>>(),
        "nonResourceRules": non_resource_rules.collect::<Vec<_>>(),
        "incomplete": rules.is_incomplete,
    });
    if let Some(error) = &rules.error {
        rules_review_status["evaluationError"] = error.to_string().into();
    }
    rules_review_status
}
