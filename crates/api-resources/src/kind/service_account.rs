//! ServiceAccounts.

use api_object::Tree;

use crate::tree::objects_mut;

/// Of a secret only the name counts: it is always one of the same namespace.
pub(super) fn prepare(tree: &mut Tree) {
    for secret in objects_mut(tree, "secrets") {
        secret.retain(|key, _| key == "name");
    }
}
