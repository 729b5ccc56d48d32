//! Reading members of entries that have their shape.
//!
//! A stored object may be older than the rules, so that a reader never fails: what is not what it
//! should be counts as absent.

use api_object::Tree;
use serde_json::Value;

static EMPTY: std::sync::LazyLock<Tree> = std::sync::LazyLock::new(Tree::new);

/// A text that may be absent, which is not the same as empty.
pub(crate) fn text<'t>(tree: &'t Tree, member: &str) -> Option<&'t str> {
    tree.get(member).and_then(Value::as_str)
}

/// An object that may be absent.
pub(crate) fn object<'t>(tree: &'t Tree, member: &str) -> Option<&'t Tree> {
    tree.get(member).and_then(Value::as_object)
}

/// The items of a list of objects; an item that is none counts as an empty one.
pub(crate) fn objects<'t>(tree: &'t Tree, member: &str) -> Vec<&'t Tree> {
    let items = tree.get(member).and_then(Value::as_array).into_iter().flatten();
    items.map(|item| item.as_object().unwrap_or(&EMPTY)).collect()
}

/// The items of a list of texts; an item that is none counts as an empty one.
pub(crate) fn texts<'t>(tree: &'t Tree, member: &str) -> Vec<&'t str> {
    let items = tree.get(member).and_then(Value::as_array).into_iter().flatten();
    items.map(|item| item.as_str().unwrap_or_default()).collect()
}

/// The same, for keeping.
pub(crate) fn owned_texts(tree: &Tree, member: &str) -> Vec<String> {
    texts(tree, member).into_iter().map(str::to_owned).collect()
}
