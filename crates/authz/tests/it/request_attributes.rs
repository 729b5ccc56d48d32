//! Vectors of `conformance/request-attributes.jsonl`: what Kubernetes derives from request lines.

use authz::{
    Attributes, FieldRequirement, LabelRequirement, RequestError, RequestInfo, ResourceInfo,
    Selector,
};
use serde_json::{Map, Value, json};

const VECTORS: &str = include_str!("../../../../conformance/request-attributes.jsonl");

#[test]
fn all_vectors_agree() {
    let mut n_vectors = 0;
    let mut differences = Vec::new();
    for line in VECTORS.lines() {
        let vector: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| vector[key].as_str().unwrap();
        let got = answer(text("method"), text("target"));
        let want = without_empty(&vector["expect"]);
        if got != want {
            differences.push(format!("{}\n  want {want}\n  got  {got}", text("id")));
        }
        n_vectors += 1;
    }
    assert!(n_vectors > 400, "only {n_vectors} vectors");
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

fn answer(method: &str, target: &str) -> Value {
    let answer = match RequestInfo::new(method, target) {
        Ok(info) => json!({
            "requestInfo": request_info(&info),
            "attributes": attributes(&info.attributes(None)),
        }),
        Err(RequestError::Malformed(error)) => json!({"httpError": error.to_string()}),
        Err(RequestError::Unclassified(error)) => json!({
            "requestInfoError": error.to_string(),
            "requestInfo": request_info(&error.info),
        }),
    };
    without_empty(&answer)
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
        "namespace": resource.namespace,
        "resource": resource.resource,
        "subresource": resource.subresource,
        "name": resource.name,
        "parts": resource.parts().collect::<Vec<_>>(),
        "fieldSelector": resource.raw_field_selector,
        "labelSelector": resource.raw_label_selector,
    })
}

fn attributes(attributes: &Attributes<'_>) -> Value {
    let resource = attributes.resource().copied().unwrap_or_default();
    json!({
        "verb": attributes.verb,
        "readOnly": attributes.is_read_only(),
        "namespace": resource.namespace,
        "apiGroup": resource.api_group,
        "apiVersion": resource.api_version,
        "resource": resource.resource,
        "subresource": resource.subresource,
        "name": resource.name,
        "resourceRequest": attributes.resource().is_some(),
        "path": attributes.path(),
        "fieldSelector": resource.field_requirements().iter().map(field).collect::<Vec<_>>(),
        "fieldSelectorError": error(resource.field_selector),
        "labelSelector": resource.label_requirements().iter().map(label).collect::<Vec<_>>(),
        "labelSelectorError": error(resource.label_selector),
    })
}

fn field(requirement: &FieldRequirement) -> Value {
    json!({
        "field": requirement.field,
        "operator": requirement.operator.symbol(),
        "value": requirement.value,
    })
}

fn label(requirement: &LabelRequirement) -> Value {
    json!({
        "key": requirement.key,
        "operator": requirement.operator.name(),
        "values": requirement.values,
    })
}

fn error<R>(selector: Option<&Selector<R>>) -> Option<String> {
    selector.and_then(|selector| selector.error.as_ref()).map(ToString::to_string)
}

/// Drops what is empty at any depth of an object, since an absent field means the same. Elements
/// of arrays stay.
fn without_empty(value: &Value) -> Value {
    match value {
        Value::Object(object) => Value::Object(
            object
                .iter()
                .map(|(key, value)| (key.clone(), without_empty(value)))
                .filter(|(_, value)| !is_empty(value))
                .collect::<Map<_, _>>(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(without_empty).collect()),
        other => other.clone(),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(truth) => !truth,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(object) => object.is_empty(),
        Value::Number(_) => false,
    }
}
