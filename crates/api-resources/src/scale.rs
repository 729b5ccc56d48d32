//! The subresource `scale`: how many replicas an object asks for and has, as a `Scale` of `autoscaling/v1`.
//!
//! A built-in workload has its replicas at fixed paths. The definition of a custom resource declares the paths.

use std::sync::{Arc, LazyLock};

use api_object::Tree;
use field_errors::{BadValue, FieldErrors, FieldPath};
use serde_json::Value;

use crate::built_in_resources::SCALE;
use crate::columns::{labels_text, selector_text};
use crate::json_members::{integer_member, string_member, value_at_path};
use crate::resource::Resource;

/// The paths in the objects of a custom resource, as its definition writes them, such as `.spec.replicas`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaPaths {
    spec_replicas_path: String,
    status_replicas_path: String,
    label_selector_path: Option<String>,
}

/// The Scale of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectScale {
    /// The Scale. It has no `spec.replicas` if the object has none, or if they are 0.
    pub scale_tree: Tree,
    /// The path of the replicas if the object has nothing there.
    pub missing_replicas_path: Option<String>,
}

/// A value in an object has another type than its field in a Scale. The text is that of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path} accessor error: {value} is of the type {found_type}, expected {expected_type}")]
pub struct ScaleError {
    path: String,
    value: String,
    found_type: &'static str,
    expected_type: &'static str,
}

/// The kind of a Scale in the form of a resource, for messages and tables.
#[must_use]
pub fn scale_resource() -> Arc<Resource> {
    static KIND: LazyLock<Arc<Resource>> = LazyLock::new(|| Arc::new(SCALE.resource()));
    Arc::clone(&KIND)
}

/// Returns the Scale of an object. It has no resourceVersion.
///
/// # Errors
/// A value at a path that a definition declares has the wrong type.
pub fn scale_of_object(resource: &Resource, object: &Tree) -> Result<ObjectScale, ScaleError> {
    let member = |name: &str| object.get(name).unwrap_or(&Value::Null);
    let (spec, status) = (member("spec"), member("status"));
    let (desired, current, selector) = match resource.replica_paths() {
        Some(paths) => (
            integer_at_path(object, &paths.spec_replicas_path)?,
            integer_at_path(object, &paths.status_replicas_path)?.unwrap_or_default(),
            paths.read_label_selector(object)?,
        ),
        None => {
            let selector = match resource.kind.as_str() {
                "ReplicationController" => labels_text(spec, "selector"),
                _ => selector_text(value_at_path(spec, &["selector"])),
            };
            // Kubernetes sets the default of a workload when it is created.
            let desired = spec.get("replicas").and_then(Value::as_i64).unwrap_or(1);
            (Some(desired), integer_member(status, "replicas"), selector)
        }
    };
    let mut metadata = Tree::new();
    for name in ["name", "namespace", "uid", "creationTimestamp"] {
        if let Some(value) = api_object::metadata(object).get(name) {
            metadata.insert(name.to_owned(), value.clone());
        }
    }
    let mut scale_spec = Tree::new();
    if let Some(desired) = desired.filter(|&desired| desired != 0) {
        scale_spec.insert("replicas".to_owned(), desired.into());
    }
    let mut scale_status = Tree::new();
    scale_status.insert("replicas".to_owned(), current.into());
    if !selector.is_empty() {
        scale_status.insert("selector".to_owned(), selector.into());
    }
    let mut tree = Tree::new();
    tree.insert("kind".to_owned(), SCALE_KIND.into());
    tree.insert("apiVersion".to_owned(), SCALE_API_VERSION.into());
    tree.insert("metadata".to_owned(), metadata.into());
    tree.insert("spec".to_owned(), scale_spec.into());
    tree.insert("status".to_owned(), scale_status.into());
    let missing_path = resource.replica_paths().filter(|_| desired.is_none());
    Ok(ObjectScale {
        scale_tree: tree,
        missing_replicas_path: missing_path.map(|own| own.spec_replicas_path.clone()),
    })
}

const SCALE_KIND: &str = "Scale";
const SCALE_API_VERSION: &str = "autoscaling/v1";

