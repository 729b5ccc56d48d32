//! Normalizes metadata and checks the types of its members.
//!
//! Objects may be stored as they arrive, except for their metadata: selectors, deletion and the
//! store rely on the types of its members.

use serde_json::Value;

use crate::object_tree::{Tree, metadata_mut};

/// The type of a metadata member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MetadataMemberType {
    Text,
    Integer,
    Time,
    /// A map from strings to strings.
    Texts,
    /// A list of strings.
    TextList,
    /// A list of objects.
    ObjectList,
    Object,
    /// A member that is accepted and dropped.
    Dropped,
}

const MEMBERS: &[(&str, MetadataMemberType)] = &[
    ("name", MetadataMemberType::Text),
    ("generateName", MetadataMemberType::Text),
    ("namespace", MetadataMemberType::Text),
    ("selfLink", MetadataMemberType::Dropped),
    ("uid", MetadataMemberType::Text),
    ("resourceVersion", MetadataMemberType::Text),
    ("generation", MetadataMemberType::Integer),
    ("creationTimestamp", MetadataMemberType::Time),
    ("deletionTimestamp", MetadataMemberType::Time),
    ("deletionGracePeriodSeconds", MetadataMemberType::Integer),
    ("labels", MetadataMemberType::Texts),
    ("annotations", MetadataMemberType::Texts),
    ("ownerReferences", MetadataMemberType::ObjectList),
    ("finalizers", MetadataMemberType::TextList),
    ("managedFields", MetadataMemberType::Dropped),
    ("initializers", MetadataMemberType::Object),
];

/// A metadata member has the wrong type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("json: cannot unmarshal {found_type} into field {path} of type {expected_type}")]
pub struct MetadataTypeError {
    /// The path of the member.
    pub path: String,
    /// The type of the value.
    pub found_type: &'static str,
    /// The type that the member must have.
    pub expected_type: &'static str,
}

/// Normalizes the metadata of an object: unknown, null, empty and unsupported members are dropped,
/// except for an empty `initializers`.
///
/// # Errors
/// A known member has the wrong type.
pub fn normalize_metadata(tree: &mut Tree) -> Result<(), MetadataTypeError> {
    match tree.get("metadata") {
        None | Some(Value::Null | Value::Object(_)) => {}
        Some(other) => return Err(metadata_type_error("metadata".to_owned(), other, "ObjectMeta")),
    }
    let metadata = metadata_mut(tree);
    metadata.retain(|member, value| {
        let member_type =
            MEMBERS.iter().find(|(name, _)| name == member).map(|(_, member_type)| *member_type);
        !matches!(member_type, None | Some(MetadataMemberType::Dropped)) && !value.is_null()
    });
    for (member, member_type) in MEMBERS {
        let Some(value) = metadata.get_mut(*member) else { continue };
        check_metadata_member(&format!("metadata.{member}"), *member_type, value)?;
        // An empty list of initializers means that there are none, so it is kept.
        if *member_type != MetadataMemberType::Object && is_empty(value) {
            metadata.shift_remove(*member);
        }
    }
    Ok(())
}

fn check_metadata_member(
    path: &str,
    member_type: MetadataMemberType,
    value: &mut Value,
) -> Result<(), MetadataTypeError> {
    let is_right = match member_type {
        MetadataMemberType::Text => value.is_string(),
        MetadataMemberType::Integer => value.is_i64(),
        MetadataMemberType::Time => match &mut *value {
            Value::String(text) => return normalize_time(path, text),
            _ => false,
        },
        MetadataMemberType::Texts => match &mut *value {
            Value::Object(map) => {
                for (key, value) in map.iter_mut() {
                    if value.is_null() {
                        *value = Value::String(String::new());
                    }
                    if !value.is_string() {
                        return Err(metadata_type_error(format!("{path}.{key}"), value, "string"));
                    }
                }
                true
            }
            _ => false,
        },
        MetadataMemberType::TextList => {
            return check_list_items(path, value, "string", Value::is_string);
        }
        MetadataMemberType::ObjectList => {
            return check_list_items(path, value, "OwnerReference", Value::is_object);
        }
        MetadataMemberType::Object => value.is_object(),
        MetadataMemberType::Dropped => true,
    };
    match is_right {
        true => Ok(()),
        false => Err(metadata_type_error(path.to_owned(), value, member_type.type_name())),
    }
}

