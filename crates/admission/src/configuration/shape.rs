//! Which members an entry has and what they hold.

use api_object::{ShapeError, Tree};
use serde_json::Value;

use super::kind::ConfigurationKind;
use crate::client::decode_base64;

/// What a value must be.
#[derive(Debug)]
pub(crate) enum Shape {
    Text,
    /// Bytes, as text of base64.
    Bytes,
    Int32,
    /// Names to texts.
    Texts,
    Object(&'static [(&'static str, Shape)]),
    List(&'static Shape),
}

pub(crate) const TEXT_LIST: Shape = Shape::List(&Shape::Text);

const INITIALIZER: Shape = Shape::Object(&[
    ("name", Shape::Text),
    (
        "rules",
        Shape::List(&Shape::Object(&[
            ("apiGroups", TEXT_LIST),
            ("apiVersions", TEXT_LIST),
            ("resources", TEXT_LIST),
        ])),
    ),
    ("failurePolicy", Shape::Text),
    ("orderingMode", Shape::Text),
    ("before", TEXT_LIST),
    ("after", TEXT_LIST),
]);

const EXTERNAL_HOOK: Shape = Shape::Object(&[
    ("name", Shape::Text),
    (
        "clientConfig",
        Shape::Object(&[
            ("service", Shape::Object(&[("namespace", Shape::Text), ("name", Shape::Text)])),
            ("caBundle", Shape::Bytes),
            ("urlPath", Shape::Text),
        ]),
    ),
    (
        "rules",
        Shape::List(&Shape::Object(&[
            ("verbs", TEXT_LIST),
            ("operations", TEXT_LIST),
            ("apiGroups", TEXT_LIST),
            ("apiVersions", TEXT_LIST),
            ("resources", TEXT_LIST),
        ])),
    ),
    ("failurePolicy", Shape::Text),
]);

const SELECTOR: Shape = Shape::Object(&[
    ("matchLabels", Shape::Texts),
    (
        "matchExpressions",
        Shape::List(&Shape::Object(&[
            ("key", Shape::Text),
            ("operator", Shape::Text),
            ("values", TEXT_LIST),
        ])),
    ),
]);

const CLIENT_CONFIG: Shape = Shape::Object(&[
    ("url", Shape::Text),
    (
        "service",
        Shape::Object(&[
            ("namespace", Shape::Text),
            ("name", Shape::Text),
            ("path", Shape::Text),
            ("port", Shape::Int32),
        ]),
    ),
    ("caBundle", Shape::Bytes),
]);

const RULES: Shape = Shape::List(&Shape::Object(&[
    ("operations", TEXT_LIST),
    ("apiGroups", TEXT_LIST),
    ("apiVersions", TEXT_LIST),
    ("resources", TEXT_LIST),
    ("scope", Shape::Text),
]));

const MATCH_CONDITIONS: Shape =
    Shape::List(&Shape::Object(&[("name", Shape::Text), ("expression", Shape::Text)]));

const VALIDATING: Shape = Shape::Object(&[
    ("name", Shape::Text),
    ("clientConfig", CLIENT_CONFIG),
    ("rules", RULES),
    ("failurePolicy", Shape::Text),
    ("matchPolicy", Shape::Text),
    ("namespaceSelector", SELECTOR),
    ("objectSelector", SELECTOR),
    ("sideEffects", Shape::Text),
    ("timeoutSeconds", Shape::Int32),
    ("admissionReviewVersions", TEXT_LIST),
    ("matchConditions", MATCH_CONDITIONS),
]);

const MUTATING: Shape = Shape::Object(&[
    ("name", Shape::Text),
    ("clientConfig", CLIENT_CONFIG),
    ("rules", RULES),
    ("failurePolicy", Shape::Text),
    ("matchPolicy", Shape::Text),
    ("namespaceSelector", SELECTOR),
    ("objectSelector", SELECTOR),
    ("sideEffects", Shape::Text),
    ("timeoutSeconds", Shape::Int32),
    ("admissionReviewVersions", TEXT_LIST),
    ("matchConditions", MATCH_CONDITIONS),
    ("reinvocationPolicy", Shape::Text),
]);

/// Members that every object has, whatever its kind.
const COMMON_MEMBERS: [&str; 3] = ["apiVersion", "kind", "metadata"];

const fn list_of(kind: ConfigurationKind) -> &'static Shape {
    match kind {
        ConfigurationKind::Initializer => &Shape::List(&INITIALIZER),
        ConfigurationKind::ExternalHook => &Shape::List(&EXTERNAL_HOOK),
        ConfigurationKind::Mutating => &Shape::List(&MUTATING),
        ConfigurationKind::Validating => &Shape::List(&VALIDATING),
    }
}

/// Checks the types of what the kind knows, and removes what it does not know.
///
/// A null is as good as nothing: a member of that value goes, and an item becomes an empty one.
pub(super) fn fit(kind: ConfigurationKind, tree: &mut Tree) -> Result<(), ShapeError> {
    tree.retain(|member, _| COMMON_MEMBERS.contains(&member.as_str()) || member == kind.list());
    if tree.get(kind.list()).is_some_and(Value::is_null) {
        tree.shift_remove(kind.list());
    }
    match tree.get_mut(kind.list()) {
        Some(entries) => fit_value(list_of(kind), entries, kind.list()),
        None => Ok(()),
    }
}

