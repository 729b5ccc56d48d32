//! Merges the lists of a strategic merge patch.

use std::collections::HashSet;

use serde_json::Value;

use super::StrategicMerger;
use super::list_order::{
    ItemIdentity, first_position_by_identity, item_identities, item_identity, order_merged_items,
};
use super::patch_directives::{PATCH, strip_nulls_and_directives, unknown_directive_error};
use crate::merge_keys::MergeStrategy;
use crate::patch_error::PatchError;

/// The type of the items of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ItemType {
    Bool,
    Number,
    Text,
    Object,
}

/// Merges the list at the current path by the merge strategy of the schema.
pub(super) fn merge_list(
    merger: &mut StrategicMerger<'_>,
    original: Vec<Value>,
    patch: Vec<Value>,
) -> Result<Vec<Value>, PatchError> {
    let key = match merger.schema.merge_strategy_at(&merger.path) {
        Some(MergeStrategy::MergeBy(key)) => Some(key),
        Some(MergeStrategy::MergeSet) => None,
        Some(MergeStrategy::Replace) | None => {
            return Ok(patch.into_iter().map(strip_nulls_and_directives).collect());
        }
    };
    match (item_type(original.iter().chain(&patch))?, key) {
        (None, _) => Ok(original),
        (Some(ItemType::Object), Some(key)) => merge_object_list(merger, original, patch, key),
        (Some(ItemType::Object), None) => Err(PatchError::MixedList),
        (Some(_), Some(key)) => {
            let item = original.first().or(patch.first());
            Err(missing_merge_key_error(item.unwrap_or(&Value::Null), key))
        }
        (Some(_), None) => merge_scalar_list(original, patch),
    }
}

/// Removes scalars from a list.
pub(super) fn remove_scalars(items: &mut Vec<Value>, deleted: &[Value]) -> Result<(), PatchError> {
    if item_type(items.iter().chain(deleted))? == Some(ItemType::Object) {
        return Err(PatchError::Directive("primitive list"));
    }
    let deleted_keys: HashSet<ItemIdentity> =
        deleted.iter().map(ItemIdentity::from_scalar).collect();
    items.retain(|item| !deleted_keys.contains(&ItemIdentity::from_scalar(item)));
    Ok(())
}

/// The common type of all items; `None` if there are none.
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

fn merge_scalar_list(original: Vec<Value>, patch: Vec<Value>) -> Result<Vec<Value>, PatchError> {
    let mut seen = HashSet::new();
    let both = original.iter().chain(&patch);
    let merged =
        both.filter(|item| seen.insert(ItemIdentity::from_scalar(item))).cloned().collect();
    order_merged_items(
        merged,
        &item_identities(&patch, None)?,
        &item_identities(&original, None)?,
        None,
    )
}

/// Merges a list of objects.
///
/// 1. An item with `$patch: delete` removes the items with its key. An item with `$patch: replace` makes
///    the other items of the patch the whole list.
/// 2. Other items are merged into the first item with the same key, or appended.
/// 3. The items of the patch are sorted by the order of the patch; the other items keep their place
///    around them.
fn merge_object_list(
    merger: &mut StrategicMerger<'_>,
    original: Vec<Value>,
    patch: Vec<Value>,
    key: &'static str,
) -> Result<Vec<Value>, PatchError> {
    let ItemsByDirective { items_without_directive: unmarked, deleted_keys, replaces_list } =
        split_by_directive(patch, key)?;
    let patch_order = item_identities(&unmarked, Some(key))?;
    if replaces_list {
        return Ok(unmarked.into_iter().map(strip_nulls_and_directives).collect());
    }
    let mut merged = original;
    let mut server_order = item_identities(&merged, Some(key))?;
    if !deleted_keys.is_empty() {
        let mut own = server_order.iter();
        merged.retain(|_| own.next().is_some_and(|own| !deleted_keys.contains(own)));
        server_order.retain(|own| !deleted_keys.contains(own));
    }
    let mut positions = first_position_by_identity(&server_order);
    for (item, own) in unmarked.into_iter().zip(&patch_order) {
        let position = *positions.entry(own).or_insert(merged.len());
        match (merged.get_mut(position), item) {
            (Some(Value::Object(found)), Value::Object(item)) => {
                merger.merge_object(found, item)?
            }
            (_, item) => merged.push(strip_nulls_and_directives(item)),
        }
    }
    order_merged_items(merged, &patch_order, &server_order, Some(key))
}

/// The items of a patch, split by their directives.
struct ItemsByDirective {
    items_without_directive: Vec<Value>,
    /// The keys of items to delete.
    deleted_keys: HashSet<ItemIdentity>,
    replaces_list: bool,
}

fn split_by_directive(
    patch: Vec<Value>,
    key: &'static str,
) -> Result<ItemsByDirective, PatchError> {
    let mut marked = ItemsByDirective {
        items_without_directive: Vec::new(),
        deleted_keys: HashSet::new(),
        replaces_list: false,
    };
    for item in patch {
        match item.get(PATCH) {
            None => marked.items_without_directive.push(item),
            Some(directive) => match directive.as_str() {
                Some("delete") => {
                    marked.deleted_keys.insert(item_identity(&item, Some(key))?);
                }
                Some("replace") => marked.replaces_list = true,
                _ => return Err(unknown_directive_error(directive)),
            },
        }
    }
    Ok(marked)
}

/// Upper bound on the characters of an item in an error.
const SHOWN_CHARS_MAX: usize = 256;

pub(super) fn missing_merge_key_error(item: &Value, key: &'static str) -> PatchError {
    let item = item.to_string().chars().take(SHOWN_CHARS_MAX).collect();
    PatchError::NoMergeKey { item, key }
}
