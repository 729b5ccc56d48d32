//! Reads members of JSON objects.
//!
//! A stored object may predate a validation rule, so these functions never fail: a value of another type counts as absent.

use api_object::Tree;
use serde_json::Value;

static EMPTY: std::sync::LazyLock<Tree> = std::sync::LazyLock::new(Tree::new);

/// Reads a string, which may be absent.
pub(crate) fn read_string<'t>(tree: &'t Tree, member: &str) -> Option<&'t str> {
    tree.get(member).and_then(Value::as_str)
}

/// Reads an object, which may be absent.
pub(crate) fn read_object<'t>(tree: &'t Tree, member: &str) -> Option<&'t Tree> {
    tree.get(member).and_then(Value::as_object)
}

/// Reads a list of objects; an item of another type counts as an empty object.
pub(crate) fn read_objects<'t>(tree: &'t Tree, member: &str) -> Vec<&'t Tree> {
    let items = tree.get(member).and_then(Value::as_array).into_iter().flatten();
    items.map(|item| item.as_object().unwrap_or(&EMPTY)).collect()
}

/// Reads a list of strings; an item of another type counts as an empty string.
pub(crate) fn read_strings<'t>(tree: &'t Tree, member: &str) -> Vec<&'t str> {
    let items = tree.get(member).and_then(Value::as_array).into_iter().flatten();
    items.map(|item| item.as_str().unwrap_or_default()).collect()
}

/// Reads a list of strings as owned values.
pub(crate) fn read_owned_strings(tree: &Tree, member: &str) -> Vec<String> {
    read_strings(tree, member).into_iter().map(str::to_owned).collect()
}