/// Sets the replicas that an object asks for.
pub fn set_replicas(resource: &Resource, object: &mut Tree, replicas: i64) {
    let path = resource.replica_paths().map_or(".spec.replicas", |own| &own.spec_replicas_path);
    let mut members = split_path_members(path).peekable();
    let mut tree = object;
    while let Some(member) = members.next() {
        if members.peek().is_none() {
            tree.insert(member.to_owned(), replicas.into());
            return;
        }
        tree = api_object::object_member_mut(tree, member);
    }
}

impl ReplicaPaths {
    /// Reads the subresource `scale` of a definition. Returns `None` if it does not declare where the replicas are.
    pub(crate) fn read(scale: &Value) -> Option<Self> {
        let path = |member: &str| {
            Some(string_member(scale, member).to_owned()).filter(|path| !path.is_empty())
        };
        Some(Self {
            spec_replicas_path: path("specReplicasPath")?,
            status_replicas_path: path("statusReplicasPath")?,
            label_selector_path: path("labelSelectorPath"),
        })
    }

    fn read_label_selector(&self, object: &Tree) -> Result<String, ScaleError> {
        let Some(path) = &self.label_selector_path else { return Ok(String::new()) };
        match find_value_at_path(object, path)? {
            None => Ok(String::new()),
            Some(Value::String(selector)) => Ok(selector.clone()),
            Some(other) => Err(wrong_type_error(split_path_members(path), other, "string")),
        }
    }

    /// Validates the replicas that an object asks for.
    pub(crate) fn validate_spec_replicas(&self, object: &Tree, errors: &mut FieldErrors) {
        validate_replicas(object, &self.spec_replicas_path, errors);
    }

    /// Validates the replicas that an object has, and the selector of their pods.
    pub(crate) fn validate_status_replicas_and_selector(
        &self,
        object: &Tree,
        errors: &mut FieldErrors,
    ) {
        validate_replicas(object, &self.status_replicas_path, errors);
        if let (Err(error), Some(path)) =
            (self.read_label_selector(object), &self.label_selector_path)
        {
            errors.push(FieldPath::root(path).invalid("", &error.to_string()));
        }
    }
}

fn validate_replicas(object: &Tree, path: &str, errors: &mut FieldErrors) {
    let root = FieldPath::root(path);
    match integer_at_path(object, path) {
        Err(error) => errors.push(root.invalid(0, &error.to_string())),
        Ok(Some(replicas @ ..0)) => {
            let value = BadValue::Json(replicas.to_string());
            errors.push(root.invalid(value, "should be a non-negative integer"));
        }
        Ok(Some(replicas)) if replicas > i64::from(i32::MAX) => {
            let value = BadValue::Json(replicas.to_string());
            let detail = format!("should be less than or equal to {}", i32::MAX);
            errors.push(root.invalid(value, &detail));
        }
        Ok(_) => {}
    }
}

/// The whole number at a path; `None` if nothing is there.
fn integer_at_path(object: &Tree, path: &str) -> Result<Option<i64>, ScaleError> {
    let Some(value) = find_value_at_path(object, path)? else { return Ok(None) };
    match value.as_i64() {
        Some(number) => Ok(Some(number)),
        None => Err(wrong_type_error(split_path_members(path), value, "int64")),
    }
}

/// Finds the value at a path; `None` if it or an object around it is absent.
fn find_value_at_path<'t>(object: &'t Tree, path: &str) -> Result<Option<&'t Value>, ScaleError> {
    let mut found: Option<&Value> = None;
    for (idx, member) in split_path_members(path).enumerate() {
        let next = match found {
            None => object.get(member),
            Some(Value::Object(inner)) => inner.get(member),
            Some(Value::Null) => return Ok(None),
            Some(other) => {
                // As in Kubernetes, the path is that of the member that was looked up in the value.
                let members = split_path_members(path).take(idx + 1);
                return Err(wrong_type_error(members, other, "map[string]interface{}"));
            }
        };
        match next {
            Some(value) => found = Some(value),
            None => return Ok(None),
        }
    }
    Ok(found)
}

fn split_path_members(path: &str) -> std::str::Split<'_, char> {
    path.strip_prefix('.').unwrap_or(path).split('.')
}

