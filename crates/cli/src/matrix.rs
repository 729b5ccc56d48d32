//! `portcullis matrix`: shows verbs against resources for one user, or against the users and groups of one resource.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use api_resources::{ResolvedResource, ResourceName, Scope};
use authz::{Attributes, Namespace, Resource, Target, TraceRecorder, User, Verb, Verdict};
use clap::ValueEnum;
use serde_json::{Map, Value, json};

use crate::exit::Exit;
use crate::offline::{
    LoadFailure, NameResolver, NodeObjectsNeed, OfflineAuthorizer, PolicyListingFlags,
    SubjectFlags, TextTable, is_webhook_not_called, print_remarks, user_for_listed_group,
    user_for_listed_name, write_cluster_disagreements,
};
use crate::output_helpers::{ignore_closed_pipe, write_pretty_json};

/// The columns of the table without --verbs.
const DEFAULT_VERBS: [&str; 7] = ["get", "list", "watch", "create", "update", "patch", "delete"];

/// Print a table of allowed verbs: by resource for one user, or by subject for one resource
///
/// With --as the rows are the given resources, or all resources of the cluster or of Kubernetes.
/// The command leaves out rows without an allowed verb, unless the resource is given. Without --as
/// the command takes one resource, and the rows are the users and groups that may use at least one
/// of the verbs on it; a group stands for all its members.
///
/// Marks: ✓ allowed, ✗ not allowed, ? depends on a webhook or on roles that cannot be read.
///
/// Exit codes: 0 the table is complete, 2 wrong usage or an unknown resource, 3 an input cannot be
/// read or is invalid, 4 the table may be incomplete, or --verify found a difference.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  portcullis matrix --as ana -n prod
  portcullis matrix secrets configmaps deploy --as ci/builder -n prod --kubeconfig prod.yaml
  portcullis matrix secrets -n prod
  portcullis matrix pods/exec --verbs create,get -A --verify
  portcullis matrix --as ana -f manifests/ -R -o json

The first two examples are about one user, the next two about one resource. The last one reads
manifests instead of a cluster.")]
pub(crate) struct Args {
    /// Resources: `RESOURCE[.GROUP][/SUBRESOURCE]`; without --as exactly one
    #[arg(value_name = "RESOURCE", value_parser = ResourceName::parse)]
    resources: Vec<ResourceName>,

    /// Verbs of the columns [default: get,list,watch,create,update,patch,delete]
    #[arg(long, value_name = "VERB,...", value_delimiter = ',')]
    verbs: Vec<String>,

    /// Namespace of the requests. The default is the namespace of the context, or the whole cluster
    /// if the command reads files
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,

    /// Format of the table
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Human)]
    output: OutputFormat,

    #[command(flatten)]
    subject_flags: SubjectFlags,

    #[command(flatten)]
    listing_flags: PolicyListingFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// Text in aligned columns
    Human,
    /// One JSON object: the verbs that are allowed, by row
    Json,
}

/// One cell of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MatrixCell {
    Allowed,
    Refused,
    /// The decision needs a webhook, which is not called.
    Undecided,
}

impl MatrixCell {
    fn cell_symbol(self) -> &'static str {
        match self {
            Self::Allowed => "✓",
            Self::Refused => "✗",
            Self::Undecided => "?",
        }
    }
}

/// A row: its name, and a cell for each verb.
type MatrixRow = (String, Vec<MatrixCell>);

/// The rows of the table, and whether they are certain.
#[derive(Default)]
struct Matrix {
    first_column_heading: &'static str,
    rows: Vec<MatrixRow>,
    is_incomplete: bool,
    cluster_disagreements: Vec<String>,
}

