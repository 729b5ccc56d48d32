//! Merging of lists.

use std::collections::HashSet;

use serde_json::Value;

use super::Merge;
use super::directive::{PATCH, strip_value, unknown_directive_error};
use super::list_order::{Identity, identities, identity, order_items, positions};
use crate::merge_keys::Strategy;
use crate::patch_error::PatchError;

/// The type of the items of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ItemType {
    Bool,
    Number,
    Text,
    Object,
}

/// Merges a list at the path of the merge, in the way that its schema says.
pub(super) fn merge_list(
    merge: &mut Merge<'_>,
    original: Vec<Value>,
    patch: Vec<Value>,
) -> Result<Vec<Value>, PatchError> {
    let key = match merge.schema.strategy(&merge.path) {
        Some(Strategy::MergeBy(key)) => Some(key),
        Some(Strategy::MergeSet) => None,
        Some(Strategy::Replace) | None => {
            return Ok(patch.into_iter().map(strip_value).collect());
        }
    };
    match (item_type(original.iter().chain(&patch))?, key) {
        (None, _) => Ok(original),
        (Some(ItemType::Object), Some(key)) => merge_objects(merge, original, patch, key),
        (Some(ItemType::Object), None) => Err(PatchError::MixedList),
        (Some(_), Some(key)) => {
            let item = original.first().or(patch.first());
            Err(no_merge_key(item.unwrap_or(&Value::Null), key))
        }
        (Some(_), None) => merge_scalars(original, patch),
    }
}

/// Removes scalars from a list.
pub(super) fn without_scalars(items: &mut Vec<Value>, deleted: &[Value]) -> Result<(), PatchError> {
    if item_type(items.iter().chain(deleted))? == Some(ItemType::Object) {
        return Err(PatchError::Directive("primitive list"));
    }
    let deleted: HashSet<Identity> = deleted.iter().map(Identity::from_scalar).collect();
    items.retain(|item| !deleted.contains(&Identity::from_scalar(item)));
    Ok(())
}

/// The one type of all items; `None` if there are none.
fn item_type<'v>(items: impl Iterator<Item = &'v Value>) -> Result<Option<ItemType>, PatchError> {
    let mut common = None;
    for item in items {
        let own = match item {
            Value::Bool(_) => ItemType::Bool,
            Value::Number(_) => ItemType::Number,
            Value::String(_) => ItemType::Text,
            Value::Object(_) => ItemType::Object,
            Value::Array(_) if common.is_none() => return Err(PatchError::ListOfLists),
            Value::Array(_) | Value::Null => return Err(PatchError::MixedList),
        };
        if common.is_some_and(|common| common != own) {
            return Err(PatchError::MixedList);
        }
        common = Some(own);
    }
    Ok(common)
}

fn merge_scalars(original: Vec<Value>, patch: Vec<Value>) -> Result<Vec<Value>, PatchError> {
    let mut seen = HashSet::new();
    let both = original.iter().chain(&patch);
    let merged = both.filter(|item| seen.insert(Identity::from_scalar(item))).cloned().collect();
    order_items(merged, &identities(&patch, None)?, &identities(&original, None)?, None)
}

/// Merges a list of objects.
///
/// 1. Items with `$patch: delete` remove what has their key; one with `$patch: replace` makes the
///    other items of the patch the whole list.
/// 2. Other items are merged into the first with the same key, or appended.
/// 3. What the patch names gets the order of the patch; the rest keeps its place around it.
fn merge_objects(
    merge: &mut Merge<'_>,
    original: Vec<Value>,
    patch: Vec<Value>,
    key: &'static str,
) -> Result<Vec<Value>, PatchError> {
    let MarkedItems { plain, deleted, replaces } = sort_by_directive(patch, key)?;
    let patch_order = identities(&plain, Some(key))?;
    if replaces {
        return Ok(plain.into_iter().map(strip_value).collect());
    }
    let mut merged = original;
    let mut server_order = identities(&merged, Some(key))?;
    if !deleted.is_empty() {
        let mut own = server_order.iter();
        merged.retain(|_| own.next().is_some_and(|own| !deleted.contains(own)));
        server_order.retain(|own| !deleted.contains(own));
    }
    let mut positions = positions(&server_order);
    for (item, own) in plain.into_iter().zip(&patch_order) {
        let position = *positions.entry(own).or_insert(merged.len());
        match (merged.get_mut(position), item) {
            (Some(Value::Object(found)), Value::Object(item)) => merge.merge_object(found, item)?,
            (_, item) => merged.push(strip_value(item)),
        }
    }
    order_items(merged, &patch_order, &server_order, Some(key))
}

/// The items of a patch, sorted by their directives.
struct MarkedItems {
    plain: Vec<Value>,
    /// The keys of items to delete.
    deleted: HashSet<Identity>,
    replaces: bool,
}

fn sort_by_directive(patch: Vec<Value>, key: &'static str) -> Result<MarkedItems, PatchError> {
    let mut marked = MarkedItems { plain: Vec::new(), deleted: HashSet::new(), replaces: false };
    for item in patch {
        match item.get(PATCH) {
            None => marked.plain.push(item),
            Some(directive) => match directive.as_str() {
                Some("delete") => {
                    marked.deleted.insert(identity(&item, Some(key))?);
                }
                Some("replace") => marked.replaces = true,
                _ => return Err(unknown_directive_error(directive)),
            },
        }
    }
    Ok(marked)
}

/// How many characters of an item an error shows.
const SHOWN_CHARS_MAX: usize = 256;

pub(super) fn no_merge_key(item: &Value, key: &'static str) -> PatchError {
    let item = item.to_string().chars().take(SHOWN_CHARS_MAX).collect();
    PatchError::NoMergeKey { item, key }
}
