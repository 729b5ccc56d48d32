//! Strategic merge patch: a merge patch with directives, for which a schema says which lists are merged.
//!
//! The steps are those of Kubernetes, so that the patches of `kubectl` have the same results. There are
//! two differences. Values of a patch that become part of the object are stripped of nulls and
//! directives, because no typed decoder follows that would drop them. Patches that Kubernetes rejects
//! with an internal error are client errors here.

mod list_order;
mod merge_list;
mod patch_directives;

use std::collections::HashSet;

use api_object::Tree;
use serde_json::Value;

use crate::merge_keys::{MergeStrategy, StrategicMergeSchema};
use crate::patch_error::PatchError;
use list_order::{check_set_element_order, item_identities, order_merged_items};
use merge_list::{merge_list, remove_scalars};
#[cfg(test)]
pub(crate) use patch_directives::strip_nulls_and_directives;
use patch_directives::{
    ListDirectiveKind, PATCH, RETAIN_KEYS, strip_new_member_value,
    strip_object_nulls_and_directives,
};

/// Merges a patch into an object of a built-in kind.
///
/// INVARIANT: both are nested no deeper than [`NESTING_MAX`](crate::NESTING_MAX), and so is the
/// result.
///
/// # Errors
///
/// The patch is not an object, has a malformed or unknown directive, or has items without their merge key.
pub fn apply_strategic_merge_patch(
    mut tree: Tree,
    patch: Value,
    schema: &StrategicMergeSchema,
) -> Result<Tree, PatchError> {
    let Value::Object(patch) = patch else {
        return Err(PatchError::Shape("a strategic merge patch is an object"));
    };
    StrategicMerger { schema, path: Vec::new() }.merge_object(&mut tree, patch)?;
    Ok(tree)
}

/// The state while a patch is merged.
struct StrategicMerger<'s> {
    schema: &'s StrategicMergeSchema,
    /// The path of the current object or list, without list indices.
    path: Vec<String>,
}

