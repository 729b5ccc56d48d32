//! The fields by which lists can be filtered, and their values.

use std::borrow::Cow;

use api_object::Tree;
use authz::FieldRequirement;
use serde_json::Value;

use crate::json_path::JsonPath;
use crate::kind::Rules;
use crate::resource::{Origin, Resource};
use crate::tree::{at, flag, items, text};

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

/// Fields of a built-in kind besides the common ones; `None` if it never had any.
fn own_fields(rules: Rules) -> Option<&'static [&'static str]> {
    match rules {
        Rules::Pod => Some(POD),
        Rules::Event => Some(EVENT),
        Rules::Secret => Some(&["type"]),
        Rules::Namespace => Some(&["status.phase"]),
        Rules::Service => Some(&["spec.clusterIP", "spec.type"]),
        Rules::Node => Some(&["spec.unschedulable"]),
        _ => None,
    }
}

/// Lists of the resource can not be filtered by a field. The texts are those of Kubernetes.
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
        check_field(resource, &requirement.field)?;
    }
    Ok(())
}

fn check_field(resource: &Resource, field: &str) -> Result<(), FieldSelectorError> {
    if COMMON.contains(&field) {
        return Ok(());
    }
    let is_own = match &resource.origin {
        Origin::BuiltIn(row) => match own_fields(row.rules) {
            Some(fields) => fields.contains(&field),
            None => {
                return Err(FieldSelectorError::UnknownField(field.to_owned()));
            }
        },
        Origin::Custom(served) => {
            served.selectable_fields.iter().any(|path| path.strip_prefix('.') == Some(field))
        }
    };
    match is_own {
        true => Ok(()),
        false => Err(FieldSelectorError::UnsupportedField(field.to_owned())),
    }
}

/// The value of a field of an object; empty if the object does not have it.
#[must_use]
pub fn field_value<'t>(resource: &Resource, tree: &'t Tree, field: &str) -> Cow<'t, str> {
    match &resource.origin {
        Origin::BuiltIn(row) => built_in_value(row.rules, tree, field),
        Origin::Custom(_) if COMMON.contains(&field) => plain_value(tree, field),
        Origin::Custom(_) => {
            let path = JsonPath::parse(&format!(".{field}"));
            match path.and_then(|path| path.first(tree)) {
                Some(Value::String(text)) => text.as_str().into(),
                Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string().into(),
                Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => "".into(),
            }
        }
    }
}

fn built_in_value<'t>(rules: Rules, tree: &'t Tree, field: &str) -> Cow<'t, str> {
    match (rules, field) {
        (Rules::Pod, "spec.hostNetwork") => truth(tree, "hostNetwork").into(),
        (Rules::Node, "spec.unschedulable") => truth(tree, "unschedulable").into(),
        (Rules::Pod, "status.podIP" | "status.podIPs") => {
            let status = at(tree, &["status"]);
            let first = items(status, "podIPs").first();
            first.map_or(text(status, "podIP"), |it| text(it, "ip")).into()
        }
        (Rules::Event, "source") => match text(at(tree, &["source"]), "component") {
            "" => text(tree, "reportingComponent").into(),
            component => component.into(),
        },
        (_, field) => plain_value(tree, field),
    }
}

/// A field that is where its name says.
fn plain_value<'t>(tree: &'t Tree, field: &str) -> Cow<'t, str> {
    let path: Vec<&str> = field.split('.').collect();
    at(tree, &path).as_str().unwrap_or_default().into()
}

fn truth(tree: &Tree, key: &str) -> &'static str {
    if flag(at(tree, &["spec"]), key) { "true" } else { "false" }
}
