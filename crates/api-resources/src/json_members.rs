//! Lenient access to the members of JSON objects: a member that is absent or has another type counts as
//! empty.

use api_object::Tree;
use serde_json::Value;

/// A JSON object, or a JSON value that may be an object.
pub(crate) trait MemberAccess {
    /// The member with this name, if there is one.
    fn member(&self, key: &str) -> Option<&Value>;
}

impl MemberAccess for Tree {
    fn member(&self, key: &str) -> Option<&Value> {
        self.get(key)
    }
}

impl MemberAccess for Value {
    fn member(&self, key: &str) -> Option<&Value> {
        self.get(key)
    }
}

/// The value of a string member, or the empty string.
pub(crate) fn string_member<'t>(tree: &'t impl MemberAccess, key: &str) -> &'t str {
    tree.member(key).and_then(Value::as_str).unwrap_or_default()
}

/// The value of a boolean member, or `false`.
pub(crate) fn bool_member(tree: &impl MemberAccess, key: &str) -> bool {
    tree.member(key).and_then(Value::as_bool).unwrap_or_default()
}

/// The value of an integer member, or 0.
pub(crate) fn integer_member(tree: &impl MemberAccess, key: &str) -> i64 {
    tree.member(key).and_then(Value::as_i64).unwrap_or_default()
}

/// The items of a list member, or none.
pub(crate) fn list_member<'t>(tree: &'t impl MemberAccess, key: &str) -> &'t [Value] {
    tree.member(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The strings among the items of a list member.
pub(crate) fn string_list_member(tree: &impl MemberAccess, key: &str) -> Vec<String> {
    list_member(tree, key).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The value at a path of member names; null if there is none.
pub(crate) fn value_at_path<'t>(tree: &'t impl MemberAccess, path: &[&str]) -> &'t Value {
    let Some((first, rest)) = path.split_first() else { return &Value::Null };
    let Some(first) = tree.member(first) else { return &Value::Null };
    rest.iter().try_fold(first, |tree, key| tree.get(key)).unwrap_or(&Value::Null)
}

/// The entries of an object member, or none.
pub(crate) fn member_entries<'t>(
    tree: &'t impl MemberAccess,
    key: &str,
) -> impl Iterator<Item = (&'t String, &'t Value)> {
    tree.member(key).and_then(Value::as_object).into_iter().flatten()
}

/// The number of entries of an object member.
pub(crate) fn n_member_entries(tree: &impl MemberAccess, key: &str) -> usize {
    tree.member(key).and_then(Value::as_object).map_or(0, Tree::len)
}

/// Reports whether a member is neither absent nor null.
pub(crate) fn is_member_set(tree: &impl MemberAccess, key: &str) -> bool {
    tree.member(key).is_some_and(|it| !it.is_null())
}

/// Mutable references to the objects among the items of a list member.
pub(crate) fn object_items_mut<'t>(
    tree: &'t mut Tree,
    key: &str,
) -> impl Iterator<Item = &'t mut Tree> {
    let items = tree.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten();
    items.filter_map(Value::as_object_mut)
}

/// Sets a member that is absent, null or the empty string.
pub(crate) fn set_default_member(object: &mut Tree, key: &str, value: impl Into<Value>) {
    let is_unset = match object.get(key) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(_) => false,
    };
    if is_unset {
        object.insert(key.to_owned(), value.into());
    }
}