/// Writes the table.
///
/// # Errors
/// Fails if it cannot be written.
pub(crate) fn run(
    args: &Args,
    stdin: &mut dyn Read,
    out: &mut dyn Write,
    err: &mut dyn Write,
    colour_of_errors: bool,
) -> io::Result<Exit> {
    let verbs: Vec<&str> = match args.verbs.as_slice() {
        [] => DEFAULT_VERBS.to_vec(),
        verbs => verbs.iter().map(String::as_str).collect(),
    };
    let (authorizer, matrix, remarks) = match load_matrix(args, &verbs, stdin) {
        Ok(loaded) => loaded,
        Err(failure) => return failure.print_errors(err, colour_of_errors),
    };
    print_remarks(err, authorizer.input_remarks())?;
    print_remarks(err, &remarks)?;
    let written = match args.output {
        OutputFormat::Human => write_matrix_table(out, &matrix, &verbs),
        OutputFormat::Json => write_pretty_json(out, &matrix_to_json(&matrix, &verbs)),
    };
    ignore_closed_pipe(written)?;
    let has_unknown = matrix.rows.iter().any(|(_, cells)| cells.contains(&MatrixCell::Undecided));
    let is_complete = !matrix.is_incomplete && !authorizer.is_policy_partial() && !has_unknown;
    let exit = if is_complete { Exit::Clean } else { Exit::Undecided };
    write_cluster_disagreements(err, &matrix.cluster_disagreements, exit)
}

fn load_matrix(
    args: &Args,
    verbs: &[&str],
    stdin: &mut dyn Read,
) -> Result<(OfflineAuthorizer, Matrix, Vec<String>), LoadFailure> {
    let has_user = args.subject_flags.user.is_some() || !args.subject_flags.groups.is_empty();
    if !has_user && args.resources.len() != 1 {
        let message = "`portcullis matrix` needs --as for a table of resources, or exactly one RESOURCE for a table of \
                       users and groups";
        return Err(LoadFailure::Usage(vec![message.to_owned()]));
    }
    let node_objects = match args.resources.first() {
        Some(resource) if !has_user => {
            NodeObjectsNeed::node_objects_needed_for_resource(&resource.name)
        }
        _ => NodeObjectsNeed::node_objects_needed_for_user(args.subject_flags.user.as_deref()),
    };
    let namespace = args.namespace.as_deref();
    let authorizer = args.listing_flags.load_authorizer(namespace, stdin, node_objects)?;
    let mut resolver = NameResolver::new(&authorizer, args.listing_flags.resource_name_flags);
    let mut resources = Vec::new();
    for name in &args.resources {
        resources.push(resolver.resolve_resource(name, namespace.unwrap_or_default())?);
    }
    let is_listing_all = resources.is_empty();
    if is_listing_all {
        let known = authorizer.resource_names().resources();
        resources.extend(known.map(|(group, plural, scope)| ResolvedResource {
            group: group.to_owned(),
            plural: plural.to_owned(),
            subresource: String::new(),
            scope: Some(scope),
            other_matching_resources: Vec::new(),
        }));
    }
    let requests: Vec<(String, ResourceRequest)> = resources
        .into_iter()
        .map(|resource| {
            let namespace = match resource.scope {
                Some(Scope::Cluster) => String::new(),
                Some(Scope::Namespaced) | None => resolver.request_namespace(&resource, namespace),
            };
            let name = match resource.subresource.as_str() {
                "" => resource.qualified_name(),
                subresource => format!("{}/{subresource}", resource.qualified_name()),
            };
            (name, ResourceRequest { resource, namespace })
        })
        .collect();
    let user = has_user.then(|| resolver.resolve_user(&args.subject_flags));
    let remarks = std::mem::take(&mut resolver.name_resolution_remarks);
    let matrix = match user {
        Some(user) => build_user_matrix(&authorizer, &user, &requests, verbs, is_listing_all),
        None => build_resource_matrix(&authorizer, &requests, verbs),
    };
    Ok((authorizer, matrix, remarks))
}

/// The resource and the namespace of the requests of a row or a table.
struct ResourceRequest {
    resource: ResolvedResource,
    namespace: String,
}

impl ResourceRequest {
    fn to_attributes<'a>(&'a self, verb: &'a str, user: Option<&'a User>) -> Attributes<'a> {
        let target = Target::Resource(Resource {
            api_group: &self.resource.group,
            api_version: "*",
            namespace: Namespace::new(&self.namespace),
            resource: &self.resource.plural,
            subresource: &self.resource.subresource,
            ..Resource::default()
        });
        Attributes { user, verb: Verb::new(verb), target }
    }
}

