//! Completes objects before they are written: defaults, members that the server sets, removal of
//! members that a request may not set.
//!
//! The server runs these functions before the first admission hook sees the object and again after
//! the patch of each hook, so that no hook decides about an object that differs from the stored
//! one. Both functions are idempotent.

use api_object::Tree;

use crate::kind_rules::{
    PrepareError, is_spec_changed, keeps_client_status_on_create, prepare_create, prepare_update,
    reset_unwritable_fields, set_requester,
};
use crate::resource::Resource;

/// The members of metadata that the server sets when it stores a new object.
const SET_ON_CREATE: [&str; 4] =
    ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"];

/// Completes a new object. Its name, uid and times are set later.
///
/// 1. Metadata that only the server sets is removed.
/// 2. The status is removed if it is a subresource. Only a Node keeps it, because a kubelet registers its node together
///    with the status.
/// 3. The defaults of the kind are applied.
/// 4. The requesting user is written into kinds that record it.
///
/// # Errors
/// A value has the wrong type.
pub fn complete_new_object(
    resource: &Resource,
    tree: &mut Tree,
    requester: &Tree,
) -> Result<(), PrepareError> {
    let metadata = api_object::metadata_mut(tree);
    for member in SET_ON_CREATE {
        metadata.shift_remove(member);
    }
    if resource.has_generation {
        metadata.shift_remove("generation");
    }
    if resource.has_status_subresource() && !keeps_client_status_on_create(resource) {
        tree.shift_remove("status");
    }
    prepare_create(resource, tree)?;
    set_requester(resource, tree, requester);
    Ok(())
}

/// Completes the new state of an object in an update. The resourceVersion that the client sent stays: it says
/// which state the client has read.
///
/// 1. Immutable metadata is copied from the old state.
/// 2. The fields that a write to this subresource, or to the object itself, cannot change are copied from the
///    old state. For example, a write to the object itself keeps the status of a kind with a status subresource.
/// 3. The defaults and the fixed members of the kind are applied.
/// 4. The generation increases if the spec differs.
///
/// # Errors
/// A value has the wrong type.
pub fn complete_updated_object(
    resource: &Resource,
    new: &mut Tree,
    old: &Tree,
    subresource: Option<&str>,
) -> Result<(), PrepareError> {
    let version = api_object::metadata_mut(new).shift_remove("resourceVersion");
    api_object::copy_immutable_metadata(new, old);
    reset_unwritable_fields(resource, new, old, subresource);
    prepare_update(resource, new, old, subresource)?;
    increment_generation(resource, new, old);
    if let Some(version) = version {
        api_object::metadata_mut(new).insert("resourceVersion".to_owned(), version);
    }
    Ok(())
}

fn increment_generation(resource: &Resource, new: &mut Tree, old: &Tree) {
    if resource.has_generation && is_spec_changed(resource, new, old) {
        let metadata = api_object::metadata_mut(new);
        let next = api_object::integer_member(metadata, "generation").saturating_add(1);
        metadata.insert("generation".to_owned(), next.into());
    }
}
