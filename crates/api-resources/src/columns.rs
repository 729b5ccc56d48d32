//! The columns of Table responses.

mod admission;
mod core;
mod custom;
mod event;
mod network;
mod node;
mod pod;
mod pvc_and_quota;
mod rbac;
mod selector;
mod workload;

use std::borrow::Cow;

use api_object::Tree;
use jiff::Timestamp;
use serde_json::Value;

use crate::human_age::age;
use crate::kind::Rules;
use crate::resource::{Origin, Resource};
use crate::tree::{at, text};

pub(crate) use custom::CustomTable;

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The heading.
    pub name: Cow<'static, str>,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub r#type: Cow<'static, str>,
    /// `name` for the column that identifies the object; otherwise mostly empty.
    pub format: Cow<'static, str>,
    /// For people.
    pub description: Cow<'static, str>,
    /// Shown to those who want more if above zero.
    pub priority: i32,
}

/// The columns of a built-in kind, and how they are filled.
#[derive(Debug)]
pub(crate) struct Table {
    columns: &'static [Column],
    cells: fn(&Tree, Timestamp) -> Vec<Value>,
}

/// The columns of a resource.
#[must_use]
pub fn columns(resource: &Resource) -> &[Column] {
    match &resource.origin {
        Origin::BuiltIn(row) => table(row.rules).columns,
        Origin::Custom(served) => &served.table.columns,
    }
}

/// The cells of one object: one value for each column of its resource.
#[must_use]
pub fn cells(resource: &Resource, tree: &Tree, now: Timestamp) -> Vec<Value> {
    match &resource.origin {
        Origin::BuiltIn(row) => (table(row.rules).cells)(tree, now),
        Origin::Custom(served) => served.table.cells(tree, now),
    }
}

fn table(rules: Rules) -> &'static Table {
    use ::admission::ConfigurationKind;
    use manifests::rbac::Kind;

    match rules {
        Rules::AdmissionPolicyBinding => &admission::POLICY_BINDING,
        Rules::CertificateSigningRequest => &workload::CERTIFICATE_SIGNING_REQUEST,
        Rules::ConfigMap => &core::CONFIG_MAP,
        Rules::Configuration(ConfigurationKind::Initializer) => &admission::INITIALIZERS,
        Rules::Configuration(ConfigurationKind::ExternalHook) => &admission::EXTERNAL_HOOKS,
        Rules::Configuration(ConfigurationKind::Mutating | ConfigurationKind::Validating) => {
            &admission::WEBHOOKS
        }
        Rules::CustomResourceDefinition => &custom::DEFINITION,
        Rules::Deployment => &workload::DEPLOYMENT,
        Rules::EndpointSlice => &network::ENDPOINT_SLICE,
        Rules::Endpoints => &network::ENDPOINTS,
        Rules::Event => &event::EVENT,
        Rules::Lease => &core::LEASE,
        Rules::MutatingAdmissionPolicy => &admission::MUTATING_POLICY,
        Rules::Namespace => &core::NAMESPACE,
        Rules::Node => &node::NODE,
        Rules::PersistentVolumeClaim => &pvc_and_quota::PERSISTENT_VOLUME_CLAIM,
        Rules::Pod => &pod::POD,
        Rules::Rbac(Kind::RoleBinding | Kind::ClusterRoleBinding) => &rbac::BINDING,
        Rules::ReplicaSet => &workload::REPLICA_SET,
        Rules::ResourceQuota => &pvc_and_quota::RESOURCE_QUOTA,
        Rules::Secret => &core::SECRET,
        Rules::Service => &network::SERVICE,
        Rules::ServiceAccount => &core::SERVICE_ACCOUNT,
        Rules::ValidatingAdmissionPolicy => &admission::VALIDATING_POLICY,
        Rules::Immutable(_)
        | Rules::None
        | Rules::PersistentVolume
        | Rules::Rbac(Kind::Role | Kind::ClusterRole) => &core::ANY,
    }
}

/// A column of texts.
const fn text_column(name: &'static str, description: &'static str) -> Column {
    column(name, "string", description, 0)
}

/// A column of texts for those who want more.
const fn wide_column(name: &'static str, description: &'static str) -> Column {
    column(name, "string", description, 1)
}

/// A column of whole numbers.
const fn integer_column(name: &'static str, description: &'static str) -> Column {
    column(name, "integer", description, 0)
}

const fn column(
    name: &'static str,
    r#type: &'static str,
    description: &'static str,
    priority: i32,
) -> Column {
    Column {
        name: Cow::Borrowed(name),
        r#type: Cow::Borrowed(r#type),
        format: Cow::Borrowed(""),
        description: Cow::Borrowed(description),
        priority,
    }
}

const NAME: Column = Column {
    name: Cow::Borrowed("Name"),
    r#type: Cow::Borrowed("string"),
    format: Cow::Borrowed("name"),
    description: Cow::Borrowed("The name of the object, unique in its namespace."),
    priority: 0,
};
const AGE: Column = text_column("Age", "How long ago the object was created.");
const CREATED_AT: Column = column("Created At", "date", "When the object was created.", 0);

fn name_of(tree: &Tree) -> Value {
    text(at(tree, &["metadata"]), "name").into()
}

fn creation(tree: &Tree) -> Option<&str> {
    at(tree, &["metadata", "creationTimestamp"]).as_str()
}

fn age_of(tree: &Tree, now: Timestamp) -> Value {
    age(now, creation(tree)).into()
}

/// The text, or a word that says that there is none.
fn or_placeholder<'t>(text: &'t str, none: &'static str) -> &'t str {
    if text.is_empty() { none } else { text }
}
