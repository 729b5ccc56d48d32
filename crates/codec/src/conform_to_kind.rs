//! Conforms a tree that was received as JSON or YAML to the fields of its kind.

use api_object::Tree;
use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, PAD};
use jiff::Timestamp;
use serde_json::Value;

use crate::field_tables;
use crate::field_types::{FieldType, Message, SchemaAlternative, ValueType};
use crate::strict_finding::{StrictFinding, StrictFindings};
use crate::value_path::Path;

/// Base64 as Go reads it: padded, but bits that the padding cuts off may be set.
const LENIENT_BASE64: GeneralPurpose =
    GeneralPurpose::new(&base64::alphabet::STANDARD, PAD.with_decode_allow_trailing_bits(true));

/// A value has another type than its field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("json: cannot unmarshal {found_value} into field {path} of type {expected_type}")]
pub struct WrongTypeError {
    path: String,
    found_value: String,
    expected_type: &'static str,
}

/// Conforms an object to the field table of its kind, or only its metadata if the kind has no
/// table.
///
/// 1. Unknown fields are recorded and dropped.
/// 2. A null field is absent; a null item or map value becomes the zero value of its type.
/// 3. Times are normalized.
/// 4. Any other value must have the type of its field.
pub(crate) fn conform_to_kind(
    tree: &mut Tree,
    message: Option<&'static Message>,
    findings: &mut StrictFindings,
) -> Result<(), WrongTypeError> {
    let Some(message) = message else {
        return conform_metadata(tree, findings);
    };
    let type_meta = ["apiVersion", "kind"].map(|name| tree.shift_remove_entry(name));
    let mut rest = std::mem::take(tree);
    tree.extend(type_meta.into_iter().flatten());
    conform_members(&mut rest, message, &Path::Root, findings)?;
    tree.append(&mut rest);
    Ok(())
}

fn conform_metadata(tree: &mut Tree, findings: &mut StrictFindings) -> Result<(), WrongTypeError> {
    match tree.get_mut("metadata") {
        None => Ok(()),
        Some(Value::Null) => {
            tree.shift_remove("metadata");
            Ok(())
        }
        Some(value) => {
            let path = Path::Field(&Path::Root, "metadata");
            let object_meta = ValueType::Object(field_tables::object_meta_fields());
            conform_value(value, object_meta, &path, findings)
        }
    }
}

fn conform_members(
    tree: &mut Tree,
    message: &'static Message,
    path: &Path<'_>,
    findings: &mut StrictFindings,
) -> Result<(), WrongTypeError> {
    let mut outcome = Ok(());
    tree.retain(|name, value| {
        if outcome.is_err() {
            return true;
        }
        let path = Path::Field(path, name);
        let Some(field) = message.field_by_name(name) else {
            // The path is not formatted if the finding would be dropped.
            if !findings.has_reached_findings_max() {
                findings.push(StrictFinding::UnknownField(path.to_string()));
            }
            return false;
        };
        if value.is_null() {
            return false;
        }
        outcome = conform_field(value, field.field_type, &path, findings);
        true
    });
    outcome
}

fn conform_field(
    value: &mut Value,
    field_type: FieldType,
    path: &Path<'_>,
    findings: &mut StrictFindings,
) -> Result<(), WrongTypeError> {
    match (field_type, &mut *value) {
        (FieldType::One(value_type), value) => conform_value(value, value_type, path, findings),
        (FieldType::List(value_type), Value::Array(items)) => {
            conform_list(items, value_type, path, findings)
        }
        (FieldType::Map(value_type), Value::Object(tree)) => {
            for (name, value) in tree.iter_mut() {
                conform_element(value, value_type, &Path::Field(path, name), findings)?;
            }
            Ok(())
        }
        (FieldType::Inline(message), Value::Object(tree)) => {
            conform_members(tree, message.message(), path, findings)
        }
        (FieldType::List(_), _) => Err(wrong_type_error(value, "array", path)),
        (FieldType::Map(_) | FieldType::Inline(_), _) => {
            Err(wrong_type_error(value, "object", path))
        }
    }
}