/// Computes verbs against resources for one user.
fn build_user_matrix(
    authorizer: &OfflineAuthorizer,
    user: &User,
    requests: &[(String, ResourceRequest)],
    verbs: &[&str],
    hides_refused: bool,
) -> Matrix {
    let mut matrix = Matrix { first_column_heading: "RESOURCE", ..Matrix::default() };
    for (name, request) in requests {
        let mut cells = Vec::with_capacity(verbs.len());
        for verb in verbs {
            let attributes = request.to_attributes(verb, Some(user));
            let decision =
                authorizer.authorize(&attributes, TraceRecorder::disabled_recorder()).decision;
            let cell = match decision.verdict {
                Verdict::Allow => MatrixCell::Allowed,
                Verdict::Unavailable(_) => MatrixCell::Undecided,
                _ if is_webhook_not_called(decision.error.as_ref()) => MatrixCell::Undecided,
                // Without the whole policy, a refusal is not certain.
                Verdict::NoOpinion if authorizer.is_policy_partial() => MatrixCell::Undecided,
                Verdict::Deny | Verdict::NoOpinion => MatrixCell::Refused,
            };
            if cell != MatrixCell::Undecided {
                matrix.cluster_disagreements.extend(
                    authorizer.verify_with_cluster(&attributes, cell == MatrixCell::Allowed),
                );
            }
            cells.push(cell);
        }
        if !hides_refused || cells.iter().any(|cell| *cell != MatrixCell::Refused) {
            matrix.rows.push((name.clone(), cells));
        }
    }
    matrix
}

/// Computes verbs against users and groups for one resource.
fn build_resource_matrix(
    authorizer: &OfflineAuthorizer,
    requests: &[(String, ResourceRequest)],
    verbs: &[&str],
) -> Matrix {
    let mut matrix = Matrix { first_column_heading: "SUBJECT", ..Matrix::default() };
    let mut rows: BTreeMap<String, Vec<MatrixCell>> = BTreeMap::new();
    let Some((_, request)) = requests.first() else { return matrix };
    for (idx, verb) in verbs.iter().enumerate() {
        let attributes = request.to_attributes(verb, None);
        let subjects = authorizer.authorizer_chain().who_can(&attributes);
        matrix.is_incomplete |= subjects.is_incomplete;
        let users =
            subjects.users.iter().map(|name| (format!("User {name}"), user_for_listed_name(name)));
        let groups = subjects.groups.iter();
        let groups = groups.map(|name| (format!("Group {name}"), user_for_listed_group(name)));
        for (name, user) in users.chain(groups) {
            let attributes = Attributes { user: Some(&user), ..attributes };
            matrix.cluster_disagreements.extend(authorizer.verify_with_cluster(&attributes, true));
            let cells = rows.entry(name).or_insert_with(|| vec![MatrixCell::Refused; verbs.len()]);
            if let Some(cell) = cells.get_mut(idx) {
                *cell = MatrixCell::Allowed;
            }
        }
    }
    matrix.rows = rows.into_iter().collect();
    matrix
}

fn write_matrix_table(out: &mut dyn Write, matrix: &Matrix, verbs: &[&str]) -> io::Result<()> {
    let headings: Vec<String> = std::iter::once(matrix.first_column_heading.to_owned())
        .chain(verbs.iter().map(|verb| verb.to_uppercase()))
        .collect();
    let mut table = TextTable::with_column_headings(headings);
    for (name, cells) in &matrix.rows {
        let marks = cells.iter().map(|cell| cell.cell_symbol());
        table.push_row(&std::iter::once(name.as_str()).chain(marks).collect::<Vec<_>>());
    }
    table.write(out)
}

/// Formats the allowed and the undecided verbs of each resource or subject.
fn matrix_to_json(matrix: &Matrix, verbs: &[&str]) -> Value {
    let of_row = |cells: &[MatrixCell], wanted: MatrixCell| -> Vec<&str> {
        let pairs = verbs.iter().zip(cells);
        pairs.filter(|(_, cell)| **cell == wanted).map(|(verb, _)| *verb).collect()
    };
    let rows = matrix.rows.iter().map(|(name, cells)| {
        let mut row = json!({ "allowed": of_row(cells, MatrixCell::Allowed) });
        let undecided = of_row(cells, MatrixCell::Undecided);
        if !undecided.is_empty() {
            row["undecided"] = undecided.into();
        }
        (name.clone(), row)
    });
    json!({ "verbs": verbs, "rows": rows.collect::<Map<String, Value>>() })
}
