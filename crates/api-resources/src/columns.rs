//! The columns of Table responses.

mod admission_columns;
mod core_columns;
mod custom_columns;
mod event_columns;
mod flow_control_columns;
mod network_columns;
mod node_columns;
mod pod_columns;
mod pvc_and_quota_columns;
mod rbac_columns;
mod render_selector;
mod workload_columns;

use std::borrow::Cow;

use api_object::Tree;
use jiff::Timestamp;
use serde_json::Value;

use crate::human_age::format_age;
use crate::json_members::{string_member, value_at_path};
use crate::kind_rules::KindRules;
use crate::resource::{Resource, ResourceOrigin};

pub(crate) use custom_columns::CustomResourceTable;
pub(crate) use render_selector::{labels_text, selector_text};

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The heading of the column.
    pub name: Cow<'static, str>,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub r#type: Cow<'static, str>,
    /// `name` for the column that identifies the object; otherwise mostly empty.
    pub column_format: Cow<'static, str>,
    /// A sentence about the column, for users.
    pub description: Cow<'static, str>,
    /// Clients show columns with a priority above 0 only in wide output.
    pub column_priority: i32,
}

/// The columns of a built-in kind, and the function that computes their cells.
#[derive(Debug)]
pub(crate) struct BuiltInTable {
    columns: &'static [Column],
    make_cells: fn(&Tree, Timestamp) -> Vec<Value>,
}

/// The columns of a resource.
#[must_use]
pub fn table_columns(resource: &Resource) -> &[Column] {
    match &resource.resource_origin {
        ResourceOrigin::BuiltIn(row) => built_in_table(row.rules).columns,
        ResourceOrigin::Custom(served) => &served.custom_resource_table.columns,
    }
}

/// The cells of one object: one value for each column of its resource.
#[must_use]
pub fn table_cells(resource: &Resource, tree: &Tree, now: Timestamp) -> Vec<Value> {
    match &resource.resource_origin {
        ResourceOrigin::BuiltIn(row) => (built_in_table(row.rules).make_cells)(tree, now),
        ResourceOrigin::Custom(served) => {
            served.custom_resource_table.custom_resource_cells(tree, now)
        }
    }
}

fn built_in_table(rules: KindRules) -> &'static BuiltInTable {
    use ::admission::ConfigurationKind;
    use manifests::flow_control::Kind as FlowControlKind;
    use manifests::rbac::Kind;

    match rules {
        KindRules::AdmissionPolicyBinding => &admission_columns::POLICY_BINDING,
        KindRules::CertificateSigningRequest => &workload_columns::CERTIFICATE_SIGNING_REQUEST,
        KindRules::ConfigMap => &core_columns::CONFIG_MAP,
        KindRules::Configuration(ConfigurationKind::Initializer) => {
            &admission_columns::INITIALIZERS
        }
        KindRules::Configuration(ConfigurationKind::ExternalHook) => {
            &admission_columns::EXTERNAL_HOOKS
        }
        KindRules::Configuration(ConfigurationKind::Mutating | ConfigurationKind::Validating) => {
            &admission_columns::WEBHOOKS
        }
        KindRules::CustomResourceDefinition => &custom_columns::DEFINITION,
        KindRules::Deployment => &workload_columns::DEPLOYMENT,
        KindRules::EndpointSlice => &network_columns::ENDPOINT_SLICE,
        KindRules::Endpoints => &network_columns::ENDPOINTS,
        KindRules::Event => &event_columns::EVENT,
        KindRules::FlowControl(FlowControlKind::FlowSchema) => &flow_control_columns::FLOW_SCHEMA,
        KindRules::FlowControl(FlowControlKind::PriorityLevelConfiguration) => {
            &flow_control_columns::PRIORITY_LEVEL_CONFIGURATION
        }
        KindRules::Lease => &core_columns::LEASE,
        KindRules::MutatingAdmissionPolicy => &admission_columns::MUTATING_POLICY,
        KindRules::Namespace => &core_columns::NAMESPACE,
        KindRules::Node => &node_columns::NODE,
        KindRules::PersistentVolumeClaim => &pvc_and_quota_columns::PERSISTENT_VOLUME_CLAIM,
        KindRules::Pod => &pod_columns::POD,
        KindRules::Rbac(Kind::RoleBinding | Kind::ClusterRoleBinding) => &rbac_columns::BINDING,
        KindRules::ReplicaSet => &workload_columns::REPLICA_SET,
        KindRules::ResourceQuota => &pvc_and_quota_columns::RESOURCE_QUOTA,
        KindRules::Scale => &workload_columns::SCALE,
        KindRules::Secret => &core_columns::SECRET,
        KindRules::Service => &network_columns::SERVICE,
        KindRules::ServiceAccount => &core_columns::SERVICE_ACCOUNT,
        KindRules::ValidatingAdmissionPolicy => &admission_columns::VALIDATING_POLICY,
        KindRules::CsiNode
        | KindRules::Immutable(_)
        | KindRules::None
        | KindRules::PersistentVolume
        | KindRules::ClusterTrustBundle
        | KindRules::ResourceSlice
        | KindRules::Rbac(Kind::Role | Kind::ClusterRole) => &core_columns::ANY,
    }
}

/// A column of texts.
const fn text_column(name: &'static str, description: &'static str) -> Column {
    new_column(name, "string", description, 0)
}

/// A column of texts that only wide output shows.
const fn wide_column(name: &'static str, description: &'static str) -> Column {
    new_column(name, "string", description, 1)
}

/// A column of whole numbers.
const fn integer_column(name: &'static str, description: &'static str) -> Column {
    new_column(name, "integer", description, 0)
}

const fn new_column(
    name: &'static str,
    r#type: &'static str,
    description: &'static str,
    priority: i32,
) -> Column {
    Column {
        name: Cow::Borrowed(name),
        r#type: Cow::Borrowed(r#type),
        column_format: Cow::Borrowed(""),
        description: Cow::Borrowed(description),
        column_priority: priority,
    }
}

const NAME: Column = Column {
    name: Cow::Borrowed("Name"),
    r#type: Cow::Borrowed("string"),
    column_format: Cow::Borrowed("name"),
    description: Cow::Borrowed("The name of the object, unique in its namespace."),
    column_priority: 0,
};
const AGE: Column = text_column("Age", "How long ago the object was created.");
const CREATED_AT: Column = new_column("Created At", "date", "When the object was created.", 0);

fn name_cell(tree: &Tree) -> Value {
    string_member(value_at_path(tree, &["metadata"]), "name").into()
}

fn creation_timestamp(tree: &Tree) -> Option<&str> {
    value_at_path(tree, &["metadata", "creationTimestamp"]).as_str()
}

fn age_cell(tree: &Tree, now: Timestamp) -> Value {
    format_age(now, creation_timestamp(tree)).into()
}

/// The text, or the placeholder if the text is empty.
fn text_or_placeholder<'t>(text: &'t str, none: &'static str) -> &'t str {
    if text.is_empty() { none } else { text }
}