fn wrong_type_error<'p>(
    members: impl Iterator<Item = &'p str>,
    value: &Value,
    expected: &'static str,
) -> ScaleError {
    let path = members.fold(String::new(), |path, member| path + "." + member);
    ScaleError {
        path,
        value: format_like_go(value),
        found_type: go_type_name(value),
        expected_type: expected,
    }
}

/// A value as Go prints it with `%v`.
fn format_like_go(value: &Value) -> String {
    let joined = |texts: Vec<String>| texts.join(" ");
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(value) => value.to_string(),
        Value::String(value) => value.clone(),
        Value::Array(items) => format!("[{}]", joined(items.iter().map(format_like_go).collect())),
        Value::Object(members) => {
            let text =
                |(name, value): (&String, &Value)| format!("{name}:{}", format_like_go(value));
            let mut texts: Vec<String> = members.iter().map(text).collect();
            texts.sort_unstable();
            format!("map[{}]", joined(texts))
        }
    }
}

fn go_type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn scale_tree(value: Value) -> Tree {
        match value {
            Value::Object(tree) => tree,
            other => panic!("no object: {other}"),
        }
    }

    fn paths() -> ReplicaPaths {
        let scale = json!({
            "specReplicasPath": ".spec.pool.size",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        });
        ReplicaPaths::read(&scale).unwrap()
    }

    #[test]
    fn faults_of_replicas_and_selectors() {
        for (object, want) in [
            (json!({}), ""),
            (json!({"spec": {"pool": null}}), ""),
            (
                json!({"spec": {"pool": {"size": 3}}, "status": {"replicas": 0, "selector": "a=b"}}),
                "",
            ),
            (
                json!({"spec": {"pool": {"size": -1}}}),
                ".spec.pool.size: Invalid value: -1: should be a non-negative integer",
            ),
            (
                json!({"status": {"replicas": 3_000_000_000_i64}}),
                ".status.replicas: Invalid value: 3000000000: should be less than or equal to 2147483647",
            ),
            (
                json!({"spec": {"pool": {"size": "three"}}}),
                ".spec.pool.size: Invalid value: 0: .spec.pool.size accessor error: three is of the type string, \
                 expected int64",
            ),
            (
                json!({"spec": {"pool": [1]}}),
                ".spec.pool.size: Invalid value: 0: .spec.pool.size accessor error: [1] is of the type []interface {}, \
                 expected map[string]interface{}",
            ),
            (
                json!({"status": {"selector": {"a": "b"}}}),
                ".status.selector: Invalid value: \"\": .status.selector accessor error: map[a:b] is of the type \
                 map[string]interface {}, expected string",
            ),
        ] {
            let mut errors = FieldErrors::new();
            let object = scale_tree(object);
            paths().validate_spec_replicas(&object, &mut errors);
            paths().validate_status_replicas_and_selector(&object, &mut errors);
            assert_eq!(errors.to_string(), want, "{object:?}");
        }
    }

    #[test]
    fn selectors_of_workloads() {
        let registry = crate::Registry::with_built_in_resources();
        let scale = |group: &str, plural: &str, spec: Value| {
            let resource = registry.resource(group, "v1", plural).unwrap();
            Value::Object(
                scale_of_object(resource, &scale_tree(json!({"spec": spec}))).unwrap().scale_tree,
            )
        };
        let selector = json!({"matchLabels": {"b": "1"}, "matchExpressions": [
            {"key": "a", "operator": "In", "values": ["y", "x"]},
        ]});
        let of_set = scale("apps", "replicasets", json!({"replicas": 2, "selector": selector}));
        assert_eq!(of_set["status"], json!({"replicas": 0, "selector": "a in (x,y),b=1"}));
        assert_eq!(of_set["spec"], json!({"replicas": 2}));
        let of_controller =
            scale("", "replicationcontrollers", json!({"selector": {"b": "1", "a": "2"}}));
        assert_eq!(of_controller["status"]["selector"], json!("a=2,b=1"));
        assert_eq!(of_controller["spec"], json!({"replicas": 1}));
        assert_eq!(scale("apps", "deployments", json!({"replicas": 0}))["spec"], json!({}));
    }
}
