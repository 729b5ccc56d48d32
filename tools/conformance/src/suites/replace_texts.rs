//! Replaces texts inside the JSON of answers.

use serde_json::Value;

/// Replaces a text in all strings of a value.
pub(super) fn replace_texts(value: &mut Value, from: &str, to: &str) {
    match value {
        Value::String(text) => *text = text.replace(from, to),
        Value::Array(items) => items.iter_mut().for_each(|item| replace_texts(item, from, to)),
        Value::Object(members) => {
            members.values_mut().for_each(|member| replace_texts(member, from, to));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_are_replaced_at_any_depth() {
        let mut value = json!({"a": ["x /real/f y", {"b": "/real"}], "c": 1});
        replace_texts(&mut value, "/real", "/shown");
        assert_eq!(value, json!({"a": ["x /shown/f y", {"b": "/shown"}], "c": 1}));
    }
}
