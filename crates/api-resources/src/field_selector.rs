//! The fields by which lists can be filtered, and their values.

use std::borrow::Cow;

use api_object::Tree;
use authz::FieldRequirement;
use serde_json::Value;

use crate::json_members::{bool_member, list_member, string_member, value_at_path};
use crate::json_path::JsonPath;
use crate::kind_rules::KindRules;
use crate::resource::{Resource, ResourceOrigin};

/// Fields that every resource has.
const COMMON: [&str; 2] = ["metadata.name", "metadata.namespace"];

const POD: &[&str] = &[
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.podIPs",
    "status.nominatedNodeName",
];

const EVENT: &[&str] = &[
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
];

/// The fields by which lists of a built-in kind can be filtered, besides name and namespace; `None` if it has none.
fn kind_selector_fields(rules: KindRules) -> Option<&'static [&'static str]> {
    match rules {
        KindRules::CertificateSigningRequest | KindRules::ClusterTrustBundle => {
            Some(&["spec.signerName"])
        }
        KindRules::Pod => Some(POD),
        KindRules::Event => Some(EVENT),
        KindRules::Secret => Some(&["type"]),
        KindRules::Namespace => Some(&["status.phase"]),
        KindRules::Service => Some(&["spec.clusterIP", "spec.type"]),
        KindRules::Node => Some(&["spec.unschedulable"]),
        KindRules::ResourceSlice => Some(&["spec.nodeName", "spec.driver", "spec.pool.name"]),
        _ => None,
    }
}

/// Lists of the resource cannot be filtered by a field. The texts are those of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldSelectorError {
    /// The kind supports only the fields of every resource.
    #[error(
        "{} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
        go_compat::quote(.0)
    )]
    UnknownField(String),
    /// The kind supports further fields, but not this one.
    #[error("field label not supported: {0}")]
    UnsupportedField(String),
    /// The kind supports further fields, but not this one. Kubernetes' message for this kind also names the kind.
    #[error("field label not supported for {group_version_kind}: {field}")]
    UnsupportedFieldOfKind {
        /// The group, version and kind, such as `resource.k8s.io/v1, Kind=ResourceSlice`.
        group_version_kind: String,
        /// The field that is not supported.
        field: String,
    },
}

/// Checks that lists of the resource can be filtered by all these fields.
///
/// # Errors
/// The first unsupported field.
pub fn check_field_selector(
    resource: &Resource,
    requirements: &[FieldRequirement],
) -> Result<(), FieldSelectorError> {
    for requirement in requirements {
        check_selector_field(resource, &requirement.field)?;
    }
    Ok(())
}

fn check_selector_field(resource: &Resource, field: &str) -> Result<(), FieldSelectorError> {
    let lacks_namespace = match &resource.resource_origin {
        ResourceOrigin::BuiltIn(row) => matches!(
            row.rules,
            KindRules::CertificateSigningRequest
                | KindRules::ClusterTrustBundle
                | KindRules::Namespace
                | KindRules::Node
                | KindRules::ResourceSlice
        ),
        ResourceOrigin::Custom(_) => !resource.is_namespaced(),
    };
    if COMMON.contains(&field) && !(lacks_namespace && field == "metadata.namespace") {
        return Ok(());
    }
    let is_own = match &resource.resource_origin {
        ResourceOrigin::BuiltIn(row) => match kind_selector_fields(row.rules) {
            Some(fields) => fields.contains(&field),
            None => {
                return Err(FieldSelectorError::UnknownField(field.to_owned()));
            }
        },
        ResourceOrigin::Custom(served) => {
            served.selectable_fields.iter().any(|path| path.strip_prefix('.') == Some(field))
        }
    };
    let names_kind_in_message = matches!(
        &resource.resource_origin,
        ResourceOrigin::BuiltIn(row) if row.rules == KindRules::ResourceSlice
    );
    match is_own {
        true => Ok(()),
        false if names_kind_in_message => {
            let (group, version, kind) = (&resource.group, &resource.version, &resource.kind);
            Err(FieldSelectorError::UnsupportedFieldOfKind {
                group_version_kind: format!("{group}/{version}, Kind={kind}"),
                field: field.to_owned(),
            })
        }
        false => Err(FieldSelectorError::UnsupportedField(field.to_owned())),
    }
}

/// The value of a field of an object; empty if the object does not have it.
#[must_use]
pub fn selector_field_value<'t>(resource: &Resource, tree: &'t Tree, field: &str) -> Cow<'t, str> {
    match &resource.resource_origin {
        ResourceOrigin::BuiltIn(row) => built_in_field_value(row.rules, tree, field),
        ResourceOrigin::Custom(_) if COMMON.contains(&field) => value_at_field_path(tree, field),
        ResourceOrigin::Custom(_) => {
            let path = JsonPath::parse(&format!(".{field}"));
            match path.and_then(|path| path.find_first_value(tree)) {
                Some(Value::String(text)) => text.as_str().into(),
                Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string().into(),
                Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => "".into(),
            }
        }
    }
}

fn built_in_field_value<'t>(rules: KindRules, tree: &'t Tree, field: &str) -> Cow<'t, str> {
    match (rules, field) {
        (KindRules::Pod, "spec.hostNetwork") => spec_bool_text(tree, "hostNetwork").into(),
        (KindRules::Node, "spec.unschedulable") => spec_bool_text(tree, "unschedulable").into(),
        (KindRules::Pod, "status.podIP" | "status.podIPs") => {
            let status = value_at_path(tree, &["status"]);
            let first = list_member(status, "podIPs").first();
            first.map_or(string_member(status, "podIP"), |it| string_member(it, "ip")).into()
        }
        (KindRules::Event, "source") => {
            match string_member(value_at_path(tree, &["source"]), "component") {
                "" => string_member(tree, "reportingComponent").into(),
                component => component.into(),
            }
        }
        (_, field) => value_at_field_path(tree, field),
    }
}

/// The string at the path that the name of the field spells.
fn value_at_field_path<'t>(tree: &'t Tree, field: &str) -> Cow<'t, str> {
    let path: Vec<&str> = field.split('.').collect();
    value_at_path(tree, &path).as_str().unwrap_or_default().into()
}

fn spec_bool_text(tree: &Tree, key: &str) -> &'static str {
    if bool_member(value_at_path(tree, &["spec"]), key) { "true" } else { "false" }
}
