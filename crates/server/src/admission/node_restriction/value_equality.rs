//! Compares values as Kubernetes does: absent, null and empty values are the same.

use serde_json::Value;

/// Whether two values are the same, nested ones too.
pub(super) fn is_same_or_both_empty(left: Option<&Value>, right: Option<&Value>) -> bool {
    without_empty_values(left) == without_empty_values(right)
}

/// The value without members that are null or empty; `None` if nothing remains.
fn without_empty_values(value: Option<&Value>) -> Option<Value> {
    match value? {
        Value::Null => None,
        Value::String(text) if text.is_empty() => None,
        Value::Array(items) if items.is_empty() => None,
        Value::Array(items) => Some(Value::Array(
            // The number and the order of items count, even of empty ones.
            items.iter().map(|item| without_empty_values(Some(item)).unwrap_or_default()).collect(),
        )),
        Value::Object(members) => {
            let members = members
                .iter()
                .filter_map(|(key, value)| Some((key.clone(), without_empty_values(Some(value))?)));
            let members: serde_json::Map<String, Value> = members.collect();
            (!members.is_empty()).then_some(Value::Object(members))
        }
        other => Some(other.clone()),
    }
}
