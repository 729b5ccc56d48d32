//! Access to members of objects of any kind.

use serde_json::{Map, Value};

/// A JSON object with its members in order.
pub type Tree = Map<String, Value>;

static EMPTY: std::sync::LazyLock<Tree> = std::sync::LazyLock::new(Tree::new);

/// The metadata of an object; empty if it has none.
#[must_use]
pub fn metadata(tree: &Tree) -> &Tree {
    tree.get("metadata").and_then(Value::as_object).unwrap_or(&EMPTY)
}

/// The metadata of an object; missing or malformed metadata is replaced by an empty object.
pub fn metadata_mut(tree: &mut Tree) -> &mut Tree {
    object_member_mut(tree, "metadata")
}

/// A member that is an object; a missing or malformed member is replaced by an empty object.
pub fn object_member_mut<'t>(tree: &'t mut Tree, member: &str) -> &'t mut Tree {
    let own = tree.entry(member).or_insert(Value::Null);
    if !own.is_object() {
        *own = Value::Object(Tree::new());
    }
    match own {
        Value::Object(object) => object,
        #[expect(clippy::unreachable, reason = "INVARIANT: the statement above made it an object")]
        _ => unreachable!(),
    }
}

/// The value of a string member; empty if the member is absent or has another type.
#[must_use]
pub fn string_member<'t>(tree: &'t Tree, member: &str) -> &'t str {
    tree.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// The value of an integer member; 0 if the member is absent or has another type.
#[must_use]
pub fn integer_member(tree: &Tree, member: &str) -> i64 {
    tree.get(member).and_then(Value::as_i64).unwrap_or_default()
}

/// The strings of a list member; other items are left out.
#[must_use]
pub fn string_list_member<'t>(tree: &'t Tree, member: &str) -> Vec<&'t str> {
    let list = tree.get(member).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The value of `metadata.name`.
#[must_use]
pub fn name(tree: &Tree) -> &str {
    string_member(metadata(tree), "name")
}

/// The value of `metadata.namespace`.
#[must_use]
pub fn namespace(tree: &Tree) -> &str {
    string_member(metadata(tree), "namespace")
}

/// The value of `metadata.uid`.
#[must_use]
pub fn uid(tree: &Tree) -> &str {
    string_member(metadata(tree), "uid")
}

/// Reports whether deletion of the object has begun.
#[must_use]
pub fn is_terminating(tree: &Tree) -> bool {
    !string_member(metadata(tree), "deletionTimestamp").is_empty()
}

/// The `ownerReferences` of the object.
#[must_use]
pub fn owner_references(tree: &Tree) -> &[Value] {
    metadata(tree).get("ownerReferences").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The values of `metadata.finalizers`.
#[must_use]
pub fn finalizers(tree: &Tree) -> Vec<&str> {
    string_list_member(metadata(tree), "finalizers")
}