/// The same for one value, which `at` is the place of.
pub(crate) fn fit_value(shape: &Shape, value: &mut Value, at: &str) -> Result<(), ShapeError> {
    if value.is_null() {
        *value = shape.empty();
    }
    match (shape, &mut *value) {
        (Shape::Text, Value::String(_)) => Ok(()),
        (Shape::Bytes, Value::String(text)) if decode_base64(text).is_some() => Ok(()),
        (Shape::Int32, Value::Number(number))
            if number.as_i64().is_some_and(|number| i32::try_from(number).is_ok()) =>
        {
            Ok(())
        }
        (Shape::Texts, Value::Object(entries)) => entries
            .iter_mut()
            .try_for_each(|(key, value)| fit_value(&Shape::Text, value, &format!("{at}.{key}"))),
        (Shape::Object(members), Value::Object(tree)) => fit_members(members, tree, at),
        (Shape::List(item), Value::Array(items)) => items
            .iter_mut()
            .enumerate()
            .try_for_each(|(idx, value)| fit_value(item, value, &format!("{at}[{idx}]"))),
        (shape, value) => Err(ShapeError {
            path: at.to_owned(),
            found: type_name(value),
            expected: shape.type_name(),
        }),
    }
}

fn fit_members(
    members: &'static [(&'static str, Shape)],
    tree: &mut Tree,
    at: &str,
) -> Result<(), ShapeError> {
    let shape_of = |member: &str| members.iter().find(|(name, _)| *name == member);
    tree.retain(|member, value| shape_of(member).is_some() && !value.is_null());
    for (member, value) in tree.iter_mut() {
        if let Some((_, shape)) = shape_of(member) {
            fit_value(shape, value, &format!("{at}.{member}"))?;
        }
    }
    Ok(())
}

/// The places of members that the kind does not know, in the order of the object.
pub(super) fn unknown(kind: ConfigurationKind, tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for (member, value) in tree {
        if member == kind.list() {
            find_unknown(list_of(kind), value, member, &mut found);
        } else if !COMMON_MEMBERS.contains(&member.as_str()) {
            found.push(member.clone());
        }
    }
    found
}

/// The names of the members that an object at a place, such as `webhooks[0].clientConfig`, may have;
/// none if there is no object there.
pub(super) fn members_at(kind: ConfigurationKind, at: &str) -> Vec<&'static str> {
    if at.is_empty() {
        return COMMON_MEMBERS.into_iter().chain([kind.list()]).collect();
    }
    let mut shape: Option<&'static Shape> = None;
    for step in at.split(['.', '[']) {
        shape = match (shape, step.strip_suffix(']')) {
            (None, None) if step == kind.list() => Some(list_of(kind)),
            (Some(Shape::List(item)), Some(_)) => Some(item),
            (Some(Shape::Object(members)), None) => {
                members.iter().find(|(name, _)| *name == step).map(|(_, shape)| shape)
            }
            (_, _) => None,
        };
        if shape.is_none() {
            return Vec::new();
        }
    }
    match shape {
        Some(Shape::Object(members)) => members.iter().map(|(name, _)| *name).collect(),
        _ => Vec::new(),
    }
}

fn find_unknown(shape: &Shape, value: &Value, at: &str, found: &mut Vec<String>) {
    match (shape, value) {
        (Shape::Object(members), Value::Object(tree)) => {
            for (member, value) in tree {
                let at = format!("{at}.{member}");
                match members.iter().find(|(name, _)| name == member) {
                    Some((_, shape)) => find_unknown(shape, value, &at, found),
                    None => found.push(at),
                }
            }
        }
        (Shape::List(item), Value::Array(items)) => {
            for (idx, value) in items.iter().enumerate() {
                find_unknown(item, value, &format!("{at}[{idx}]"), found);
            }
        }
        (_, _) => {}
    }
}

impl Shape {
    /// What an item that is null stands for.
    fn empty(&self) -> Value {
        match self {
            Self::Text | Self::Bytes => Value::String(String::new()),
            Self::Int32 => Value::from(0),
            Self::Texts | Self::Object(_) => Value::Object(Tree::new()),
            Self::List(_) => Value::Array(Vec::new()),
        }
    }

    fn type_name(&self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Bytes => "base64 string",
            Self::Int32 => "int32",
            Self::Texts | Self::Object(_) => "object",
            Self::List(_) => "array",
        }
    }
}

fn type_name(value: &Value) -> &'static str {
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
    fn members_are_known_by_place() {
        let of = |at: &str| members_at(ConfigurationKind::Mutating, at);
        assert_eq!(of(""), ["apiVersion", "kind", "metadata", "webhooks"]);
        assert!(of("webhooks[7]").contains(&"reinvocationPolicy"));
        assert_eq!(of("webhooks[0].matchConditions[1]"), ["name", "expression"]);
        assert_eq!(of("webhooks[0].clientConfig"), ["url", "service", "caBundle"]);
        for nowhere in ["webhooks", "webhooks[0].name", "webhooks[0].gone", "initializers[0]", "["]
        {
            assert!(of(nowhere).is_empty(), "{nowhere}");
        }
        let validating = members_at(ConfigurationKind::Validating, "webhooks[0]");
        assert!(!validating.contains(&"reinvocationPolicy"));
    }
}
