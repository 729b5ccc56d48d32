//! The directives of a strategic merge patch, and their removal.

use api_object::Tree;
use serde_json::Value;

use crate::patch_error::PatchError;

/// Replaces or deletes the object or list that contains it.
pub(super) const PATCH: &str = "$patch";
/// Lists the members of the object that are kept.
pub(super) const RETAIN_KEYS: &str = "$retainKeys";
const SET_ELEMENT_ORDER: &str = "$setElementOrder";
const DELETE_FROM_PRIMITIVE_LIST: &str = "$deleteFromPrimitiveList";

/// The kind of a directive whose member name ends with the name of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ListDirectiveKind {
    SetElementOrder,
    DeleteFromPrimitiveList,
}

/// The error for an unknown `$patch` value.
pub(super) fn unknown_directive_error(directive: &Value) -> PatchError {
    let shown = directive.as_str().map_or_else(|| directive.to_string(), str::to_owned);
    PatchError::UnknownDirective(shown)
}

/// A directive, the name of its list, and its value.
pub(super) type ListDirective = (ListDirectiveKind, String, Value);

/// Separates the directives about lists, those about order first, from the rest of a patch.
pub(super) fn take_list_directives(patch: Tree) -> Result<(Vec<ListDirective>, Tree), PatchError> {
    if !patch.keys().any(|name| is_list_directive(name)) {
        return Ok((Vec::new(), patch));
    }
    let (directives, rest): (Vec<_>, Vec<_>) =
        patch.into_iter().partition(|(name, _)| is_list_directive(name));
    let mut taken = Vec::with_capacity(directives.len());
    for (name, value) in directives {
        let (directive, list) = match name.split_once('/') {
            Some((SET_ELEMENT_ORDER, list)) => (ListDirectiveKind::SetElementOrder, list),
            Some((DELETE_FROM_PRIMITIVE_LIST, list)) => {
                (ListDirectiveKind::DeleteFromPrimitiveList, list)
            }
            _ if name.starts_with(SET_ELEMENT_ORDER) => {
                return Err(PatchError::Directive("setElementOrder list"));
            }
            _ => return Err(PatchError::Directive("primitive list")),
        };
        taken.push((directive, list.to_owned(), value));
    }
    taken.sort_by_key(|(directive, ..)| *directive);
    Ok((taken, rest.into_iter().collect()))
}

/// Reports whether a member is a directive about a list.
pub(super) fn is_list_directive(name: &str) -> bool {
    name.starts_with(SET_ELEMENT_ORDER) || name.starts_with(DELETE_FROM_PRIMITIVE_LIST)
}

fn is_directive(name: &str) -> bool {
    name == PATCH || name == RETAIN_KEYS || is_list_directive(name)
}

/// A patch value for a member that did not exist: without nulls, directives and objects with
/// `$patch`. `None` if the value itself is such an object.
pub(super) fn strip_new_member_value(value: Value) -> Option<Value> {
    match value {
        Value::Object(members) if members.contains_key(PATCH) => None,
        Value::Object(members) => Some(Value::Object(
            members
                .into_iter()
                .filter(|(name, value)| !value.is_null() && !is_directive(name))
                .filter_map(|(name, value)| Some((name, strip_new_member_value(value)?)))
                .collect(),
        )),
        Value::Array(items) => {
            Some(Value::Array(items.into_iter().filter_map(strip_new_member_value).collect()))
        }
        scalar => Some(scalar),
    }
}

/// An object of a patch without nulls and directives.
pub(super) fn strip_object_nulls_and_directives(members: Tree) -> Tree {
    members
        .into_iter()
        .filter(|(name, value)| !value.is_null() && !is_directive(name))
        .map(|(name, value)| (name, strip_nulls_and_directives(value)))
        .collect()
}

/// A value of a patch without nulls and directives.
pub(crate) fn strip_nulls_and_directives(value: Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(strip_object_nulls_and_directives(members)),
        Value::Array(items) => {
            Value::Array(items.into_iter().map(strip_nulls_and_directives).collect())
        }
        scalar => scalar,
    }
}
