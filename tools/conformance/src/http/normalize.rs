//! Removes from answers the values that differ between servers and runs.

use serde_json::{Map, Value};

/// Removes from a body the members that `ignore` names, and replaces values that each server chooses for itself.
pub(super) fn normalize(body: &mut Value, ignore: &[String]) {
    for pointer in ignore {
        let segments: Vec<String> = pointer
            .split('/')
            .skip(1)
            .map(|part| part.replace("~1", "/").replace("~0", "~"))
            .collect();
        remove_pointer(body, &segments);
    }
    normalize_values(body);
}

/// Replaces every UUID in a text by `UID` and every time of RFC 3339 by `TIME`.
pub(super) fn normalize_text(text: &str) -> String {
    let mut normalized = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (word, len) = match (uuid_length(rest.as_bytes()), time_length(rest.as_bytes())) {
            (Some(len), _) => ("UID", len),
            (None, Some(len)) => ("TIME", len),
            (None, None) => ("", first.len_utf8()),
        };
        let (taken, left) = rest.split_at(len);
        normalized.push_str(if word.is_empty() { taken } else { word });
        rest = left;
    }
    normalized
}

fn remove_pointer(value: &mut Value, pointer: &[String]) {
    let Some((segment, rest)) = pointer.split_first() else { return };
    match value {
        Value::Object(members) => {
            let keys: Vec<String> = match segment.as_str() {
                "*" => members.keys().cloned().collect(),
                key => vec![key.to_owned()],
            };
            for key in keys {
                if rest.is_empty() {
                    members.shift_remove(&key);
                } else if let Some(member) = members.get_mut(&key) {
                    remove_pointer(member, rest);
                }
            }
        }
        Value::Array(items) => {
            let only = segment.parse::<usize>().ok();
            for (idx, item) in items.iter_mut().enumerate() {
                if segment != "*" && only != Some(idx) {
                    continue;
                }
                match rest {
                    [] => *item = "IGNORED".into(),
                    rest => remove_pointer(item, rest),
                }
            }
        }
        _ => {}
    }
}

