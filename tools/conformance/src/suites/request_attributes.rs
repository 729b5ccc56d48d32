//! `request-attributes`: the authorization attributes of an HTTP request line.

use authz::{
    Attributes, FieldRequirement, LabelRequirement, RequestError, RequestInfo, ResourceInfo,
    Selector,
};
use serde_json::{Value, json};

use super::AnswerPair;
use crate::vectors::{UnusableVector, Vector};

pub(super) fn answer_vector(vector: &Vector) -> Result<AnswerPair, UnusableVector> {
    let got = answer_for_request_line(vector.text("method")?, vector.text("target")?);
    Ok(AnswerPair { want: vector.member("expect")?.clone(), got, warnings: Vec::new() })
}

/// The wording of the HTTP layer is free; Kubernetes writes all other texts.
pub(super) fn exact_length(path: &str, text: &str) -> usize {
    if path == "httpError" { 0 } else { text.len() }
}

/// Our answer to a request line, in the form of the vectors.
pub(crate) fn answer_for_request_line(method: &str, target: &str) -> Value {
    match RequestInfo::new(method, target) {
        Ok(info) => json!({
            "requestInfo": request_info(&info),
            "attributes": attributes(&info.to_attributes_for_user(None)),
        }),
        Err(RequestError::Malformed(error)) => json!({ "httpError": error.to_string() }),
        Err(RequestError::Unclassified(error)) => json!({
            "requestInfoError": error.to_string(),
            "requestInfo": request_info(&error.partial_request_info),
        }),
    }
}

fn request_info(info: &RequestInfo) -> Value {
    let none = ResourceInfo::default();
    let resource = info.resource.as_ref().unwrap_or(&none);
    json!({
        "isResourceRequest": info.resource.is_some(),
        "path": info.path,
        "verb": info.verb,
        "apiPrefix": info.api_prefix,
        "apiGroup": resource.api_group,
        "apiVersion": resource.api_version,
        "namespace": resource.namespace.as_str(),
        "resource": resource.resource,
        "subresource": resource.subresource,
        "name": resource.name,
        "parts": resource.path_segments_from_resource().collect::<Vec<_>>(),
        "fieldSelector": resource.raw_field_selector,
        "labelSelector": resource.raw_label_selector,
    })
}

pub(super) fn attributes(attributes: &Attributes<'_>) -> Value {
    let resource = attributes.resource().copied().unwrap_or_default();
    let fields = resource.field_requirements().iter().map(field_requirement);
    let labels = resource.label_requirements().iter().map(label_requirement);
    json!({
        "verb": attributes.verb.as_str(),
        "readOnly": attributes.is_read_only(),
        "namespace": resource.namespace.as_str(),
        "apiGroup": resource.api_group,
        "apiVersion": resource.api_version,
        "resource": resource.resource,
        "subresource": resource.subresource,
        "name": resource.name,
        "resourceRequest": attributes.resource().is_some(),
        "path": attributes.path(),
        "fieldSelector": fields.collect::<Vec<_>>(),
        "fieldSelectorError": selector_error(resource.field_selector),
        "labelSelector": labels.collect::<Vec<_>>(),
        "labelSelectorError": selector_error(resource.label_selector),
    })
}

fn field_requirement(requirement: &FieldRequirement) -> Value {
    json!({
        "field": requirement.field,
        "operator": requirement.operator.operator_symbol(),
        "value": requirement.value,
    })
}

fn label_requirement(requirement: &LabelRequirement) -> Value {
    json!({
        "key": requirement.key,
        "operator": requirement.operator.name(),
        "values": requirement.values,
    })
}

fn selector_error<R>(selector: Option<&Selector<R>>) -> Option<String> {
    Some(selector?.error.as_ref()?.to_string())
}