impl StrategicMerger<'_> {
    /// Merges an object.
    ///
    /// 1. `$patch` replaces or empties it, and nothing else applies.
    /// 2. `$retainKeys` drops members.
    /// 3. Lists with a `$setElementOrder` are merged and sorted.
    /// 4. `$deleteFromPrimitiveList` removes items of lists.
    /// 5. The remaining members are merged one by one.
    fn merge_object(&mut self, original: &mut Tree, mut patch: Tree) -> Result<(), PatchError> {
        if let Some(directive) = patch.shift_remove(PATCH) {
            *original = match directive.as_str() {
                Some("replace") => strip_object_nulls_and_directives(patch),
                Some("delete") => Tree::new(),
                _ => return Err(patch_directives::unknown_directive_error(&directive)),
            };
            return Ok(());
        }
        if let Some(keys) = patch.shift_remove(RETAIN_KEYS) {
            apply_retain_keys(original, &keys, &patch)?;
        }
        let (directives, mut patch) = patch_directives::take_list_directives(patch)?;
        // Members are removed all at once, because each removal moves all later members.
        let mut ordered_lists = HashSet::new();
        for (directive, list, value) in directives {
            match directive {
                ListDirectiveKind::SetElementOrder => {
                    self.merge_and_order_list(original, &mut patch, &list, value)?;
                    ordered_lists.insert(list);
                }
                ListDirectiveKind::DeleteFromPrimitiveList => {
                    delete_from_primitive_list(original, &list, value)?
                }
            }
        }
        let mut removed = HashSet::new();
        for (name, value) in patch.into_iter().filter(|(name, _)| !ordered_lists.contains(name)) {
            self.merge_member(original, name, value, &mut removed)?;
        }
        if !removed.is_empty() {
            original.retain(|name, _| !removed.contains(name));
        }
        Ok(())
    }

    /// Merges a member, or adds its name to those that are to be removed.
    fn merge_member(
        &mut self,
        original: &mut Tree,
        name: String,
        value: Value,
        removed: &mut HashSet<String>,
    ) -> Result<(), PatchError> {
        match (original.get_mut(&name), value) {
            (_, Value::Null) => {
                removed.insert(name);
            }
            (Some(Value::Object(inner)), Value::Object(patch)) => {
                self.path.push(name);
                match self.schema.merge_strategy_at(&self.path) {
                    Some(MergeStrategy::Replace) => {
                        *inner = strip_object_nulls_and_directives(patch)
                    }
                    _ => self.merge_object(inner, patch)?,
                }
                self.path.pop();
            }
            (Some(Value::Array(items)), Value::Array(patch)) => {
                self.path.push(name);
                let taken = std::mem::take(items);
                *items = merge_list(self, taken, patch)?;
                self.path.pop();
            }
            (_, value) => match strip_new_member_value(value) {
                Some(value) => drop(original.insert(name, value)),
                None => drop(removed.insert(name)),
            },
        }
        Ok(())
    }

    /// Merges a list and sorts it by the order in the patch.
    fn merge_and_order_list(
        &mut self,
        original: &mut Tree,
        patch: &mut Tree,
        name: &str,
        order: Value,
    ) -> Result<(), PatchError> {
        let malformed = || PatchError::Directive("setElementOrder list");
        let list = |value: Option<Value>| match value {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items)),
            Some(_) => Err(malformed()),
        };
        let order = list(Some(order))?.unwrap_or_default();
        let server = list(original.get(name).cloned())?;
        let items = list(patch.get_mut(name).map(Value::take))?;
        self.path.push(name.to_owned());
        let key = match self.schema.merge_strategy_at(&self.path) {
            Some(MergeStrategy::MergeBy(key)) => Some(key),
            _ => None,
        };
        check_set_element_order(items.as_deref().unwrap_or_default(), &order, key)?;
        let server_order = server.clone().unwrap_or_default();
        let merged = match (server, items) {
            (Some(server), Some(items)) => Some(merge_list(self, server, items)?),
            (Some(server), None) => Some(server),
            (None, Some(items)) => {
                Some(items.into_iter().filter_map(strip_new_member_value).collect())
            }
            (None, None) => None,
        };
        self.path.pop();
        if let Some(merged) = merged {
            // Objects without a merge key have no identity by which they could be ordered.
            let mut items = order.iter().chain(&merged).chain(&server_order);
            if key.is_none() && items.any(Value::is_object) {
                return Err(malformed());
            }
            let order = item_identities(&order, key)?;
            let server_order = item_identities(&server_order, key)?;
            let ordered = order_merged_items(merged, &order, &server_order, key)?;
            original.insert(name.to_owned(), Value::Array(ordered));
        }
        Ok(())
    }
}

/// Removes all members that are not listed. Every member that the patch sets must be listed.
fn apply_retain_keys(original: &mut Tree, keys: &Value, patch: &Tree) -> Result<(), PatchError> {
    let malformed = || PatchError::Directive("retainKeys");
    let keys: HashSet<&str> =
        keys.as_array().ok_or_else(malformed)?.iter().filter_map(Value::as_str).collect();
    let is_listed = |name: &str| keys.contains(name);
    let sets =
        |name: &str, value: &Value| !value.is_null() && !patch_directives::is_list_directive(name);
    if patch.iter().any(|(name, value)| sets(name, value) && !is_listed(name)) {
        return Err(malformed());
    }
    original.retain(|name, _| is_listed(name));
    Ok(())
}

/// Removes scalars from a list; null removes the list.
fn delete_from_primitive_list(
    original: &mut Tree,
    name: &str,
    value: Value,
) -> Result<(), PatchError> {
    match (original.get_mut(name), value) {
        (_, Value::Null) => {
            original.shift_remove(name);
        }
        (Some(Value::Array(items)), Value::Array(deleted)) => remove_scalars(items, &deleted)?,
        // A member that is not a list stays unchanged.
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests;