fn conform_value(
    value: &mut Value,
    value_type: ValueType,
    path: &Path<'_>,
    findings: &mut StrictFindings,
) -> Result<(), WrongTypeError> {
    match (value_type, &mut *value) {
        (ValueType::Json, _)
        | (ValueType::Text | ValueType::IntOrString | ValueType::Quantity, Value::String(_))
        | (ValueType::Double | ValueType::Quantity, Value::Number(_))
        | (ValueType::Bool | ValueType::SchemaOr(SchemaAlternative::Bool), Value::Bool(_)) => {
            Ok(())
        }
        (ValueType::Int32 | ValueType::IntOrString, Value::Number(number)) => {
            let fits = number.as_i64().is_some_and(|number| i32::try_from(number).is_ok());
            if fits {
                Ok(())
            } else {
                Err(wrong_type_error(value, value_type_name(value_type), path))
            }
        }
        (ValueType::Int64, Value::Number(number)) if number.is_i64() => Ok(()),
        (ValueType::Bytes, Value::String(text)) => match is_base64(text) {
            true => Ok(()),
            false => Err(wrong_type_error(value, value_type_name(value_type), path)),
        },
        (ValueType::Time | ValueType::MicroTime, Value::String(text)) => {
            match normalize_time(text, value_type) {
                Some(normal) => {
                    *text = normal;
                    Ok(())
                }
                None => Err(wrong_type_error(value, value_type_name(value_type), path)),
            }
        }
        (ValueType::Object(message), Value::Object(tree)) => {
            conform_members(tree, message.message(), path, findings)
        }
        (ValueType::SchemaOr(_), Value::Object(tree)) => {
            conform_members(tree, field_tables::json_schema_fields().message(), path, findings)
        }
        (ValueType::SchemaOr(SchemaAlternative::Schemas), Value::Array(items)) => conform_list(
            items,
            ValueType::Object(field_tables::json_schema_fields()),
            path,
            findings,
        ),
        (
            ValueType::WrappedTexts | ValueType::SchemaOr(SchemaAlternative::Texts),
            Value::Array(items),
        ) => conform_list(items, ValueType::Text, path, findings),
        _ => Err(wrong_type_error(value, value_type_name(value_type), path)),
    }
}

fn conform_list(
    items: &mut [Value],
    value_type: ValueType,
    path: &Path<'_>,
    findings: &mut StrictFindings,
) -> Result<(), WrongTypeError> {
    for (idx, item) in items.iter_mut().enumerate() {
        conform_element(item, value_type, &Path::Index(path, idx), findings)?;
    }
    Ok(())
}

/// Conforms an item of a list or a value of a map.
fn conform_element(
    value: &mut Value,
    value_type: ValueType,
    path: &Path<'_>,
    findings: &mut StrictFindings,
) -> Result<(), WrongTypeError> {
    if value.is_null() {
        *value = zero_value(value_type);
        return Ok(());
    }
    conform_value(value, value_type, path, findings)
}

/// The zero value that replaces a null.
fn zero_value(value_type: ValueType) -> Value {
    match value_type {
        ValueType::Text | ValueType::Bytes => "".into(),
        ValueType::Bool => false.into(),
        ValueType::Int32 | ValueType::Int64 | ValueType::Double | ValueType::IntOrString => {
            0.into()
        }
        ValueType::Quantity => "0".into(),
        ValueType::Time | ValueType::MicroTime | ValueType::Json | ValueType::SchemaOr(_) => {
            Value::Null
        }
        ValueType::WrappedTexts => Value::Array(Vec::new()),
        ValueType::Object(_) => Value::Object(Tree::new()),
    }
}

fn is_base64(text: &str) -> bool {
    if text.contains(['\r', '\n']) {
        return LENIENT_BASE64.decode(text.replace(['\r', '\n'], "")).is_ok();
    }
    LENIENT_BASE64.decode(text).is_ok()
}

fn normalize_time(text: &str, value_type: ValueType) -> Option<String> {
    let time: Timestamp = text.parse().ok()?;
    Some(match value_type {
        ValueType::MicroTime => api_object::format_rfc3339_micro(time),
        _ => api_object::format_rfc3339(time),
    })
}

fn wrong_type_error(value: &Value, expected: &'static str, path: &Path<'_>) -> WrongTypeError {
    let found = match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(number) => format!("number {number}"),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
    };
    WrongTypeError { path: path.to_string(), found_value: found, expected_type: expected }
}

