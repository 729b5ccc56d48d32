//! The types of all fields of the configuration kinds.

use api_object::{MetadataTypeError, Tree};
use serde_json::Value;

use super::configuration_kind::ConfigurationKind;
use crate::client_config::decode_base64;

/// The type of a field.
#[derive(Debug)]
pub(crate) enum FieldType {
    String,
    /// Bytes that are encoded in base64.
    Bytes,
    Int32,
    /// A map from strings to strings.
    StringMap,
    Object(&'static [(&'static str, FieldType)]),
    List(&'static FieldType),
}

pub(crate) const STRING_LIST: FieldType = FieldType::List(&FieldType::String);

const INITIALIZER: FieldType = FieldType::Object(&[
    ("name", FieldType::String),
    (
        "rules",
        FieldType::List(&FieldType::Object(&[
            ("apiGroups", STRING_LIST),
            ("apiVersions", STRING_LIST),
            ("resources", STRING_LIST),
        ])),
    ),
    ("failurePolicy", FieldType::String),
    ("orderingMode", FieldType::String),
    ("before", STRING_LIST),
    ("after", STRING_LIST),
]);

const EXTERNAL_HOOK: FieldType = FieldType::Object(&[
    ("name", FieldType::String),
    (
        "clientConfig",
        FieldType::Object(&[
            (
                "service",
                FieldType::Object(&[("namespace", FieldType::String), ("name", FieldType::String)]),
            ),
            ("caBundle", FieldType::Bytes),
            ("urlPath", FieldType::String),
        ]),
    ),
    (
        "rules",
        FieldType::List(&FieldType::Object(&[
            ("verbs", STRING_LIST),
            ("operations", STRING_LIST),
            ("apiGroups", STRING_LIST),
            ("apiVersions", STRING_LIST),
            ("resources", STRING_LIST),
        ])),
    ),
    ("failurePolicy", FieldType::String),
]);

const SELECTOR: FieldType = FieldType::Object(&[
    ("matchLabels", FieldType::StringMap),
    (
        "matchExpressions",
        FieldType::List(&FieldType::Object(&[
            ("key", FieldType::String),
            ("operator", FieldType::String),
            ("values", STRING_LIST),
        ])),
    ),
]);

const CLIENT_CONFIG: FieldType = FieldType::Object(&[
    ("url", FieldType::String),
    (
        "service",
        FieldType::Object(&[
            ("namespace", FieldType::String),
            ("name", FieldType::String),
            ("path", FieldType::String),
            ("port", FieldType::Int32),
        ]),
    ),
    ("caBundle", FieldType::Bytes),
]);

const RULES: FieldType = FieldType::List(&FieldType::Object(&[
    ("operations", STRING_LIST),
    ("apiGroups", STRING_LIST),
    ("apiVersions", STRING_LIST),
    ("resources", STRING_LIST),
    ("scope", FieldType::String),
]));

const MATCH_CONDITIONS: FieldType = FieldType::List(&FieldType::Object(&[
    ("name", FieldType::String),
    ("expression", FieldType::String),
]));

const VALIDATING: FieldType = FieldType::Object(&[
    ("name", FieldType::String),
    ("clientConfig", CLIENT_CONFIG),
    ("rules", RULES),
    ("failurePolicy", FieldType::String),
    ("matchPolicy", FieldType::String),
    ("namespaceSelector", SELECTOR),
    ("objectSelector", SELECTOR),
    ("sideEffects", FieldType::String),
    ("timeoutSeconds", FieldType::Int32),
    ("admissionReviewVersions", STRING_LIST),
    ("matchConditions", MATCH_CONDITIONS),
]);

const MUTATING: FieldType = FieldType::Object(&[
    ("name", FieldType::String),
    ("clientConfig", CLIENT_CONFIG),
    ("rules", RULES),
    ("failurePolicy", FieldType::String),
    ("matchPolicy", FieldType::String),
    ("namespaceSelector", SELECTOR),
    ("objectSelector", SELECTOR),
    ("sideEffects", FieldType::String),
    ("timeoutSeconds", FieldType::Int32),
    ("admissionReviewVersions", STRING_LIST),
    ("matchConditions", MATCH_CONDITIONS),
    ("reinvocationPolicy", FieldType::String),
]);

/// The members that objects of every kind have.
const COMMON_MEMBERS: [&str; 3] = ["apiVersion", "kind", "metadata"];

const fn entries_field_type(kind: ConfigurationKind) -> &'static FieldType {
    match kind {
        ConfigurationKind::Initializer => &FieldType::List(&INITIALIZER),
        ConfigurationKind::ExternalHook => &FieldType::List(&EXTERNAL_HOOK),
        ConfigurationKind::Mutating => &FieldType::List(&MUTATING),
        ConfigurationKind::Validating => &FieldType::List(&VALIDATING),
    }
}

/// Checks the types of known members and removes unknown members.
///
/// A null member is removed, and a null item of a list becomes an empty value.
pub(super) fn check_field_types(
    kind: ConfigurationKind,
    tree: &mut Tree,
) -> Result<(), MetadataTypeError> {
    tree.retain(|member, _| {
        COMMON_MEMBERS.contains(&member.as_str()) || member == kind.entries_member_name()
    });
    if tree.get(kind.entries_member_name()).is_some_and(Value::is_null) {
        tree.shift_remove(kind.entries_member_name());
    }
    match tree.get_mut(kind.entries_member_name()) {
        Some(entries) => {
            check_value_type(entries_field_type(kind), entries, kind.entries_member_name())
        }
        None => Ok(()),
    }
}

