//! Normalizes values for comparison, as Kubernetes compares them.

use serde_json::Value;

/// Booleans and numbers for which false or zero means the same as absent. For all others, such as
/// `runAsUser`, there is a difference.
const ZEROES: [&str; 14] = [
    "failureThreshold",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostPort",
    "initialDelaySeconds",
    "periodSeconds",
    "port",
    "readOnly",
    "stdin",
    "stdinOnce",
    "successThreshold",
    "timeoutSeconds",
    "tty",
];

/// Removes members that are equivalent to absent ones: nulls, and empty strings, lists and objects.
/// Kubernetes does not distinguish them either.
pub(super) fn remove_empty_members(value: &Value) -> Value {
    let is_nothing = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    };
    let value = match value {
        Value::Array(items) => Value::Array(items.iter().map(remove_empty_members).collect()),
        Value::Object(members) => {
            let members =
                members.iter().map(|(key, value)| (key.clone(), remove_empty_members(value)));
            let said =
                members.filter(|(key, value)| !value.is_null() && !is_ignored_zero(key, value));
            Value::Object(said.collect())
        }
        other => other.clone(),
    };
    if is_nothing(&value) { Value::Null } else { value }
}

fn is_ignored_zero(key: &str, value: &Value) -> bool {
    ZEROES.contains(&key) && (value == &Value::Bool(false) || value.as_i64() == Some(0))
}
