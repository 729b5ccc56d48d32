//! The shape of metadata: which members there are and what they hold.
//!
//! Kinds may be stored as they come, metadata may not: selectors, deletion and the store rely on it.

use serde_json::Value;

use crate::tree::{Tree, metadata_mut};

/// What a member of the metadata holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    Text,
    Integer,
    Time,
    /// Names to texts.
    Texts,
    /// A list of texts.
    TextList,
    /// A list of objects.
    ObjectList,
    Object,
    /// Accepted, and not kept.
    Nothing,
}

const MEMBERS: &[(&str, Holds)] = &[
    ("name", Holds::Text),
    ("generateName", Holds::Text),
    ("namespace", Holds::Text),
    ("selfLink", Holds::Nothing),
    ("uid", Holds::Text),
    ("resourceVersion", Holds::Text),
    ("generation", Holds::Integer),
    ("creationTimestamp", Holds::Time),
    ("deletionTimestamp", Holds::Time),
    ("deletionGracePeriodSeconds", Holds::Integer),
    ("labels", Holds::Texts),
    ("annotations", Holds::Texts),
    ("ownerReferences", Holds::ObjectList),
    ("finalizers", Holds::TextList),
    ("managedFields", Holds::Nothing),
    ("initializers", Holds::Object),
];

/// A member that does not hold what it should.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("json: cannot unmarshal {found} into field {path} of type {wanted}")]
pub struct ShapeError {
    /// Where.
    pub path: String,
    /// What was found there.
    pub found: &'static str,
    /// What should be there.
    pub wanted: &'static str,
}

/// Brings the metadata of an object into its shape: members that are unknown, null, empty or not kept
/// are dropped, but for an empty `initializers`.
///
/// # Errors
/// A known member holds something else than it should.
pub fn shape_metadata(tree: &mut Tree) -> Result<(), ShapeError> {
    match tree.get("metadata") {
        None | Some(Value::Null | Value::Object(_)) => {}
        Some(other) => return Err(wrong("metadata".to_owned(), other, "ObjectMeta")),
    }
    let metadata = metadata_mut(tree);
    metadata.retain(|member, value| {
        let holds = MEMBERS.iter().find(|(name, _)| name == member).map(|(_, holds)| *holds);
        !matches!(holds, None | Some(Holds::Nothing)) && !value.is_null()
    });
    for (member, holds) in MEMBERS {
        let Some(value) = metadata.get_mut(*member) else { continue };
        check(&format!("metadata.{member}"), *holds, value)?;
        // An object that says that it has no initializers says something.
        if *holds != Holds::Object && is_empty(value) {
            metadata.shift_remove(*member);
        }
    }
    Ok(())
}

fn check(path: &str, holds: Holds, value: &mut Value) -> Result<(), ShapeError> {
    let is_right = match holds {
        Holds::Text => value.is_string(),
        Holds::Integer => value.is_i64(),
        Holds::Time => match &mut *value {
            Value::String(text) => return check_time(path, text),
            _ => false,
        },
        Holds::Texts => match &mut *value {
            Value::Object(map) => {
                for (key, value) in map.iter_mut() {
                    if value.is_null() {
                        *value = Value::String(String::new());
                    }
                    if !value.is_string() {
                        return Err(wrong(format!("{path}.{key}"), value, "string"));
                    }
                }
                true
            }
            _ => false,
        },
        Holds::TextList => return check_items(path, value, "string", Value::is_string),
        Holds::ObjectList => return check_items(path, value, "OwnerReference", Value::is_object),
        Holds::Object => value.is_object(),
        Holds::Nothing => true,
    };
    match is_right {
        true => Ok(()),
        false => Err(wrong(path.to_owned(), value, holds.type_name())),
    }
}

fn check_items(
    path: &str,
    value: &Value,
    wanted: &'static str,
    is_right: impl Fn(&Value) -> bool,
) -> Result<(), ShapeError> {
    let Value::Array(items) = value else { return Err(wrong(path.to_owned(), value, wanted)) };
    match items.iter().enumerate().find(|(_, item)| !is_right(item)) {
        Some((idx, item)) => Err(wrong(format!("{path}[{idx}]"), item, wanted)),
        None => Ok(()),
    }
}

/// Times are kept in UTC and whole seconds.
fn check_time(path: &str, text: &mut String) -> Result<(), ShapeError> {
    if text.is_empty() {
        return Ok(());
    }
    match text.parse::<jiff::Timestamp>() {
        Ok(time) => {
            *text = crate::time::rfc3339(time);
            Ok(())
        }
        Err(_) => Err(ShapeError {
            path: path.to_owned(),
            found: "a string that is no RFC 3339 time",
            wanted: "Time",
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

impl Holds {
    const fn type_name(self) -> &'static str {
        match self {
            Self::Text | Self::TextList => "string",
            Self::Integer => "int64",
            Self::Time => "Time",
            Self::Texts => "map[string]string",
            Self::ObjectList => "[]OwnerReference",
            Self::Object | Self::Nothing => "object",
        }
    }
}

fn wrong(path: String, found: &Value, wanted: &'static str) -> ShapeError {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    ShapeError { path, found, wanted }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shaped(metadata: Value) -> Result<Value, String> {
        let mut tree = Tree::new();
        tree.insert("metadata".to_owned(), metadata);
        shape_metadata(&mut tree).map_err(|error| error.to_string())?;
        Ok(tree.remove("metadata").unwrap_or_default())
    }

    #[test]
    fn what_is_unknown_null_or_empty_is_dropped() {
        let given = json!({"name": "a", "foo": 1, "labels": {}, "uid": null, "selfLink": "/x",
            "managedFields": [{}], "generateName": "", "annotations": {"k": null},
            "initializers": {}, "creationTimestamp": "2026-11-15T20:02:38.5+02:00"});
        let want = json!({"name": "a", "annotations": {"k": ""}, "initializers": {},
            "creationTimestamp": "2026-11-15T18:02:38Z"});
        assert_eq!(shaped(given), Ok(want));
        assert_eq!(shaped(Value::Null), Ok(json!({})));
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
            let error = shaped(given).unwrap_err();
            assert!(error.contains(want), "{error}");
        }
    }
}
