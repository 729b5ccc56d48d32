//! The defaults of ServiceAccounts.

use api_object::Tree;

use crate::json_members::object_items_mut;

/// Removes all members of secret references except for the name, because the secret is always in the same
/// namespace.
pub(super) fn prepare_service_account(tree: &mut Tree) {
    for secret in object_items_mut(tree, "secrets") {
        secret.retain(|key, _| key == "name");
    }
}