/// The type as errors about a value name it.
fn value_type_name(value_type: ValueType) -> &'static str {
    match value_type {
        ValueType::Text => "string",
        ValueType::Bytes => "base64 string",
        ValueType::Bool => "bool",
        ValueType::Int32 => "int32",
        ValueType::Int64 => "int64",
        ValueType::Double => "float64",
        ValueType::Time | ValueType::MicroTime => "RFC 3339 time",
        ValueType::Quantity => "quantity",
        ValueType::Json => "any",
        ValueType::IntOrString => "int32 or string",
        ValueType::WrappedTexts => "array",
        ValueType::SchemaOr(SchemaAlternative::Bool) => "bool or object",
        ValueType::SchemaOr(SchemaAlternative::Schemas | SchemaAlternative::Texts) => {
            "array or object"
        }
        ValueType::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn conformed(kind: &str, value: Value) -> Result<(Value, Vec<String>), WrongTypeError> {
        let groups = ["", "rbac.authorization.k8s.io", "coordination.k8s.io"];
        let message =
            groups.iter().find_map(|group| field_tables::fields_of_kind(group, "v1", kind));
        let mut tree = value.as_object().cloned().unwrap_or_default();
        let mut findings = StrictFindings::default();
        conform_to_kind(&mut tree, message, &mut findings)?;
        let findings = findings.into_vec().iter().map(StrictFinding::to_string).collect();
        Ok((Value::Object(tree), findings))
    }

    #[test]
    fn unknown_fields_are_found_and_dropped() {
        let role = json!({
            "kind": "Role", "apiVersion": "x", "foo": 1,
            "metadata": {"name": "a", "bar": 1, "labels": {"any": "x"}},
            "rules": [{"verbs": ["get"], "verb": "get"}],
        });
        let want = json!({
            "kind": "Role", "apiVersion": "x",
            "metadata": {"name": "a", "labels": {"any": "x"}}, "rules": [{"verbs": ["get"]}],
        });
        let findings = ["foo", "metadata.bar", "rules[0].verb"];
        let findings = findings.map(|path| format!("unknown field \"{path}\"")).to_vec();
        assert_eq!(conformed("Role", role), Ok((want, findings)));
    }

    #[test]
    fn kinds_without_table_keep_all_but_unknown_metadata() {
        let widget = json!({"metadata": {"name": "a", "bar": 1}, "spec": {"x": null}});
        let want = json!({"metadata": {"name": "a"}, "spec": {"x": null}});
        let findings = vec!["unknown field \"metadata.bar\"".to_owned()];
        assert_eq!(conformed("Widget", widget), Ok((want, findings)));
        let bare = json!({"metadata": null});
        assert_eq!(conformed("Widget", bare), Ok((json!({}), vec![])));
    }

    #[test]
    fn null_fields_are_absent() {
        let map = json!({"metadata": {"name": "a", "labels": null}, "data": {"a": null}, "immutable": null});
        let want = json!({"metadata": {"name": "a"}, "data": {"a": ""}});
        assert_eq!(conformed("ConfigMap", map), Ok((want, vec![])));
        let role = json!({"rules": [null, {"verbs": [null]}]});
        assert_eq!(conformed("Role", role), Ok((json!({"rules": [{}, {"verbs": [""]}]}), vec![])));
    }

    #[test]
    fn times_are_normalized() {
        let lease = json!({
            "metadata": {"creationTimestamp": "2026-11-15T20:02:38.9+02:00"},
            "spec": {"renewTime": "2026-11-15T18:02:38Z"},
        });
        let want = json!({
            "metadata": {"creationTimestamp": "2026-11-15T18:02:38Z"},
            "spec": {"renewTime": "2026-11-15T18:02:38.000000Z"},
        });
        assert_eq!(conformed("Lease", lease), Ok((want, vec![])));
    }

    #[test]
    fn wrong_types_are_refused_with_their_path() {
        for (kind, value, want) in [
            ("ConfigMap", json!({"data": {"a": 1}}), "number 1 into field data.a of type string"),
            ("ConfigMap", json!({"data": []}), "array into field data of type object"),
            ("Widget", json!({"metadata": "a"}), "string into field metadata of type object"),
            (
                "Secret",
                json!({"data": {"a": "*"}}),
                "string into field data.a of type base64 string",
            ),
            (
                "Service",
                json!({"spec": {"ports": [{"port": 4_294_967_296_u64}]}}),
                "number 4294967296 into field spec.ports[0].port of type int32",
            ),
            (
                "Lease",
                json!({"metadata": {"generation": 1.5}}),
                "number 1.5 into field metadata.generation of type int64",
            ),
            (
                "Lease",
                json!({"spec": {"renewTime": "now"}}),
                "string into field spec.renewTime of type RFC 3339 time",
            ),
        ] {
            let error = conformed(kind, value).unwrap_err();
            assert_eq!(error.to_string(), format!("json: cannot unmarshal {want}"));
        }
    }
}