fn normalize_values(value: &mut Value) {
    match value {
        Value::String(text) => *text = normalize_text(text),
        Value::Array(items) => items.iter_mut().for_each(normalize_values),
        Value::Object(members) => {
            if has_prose_description(members) {
                members.shift_remove("description");
            }
            for (key, member) in members.iter_mut() {
                match placeholder(key, member) {
                    Some(word) => *member = word,
                    None => normalize_values(member),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Reports whether the `description` of an object is that of a schema or of a column.
fn has_prose_description(members: &Map<String, Value>) -> bool {
    members.get("description").is_some_and(Value::is_string)
        && ["type", "$ref", "allOf"].iter().any(|key| members.contains_key(*key))
}

/// The placeholder for a value that each server chooses for itself.
fn placeholder(key: &str, value: &Value) -> Option<Value> {
    let is_address =
        |value: &Value| value.as_str().is_some_and(|ip| !ip.is_empty() && ip != "None");
    match (key, value) {
        ("resourceVersion", Value::String(text)) => {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| "RV".into())
        }
        ("continue", Value::String(text)) => (!text.is_empty()).then(|| "CONTINUE".into()),
        ("clusterIP", ip) => is_address(ip).then(|| "IP".into()),
        ("clusterIPs", Value::Array(ips)) => {
            let word = |ip: &Value| if is_address(ip) { "IP".into() } else { ip.clone() };
            Some(ips.iter().map(word).collect())
        }
        ("nodePort", Value::Number(_)) => Some(0.into()),
        _ => None,
    }
}

/// The length of the UUID at the beginning of a text.
fn uuid_length(text: &[u8]) -> Option<usize> {
    const FORM: &[u8] = b"xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    has_form(text, FORM, u8::is_ascii_hexdigit).then_some(FORM.len())
}

/// The length of the time at the beginning of a text.
fn time_length(text: &[u8]) -> Option<usize> {
    const FORM: &[u8] = b"xxxx-xx-xxTxx:xx:xx";
    const ZONE: &[u8] = b"xx:xx";
    if !has_form(text, FORM, u8::is_ascii_digit) {
        return None;
    }
    let mut len = FORM.len();
    if text.get(len) == Some(&b'.') {
        let n_digits = text.iter().skip(len + 1).take_while(|byte| byte.is_ascii_digit()).count();
        len += 1 + n_digits;
    }
    match text.get(len)? {
        b'Z' => Some(len + 1),
        b'+' | b'-' if has_form(text.get(len + 1..)?, ZONE, u8::is_ascii_digit) => {
            Some(len + 1 + ZONE.len())
        }
        _ => None,
    }
}

/// Reports whether a text begins as a form says, where `x` stands for any digit.
fn has_form(text: &[u8], form: &[u8], is_digit: fn(&u8) -> bool) -> bool {
    text.len() >= form.len()
        && form.iter().zip(text).all(|(form, byte)| match form {
            b'x' => is_digit(byte),
            other => other == byte,
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn normalized(mut body: Value, ignore: &[&str]) -> Value {
        let ignore: Vec<String> = ignore.iter().map(|pointer| (*pointer).to_owned()).collect();
        normalize(&mut body, &ignore);
        body
    }

    #[test]
    fn uuids_and_times_become_placeholders() {
        for (text, want) in [
            ("", ""),
            ("é 6d5a1c1e-0000-4000-8000-00000000000A.", "é UID."),
            ("6d5a1c1e-0000-4000-8000-00000000000", "6d5a1c1e-0000-4000-8000-00000000000"),
            ("at 2026-01-02T03:04:05Z, 2026-01-02T03:04:05.123456+01:00", "at TIME, TIME"),
            ("2026-01-02T03:04:05", "2026-01-02T03:04:05"),
            ("2026-01-02T03:04:05+1", "2026-01-02T03:04:05+1"),
        ] {
            assert_eq!(normalize_text(text), want);
        }
    }

    #[test]
    fn server_chosen_values_become_placeholders() {
        for (body, want) in [
            (json!({"resourceVersion": "12"}), json!({"resourceVersion": "RV"})),
            (json!({"resourceVersion": "x1"}), json!({"resourceVersion": "x1"})),
            (json!({"continue": ""}), json!({"continue": ""})),
            (json!({"continue": "abc"}), json!({"continue": "CONTINUE"})),
            (json!({"clusterIP": "10.0.0.1"}), json!({"clusterIP": "IP"})),
            (json!({"clusterIP": "None"}), json!({"clusterIP": "None"})),
            (json!({"clusterIPs": ["fd00::1", "None"]}), json!({"clusterIPs": ["IP", "None"]})),
            (json!({"nodePort": 30001}), json!({"nodePort": 0})),
            (json!({"type": "object", "description": "d"}), json!({"type": "object"})),
            (json!({"$ref": "r", "description": "d"}), json!({"$ref": "r"})),
            (json!({"name": "n", "description": "d"}), json!({"name": "n", "description": "d"})),
            (
                json!({"type": "object", "description": {"type": "string"}}),
                json!({"type": "object", "description": {"type": "string"}}),
            ),
        ] {
            assert_eq!(normalized(json!([body]), &[]), json!([want]));
        }
    }

    #[test]
    fn ignored_members_are_removed_and_ignored_items_replaced() {
        let body = json!({"a": {"b": 1, "c": 2}, "l": [{"x": 1}, {"x": 2, "y": 3}], "d/e": 4});
        for (pointer, want) in [
            ("/a/b", json!({"a": {"c": 2}, "l": [{"x": 1}, {"x": 2, "y": 3}], "d/e": 4})),
            ("/a/*", json!({"a": {}, "l": [{"x": 1}, {"x": 2, "y": 3}], "d/e": 4})),
            ("/l/*/x", json!({"a": {"b": 1, "c": 2}, "l": [{}, {"y": 3}], "d/e": 4})),
            ("/l/0", json!({"a": {"b": 1, "c": 2}, "l": ["IGNORED", {"x": 2, "y": 3}], "d/e": 4})),
            ("/l/1/y", json!({"a": {"b": 1, "c": 2}, "l": [{"x": 1}, {"x": 2}], "d/e": 4})),
            ("/d~1e", json!({"a": {"b": 1, "c": 2}, "l": [{"x": 1}, {"x": 2, "y": 3}]})),
            ("/no/such", body.clone()),
        ] {
            assert_eq!(normalized(body.clone(), &[pointer]), want, "{pointer}");
        }
    }
}
