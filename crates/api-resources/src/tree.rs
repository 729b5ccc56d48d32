//! Reading trees whose shape nobody has promised: what is missing, or of another type, is empty.

use api_object::Tree;
use serde_json::Value;

/// A JSON object, or a JSON value that may be an object.
pub(crate) trait Members {
    /// The member of that name.
    fn member(&self, key: &str) -> Option<&Value>;
}

impl Members for Tree {
    fn member(&self, key: &str) -> Option<&Value> {
        self.get(key)
    }
}

impl Members for Value {
    fn member(&self, key: &str) -> Option<&Value> {
        self.get(key)
    }
}

/// The text of a member, or the empty one.
pub(crate) fn text<'t>(tree: &'t impl Members, key: &str) -> &'t str {
    tree.member(key).and_then(Value::as_str).unwrap_or_default()
}

/// The truth of a member, or false.
pub(crate) fn flag(tree: &impl Members, key: &str) -> bool {
    tree.member(key).and_then(Value::as_bool).unwrap_or_default()
}

/// The number of a member, or zero.
pub(crate) fn number(tree: &impl Members, key: &str) -> i64 {
    tree.member(key).and_then(Value::as_i64).unwrap_or_default()
}

/// The items of a member, or none.
pub(crate) fn items<'t>(tree: &'t impl Members, key: &str) -> &'t [Value] {
    tree.member(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The texts among the items of a member.
pub(crate) fn texts(tree: &impl Members, key: &str) -> Vec<String> {
    items(tree, key).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The value at a path of member names; null if there is none.
pub(crate) fn at<'t>(tree: &'t impl Members, path: &[&str]) -> &'t Value {
    let Some((first, rest)) = path.split_first() else { return &Value::Null };
    let Some(first) = tree.member(first) else { return &Value::Null };
    rest.iter().try_fold(first, |tree, key| tree.get(key)).unwrap_or(&Value::Null)
}

/// The entries of a member that is an object, or none.
pub(crate) fn entries<'t>(
    tree: &'t impl Members,
    key: &str,
) -> impl Iterator<Item = (&'t String, &'t Value)> {
    tree.member(key).and_then(Value::as_object).into_iter().flatten()
}

/// The number of entries of a member that is an object.
pub(crate) fn n_entries(tree: &impl Members, key: &str) -> usize {
    tree.member(key).and_then(Value::as_object).map_or(0, Tree::len)
}

/// Whether a member is neither missing nor null.
pub(crate) fn is_set(tree: &impl Members, key: &str) -> bool {
    tree.member(key).is_some_and(|it| !it.is_null())
}

/// The objects among the items of a member, to be changed.
pub(crate) fn objects_mut<'t>(tree: &'t mut Tree, key: &str) -> impl Iterator<Item = &'t mut Tree> {
    let items = tree.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten();
    items.filter_map(Value::as_object_mut)
}

/// Sets a member that is missing, null or the empty text.
pub(crate) fn default(object: &mut Tree, key: &str, value: impl Into<Value>) {
    let is_unset = match object.get(key) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(_) => false,
    };
    if is_unset {
        object.insert(key.to_owned(), value.into());
    }
}
