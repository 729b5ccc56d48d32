//! The bodies that clients sent to a real kube-apiserver, and what it answered.

use super::*;

const SCENARIOS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/http/http-protobuf.jsonl");

/// Every body is decoded, and the server of the recordings shows the values that the decoder finds.
#[test]
fn recorded_bodies_are_decoded() {
    let (mut n_bodies, mut n_compared, mut kinds) = (0, 0, std::collections::BTreeSet::new());
    let mut differences = Vec::new();
    for line in std::fs::read_to_string(SCENARIOS).unwrap().lines() {
        let scenario: Value = serde_json::from_str(line).unwrap();
        for step in scenario["steps"].as_array().unwrap() {
            let Some(body) = step["bodyBase64"].as_str() else { continue };
            let envelope_and_object = decode_recorded(&STANDARD.decode(body).unwrap());
            let Some(object) = envelope_and_object else { continue };
            n_bodies += 1;
            kinds.insert(object["kind"].as_str().unwrap().to_owned());
            let expect = &step["expect"];
            let is_shown = expect["body"]["kind"] == object["kind"];
            if is_shown && expect["code"].as_u64().is_some_and(|code| code < 300) {
                n_compared += 1;
                for (name, value) in &object {
                    // The server changes the metadata, drops the status and never shows `stringData`. The recordings
                    // leave out some members.
                    let ignored = step["ignore"].as_array().into_iter().flatten();
                    let is_ignored = ignored.into_iter().any(|own| own == &format!("/{name}"));
                    if !["metadata", "status", "stringData"].contains(&name.as_str()) && !is_ignored
                    {
                        let path = format!("{} {name}", scenario["id"]);
                        find_differences(value, &expect["body"][name], &path, &mut differences);
                    }
                }
            }
        }
    }
    assert_eq!(differences, [""; 0]);
    assert!(n_bodies > 370 && n_compared > 60, "{n_bodies} {n_compared}");
    assert!(kinds.len() > 25, "{kinds:?}");
}

/// The object of a body; `None` if the body is malformed on purpose.
fn decode_recorded(body: &[u8]) -> Option<Tree> {
    let envelope = ProtobufEnvelope::read(body).ok()?;
    let api_version = api_object::string_member(&envelope.type_meta, "apiVersion");
    let kind = api_object::string_member(&envelope.type_meta, "kind");
    if kind == "DeleteOptions" {
        return Some(decode(body, field_tables::delete_options_fields()).unwrap());
    }
    let GroupVersion { group, version } = GroupVersion::parse_api_version(api_version).unwrap();
    let message = field_tables::fields_of_kind(&group, &version, kind);
    Some(decode(body, message.unwrap_or_else(|| panic!("{api_version} {kind}"))).unwrap())
}

/// Adds the paths at which the answer does not contain a value. The answer may have more members and more items, and a
/// default in place of a zero.
fn find_differences(value: &Value, shown: &Value, path: &str, differences: &mut Vec<String>) {
    match (value, shown) {
        (Value::Object(members), shown) => {
            for (name, value) in members {
                find_differences(value, &shown[name], &format!("{path}.{name}"), differences);
            }
        }
        (Value::Array(items), Value::Array(shown)) if items.len() <= shown.len() => {
            for (idx, (item, shown)) in items.iter().zip(shown).enumerate() {
                find_differences(item, shown, &format!("{path}[{idx}]"), differences);
            }
        }
        (value, shown) => {
            let is_zero = value == "" || value == 0 || value == false;
            let is_replaced = ["TIME", "UID", "IP"].iter().any(|own| shown == own);
            let is_equal =
                value == shown || value.as_f64().is_some_and(|own| Some(own) == shown.as_f64());
            if !(is_equal || is_replaced || is_zero) {
                differences.push(format!("{path}: {value} is shown as {shown}"));
            }
        }
    }
}