fn check_list_items(
    path: &str,
    value: &Value,
    expected: &'static str,
    is_right: impl Fn(&Value) -> bool,
) -> Result<(), MetadataTypeError> {
    let Value::Array(items) = value else {
        return Err(metadata_type_error(path.to_owned(), value, expected));
    };
    match items.iter().enumerate().find(|(_, item)| !is_right(item)) {
        Some((idx, item)) => Err(metadata_type_error(format!("{path}[{idx}]"), item, expected)),
        None => Ok(()),
    }
}

/// Normalizes a timestamp to UTC and whole seconds.
fn normalize_time(path: &str, text: &mut String) -> Result<(), MetadataTypeError> {
    if text.is_empty() {
        return Ok(());
    }
    match text.parse::<jiff::Timestamp>() {
        Ok(time) => {
            *text = crate::format_timestamp::format_rfc3339(time);
            Ok(())
        }
        Err(_) => Err(MetadataTypeError {
            path: path.to_owned(),
            found_type: "a string that is no RFC 3339 time",
            expected_type: "Time",
        }),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

impl MetadataMemberType {
    const fn type_name(self) -> &'static str {
        match self {
            Self::Text | Self::TextList => "string",
            Self::Integer => "int64",
            Self::Time => "Time",
            Self::Texts => "map[string]string",
            Self::ObjectList => "[]OwnerReference",
            Self::Object | Self::Dropped => "object",
        }
    }
}

fn metadata_type_error(path: String, found: &Value, expected: &'static str) -> MetadataTypeError {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    MetadataTypeError { path, found_type: found, expected_type: expected }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn normalized(metadata: Value) -> Result<Value, MetadataTypeError> {
        let mut tree = Tree::new();
        tree.insert("metadata".to_owned(), metadata);
        normalize_metadata(&mut tree)?;
        Ok(tree.remove("metadata").unwrap_or_default())
    }

    #[test]
    fn what_is_unknown_null_or_empty_is_dropped() {
        let given = json!({"name": "a", "foo": 1, "labels": {}, "uid": null, "selfLink": "/x",
            "managedFields": [{}], "generateName": "", "annotations": {"k": null},
            "initializers": {}, "creationTimestamp": "2026-11-15T20:02:38.5+02:00"});
        let want = json!({"name": "a", "annotations": {"k": ""}, "initializers": {},
            "creationTimestamp": "2026-11-15T18:02:38Z"});
        assert_eq!(normalized(given), Ok(want));
        assert_eq!(normalized(Value::Null), Ok(json!({})));
    }

    #[test]
    fn what_holds_something_else_is_refused_with_its_place() {
        for (given, want) in [
            (json!(1), "cannot unmarshal number into field metadata of type ObjectMeta"),
            (json!({"name": 1}), "cannot unmarshal number into field metadata.name of type string"),
            (json!({"labels": {"a": 1}}), "number into field metadata.labels.a of type string"),
            (json!({"labels": []}), "array into field metadata.labels of type map[string]string"),
            (json!({"finalizers": ["a", {}]}), "object into field metadata.finalizers[1] of type"),
            (json!({"generation": 1.5}), "number into field metadata.generation of type int64"),
            (json!({"deletionTimestamp": "soon"}), "no RFC 3339 time into field"),
            (json!({"ownerReferences": ["x"]}), "string into field metadata.ownerReferences[0]"),
        ] {
            let error = normalized(given).unwrap_err().to_string();
            assert!(error.contains(want), "{error}");
        }
    }
}
