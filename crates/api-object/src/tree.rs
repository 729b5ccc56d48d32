//! Reading an object without knowing its kind.

use serde_json::{Map, Value};

/// An object as it was received: its members in order.
pub type Tree = Map<String, Value>;

static EMPTY: std::sync::LazyLock<Tree> = std::sync::LazyLock::new(Tree::new);

/// The metadata of an object; empty if it has none.
#[must_use]
pub fn metadata(tree: &Tree) -> &Tree {
    tree.get("metadata").and_then(Value::as_object).unwrap_or(&EMPTY)
}

/// The metadata of an object, made if it has none; what is no object is replaced.
pub fn metadata_mut(tree: &mut Tree) -> &mut Tree {
    object_mut(tree, "metadata")
}

/// A member that is an object, made if there is none; what is no object is replaced.
pub fn object_mut<'t>(tree: &'t mut Tree, member: &str) -> &'t mut Tree {
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

/// A text member; empty if it is absent or no text.
#[must_use]
pub fn text<'t>(tree: &'t Tree, member: &str) -> &'t str {
    tree.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// A number member; 0 if it is absent or no integer.
#[must_use]
pub fn number(tree: &Tree, member: &str) -> i64 {
    tree.get(member).and_then(Value::as_i64).unwrap_or_default()
}

/// A list of texts; what is no text is left out.
#[must_use]
pub fn texts<'t>(tree: &'t Tree, member: &str) -> Vec<&'t str> {
    let list = tree.get(member).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// `metadata.name`.
#[must_use]
pub fn name(tree: &Tree) -> &str {
    text(metadata(tree), "name")
}

/// `metadata.namespace`.
#[must_use]
pub fn namespace(tree: &Tree) -> &str {
    text(metadata(tree), "namespace")
}

/// `metadata.uid`.
#[must_use]
pub fn uid(tree: &Tree) -> &str {
    text(metadata(tree), "uid")
}

/// Whether deletion has begun.
#[must_use]
pub fn is_terminating(tree: &Tree) -> bool {
    !text(metadata(tree), "deletionTimestamp").is_empty()
}

/// The `ownerReferences` of the object.
#[must_use]
pub fn owner_references(tree: &Tree) -> &[Value] {
    metadata(tree).get("ownerReferences").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// What must happen before the object can go.
#[must_use]
pub fn finalizers(tree: &Tree) -> Vec<&str> {
    texts(metadata(tree), "finalizers")
}
