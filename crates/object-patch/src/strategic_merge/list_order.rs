//! The order of a merged list: items of the patch follow the order of the patch, and other items
//! keep their position relative to the server's order where possible.

use std::collections::HashMap;

use serde_json::Value;

use super::merge_list::missing_merge_key_error;
use super::patch_directives::PATCH;
use crate::patch_error::PatchError;

/// The identity of an item: its value, or the value of its merge key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ItemIdentity(String);

impl ItemIdentity {
    /// The identity of a scalar. It is its JSON text, so that `1` and `"1"` differ.
    pub(super) fn from_scalar(value: &Value) -> Self {
        Self(value.to_string())
    }
}

/// The identity of an item, by its key if the list has one.
pub(super) fn item_identity(
    item: &Value,
    key: Option<&'static str>,
) -> Result<ItemIdentity, PatchError> {
    match key {
        None => Ok(ItemIdentity::from_scalar(item)),
        Some(key) => match item.get(key) {
            Some(value) => Ok(ItemIdentity::from_scalar(value)),
            None => Err(missing_merge_key_error(item, key)),
        },
    }
}

/// The identities of all items.
pub(super) fn item_identities(
    items: &[Value],
    key: Option<&'static str>,
) -> Result<Vec<ItemIdentity>, PatchError> {
    items.iter().map(|item| item_identity(item, key)).collect()
}

/// The position of the first occurrence of each item in a list.
pub(super) fn first_position_by_identity(items: &[ItemIdentity]) -> HashMap<&ItemIdentity, usize> {
    let mut positions = HashMap::with_capacity(items.len());
    for (idx, item) in items.iter().enumerate() {
        positions.entry(item).or_insert(idx);
    }
    positions
}

/// Sorts the items of a merged list.
///
/// 1. The items in `order` are sorted by it; the others by the order of the server.
/// 2. Both sequences are interleaved: an item of the server stands before the next ordered item if
///    it did so on the server, else after it.
pub(super) fn order_merged_items(
    merged: Vec<Value>,
    order: &[ItemIdentity],
    server_order: &[ItemIdentity],
    key: Option<&'static str>,
) -> Result<Vec<Value>, PatchError> {
    let in_order = first_position_by_identity(order);
    let on_server = first_position_by_identity(server_order);
    let mut named = Vec::new();
    let mut others = Vec::new();
    for item in merged {
        let identity = item_identity(&item, key)?;
        let server_position = on_server.get(&identity).copied();
        match in_order.get(&identity) {
            Some(position) => named.push((*position, server_position, item)),
            None => others.push((server_position, item)),
        }
    }
    named.sort_by_key(|(position, ..)| *position);
    others.sort_by_key(|(position, _)| *position);
    let mut result = Vec::with_capacity(named.len() + others.len());
    let mut others = others.into_iter().peekable();
    for (_, named_position, item) in named {
        let comes_before = |other: Option<usize>| match (other, named_position) {
            (Some(other), Some(named)) => other < named,
            _ => false,
        };
        while let Some((_, other)) = others.next_if(|(position, _)| comes_before(*position)) {
            result.push(other);
        }
        result.push(item);
    }
    result.extend(others.map(|(_, other)| other));
    Ok(result)
}

/// Checks the items of a patch against its `$setElementOrder`: each must occur there, in the same order. Items to
/// delete need not occur. Items with another directive are skipped. As in Kubernetes, they are not skipped after
/// the last name of the order.
pub(super) fn check_set_element_order(
    patch: &[Value],
    order: &[Value],
    key: Option<&'static str>,
) -> Result<(), PatchError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    if key.is_some() && !patch.iter().all(Value::is_object) {
        return Err(PatchError::MixedList);
    }
    let is_deleted = |item: &&Value| item.get(PATCH).is_some_and(|directive| directive == "delete");
    let mut items = patch.iter().filter(|item| !is_deleted(item)).peekable();
    let mut names = order.iter().peekable();
    while let (Some(item), Some(name)) = (items.peek(), names.peek()) {
        if item.get(PATCH).is_some() {
            items.next();
            continue;
        }
        if item_identity(item, key)? == item_identity(name, key)? {
            items.next();
        }
        names.next();
    }
    if items.peek().is_some() { Err(PatchError::Order) } else { Ok(()) }
}