/// Checks the type of one value; `at` is its path in errors.
pub(crate) fn check_value_type(
    shape: &FieldType,
    value: &mut Value,
    at: &str,
) -> Result<(), MetadataTypeError> {
    if value.is_null() {
        *value = shape.null_item_replacement();
    }
    match (shape, &mut *value) {
        (FieldType::String, Value::String(_)) => Ok(()),
        (FieldType::Bytes, Value::String(text)) if decode_base64(text).is_some() => Ok(()),
        (FieldType::Int32, Value::Number(number))
            if number.as_i64().is_some_and(|number| i32::try_from(number).is_ok()) =>
        {
            Ok(())
        }
        (FieldType::StringMap, Value::Object(entries)) => {
            entries.iter_mut().try_for_each(|(key, value)| {
                check_value_type(&FieldType::String, value, &format!("{at}.{key}"))
            })
        }
        (FieldType::Object(members), Value::Object(tree)) => check_member_types(members, tree, at),
        (FieldType::List(item), Value::Array(items)) => items
            .iter_mut()
            .enumerate()
            .try_for_each(|(idx, value)| check_value_type(item, value, &format!("{at}[{idx}]"))),
        (shape, value) => Err(MetadataTypeError {
            path: at.to_owned(),
            found_type: json_type_name(value),
            expected_type: shape.type_name(),
        }),
    }
}

fn check_member_types(
    members: &'static [(&'static str, FieldType)],
    tree: &mut Tree,
    at: &str,
) -> Result<(), MetadataTypeError> {
    let shape_of = |member: &str| members.iter().find(|(name, _)| *name == member);
    tree.retain(|member, value| shape_of(member).is_some() && !value.is_null());
    for (member, value) in tree.iter_mut() {
        if let Some((_, shape)) = shape_of(member) {
            check_value_type(shape, value, &format!("{at}.{member}"))?;
        }
    }
    Ok(())
}

/// Returns the paths of unknown members, in the order of the object.
pub(super) fn unknown_members(kind: ConfigurationKind, tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for (member, value) in tree {
        if member == kind.entries_member_name() {
            find_unknown_members(entries_field_type(kind), value, member, &mut found);
        } else if !COMMON_MEMBERS.contains(&member.as_str()) {
            found.push(member.clone());
        }
    }
    found
}

/// Returns the members that the object at a path, such as `webhooks[0].clientConfig`, may have; none if no object is there.
pub(super) fn known_members_at(kind: ConfigurationKind, at: &str) -> Vec<&'static str> {
    if at.is_empty() {
        return COMMON_MEMBERS.into_iter().chain([kind.entries_member_name()]).collect();
    }
    let mut shape: Option<&'static FieldType> = None;
    for step in at.split(['.', '[']) {
        shape = match (shape, step.strip_suffix(']')) {
            (None, None) if step == kind.entries_member_name() => Some(entries_field_type(kind)),
            (Some(FieldType::List(item)), Some(_)) => Some(item),
            (Some(FieldType::Object(members)), None) => {
                members.iter().find(|(name, _)| *name == step).map(|(_, shape)| shape)
            }
            (_, _) => None,
        };
        if shape.is_none() {
            return Vec::new();
        }
    }
    match shape {
        Some(FieldType::Object(members)) => members.iter().map(|(name, _)| *name).collect(),
        _ => Vec::new(),
    }
}

fn find_unknown_members(shape: &FieldType, value: &Value, at: &str, found: &mut Vec<String>) {
    match (shape, value) {
        (FieldType::Object(members), Value::Object(tree)) => {
            for (member, value) in tree {
                let at = format!("{at}.{member}");
                match members.iter().find(|(name, _)| name == member) {
                    Some((_, shape)) => find_unknown_members(shape, value, &at, found),
                    None => found.push(at),
                }
            }
        }
        (FieldType::List(item), Value::Array(items)) => {
            for (idx, value) in items.iter().enumerate() {
                find_unknown_members(item, value, &format!("{at}[{idx}]"), found);
            }
        }
        (_, _) => {}
    }
}

impl FieldType {
    /// The value that replaces a null item.
    fn null_item_replacement(&self) -> Value {
        match self {
            Self::String | Self::Bytes => Value::String(String::new()),
            Self::Int32 => Value::from(0),
            Self::StringMap | Self::Object(_) => Value::Object(Tree::new()),
            Self::List(_) => Value::Array(Vec::new()),
        }
    }

    fn type_name(&self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Bytes => "base64 string",
            Self::Int32 => "int32",
            Self::StringMap | Self::Object(_) => "object",
            Self::List(_) => "array",
        }
    }
}

fn json_type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_known_by_path() {
        let of = |at: &str| known_members_at(ConfigurationKind::Mutating, at);
        assert_eq!(of(""), ["apiVersion", "kind", "metadata", "webhooks"]);
        assert!(of("webhooks[7]").contains(&"reinvocationPolicy"));
        assert_eq!(of("webhooks[0].matchConditions[1]"), ["name", "expression"]);
        assert_eq!(of("webhooks[0].clientConfig"), ["url", "service", "caBundle"]);
        for nowhere in ["webhooks", "webhooks[0].name", "webhooks[0].gone", "initializers[0]", "["]
        {
            assert!(of(nowhere).is_empty(), "{nowhere}");
        }
        let validating = known_members_at(ConfigurationKind::Validating, "webhooks[0]");
        assert!(!validating.contains(&"reinvocationPolicy"));
    }
}
