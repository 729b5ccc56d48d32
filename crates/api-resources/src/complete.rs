//! Objects as they will be stored: with their defaults, with the members that the server sets, and
//! without what a request may not decide.
//!
//! A server completes an object before the first admission hook selects or sees it, and again after the
//! patch of each hook, so that no hook decides about an object that differs from the stored one. Both
//! functions therefore give the same result when they are applied twice.

use api_object::{Status, Tree};

use crate::kind::{
    is_content_changed, keep_other_parts, prepare_create, prepare_update, set_requester,
};
use crate::resource::Resource;

/// The members of metadata that the server sets when it stores a new object.
const SET_ON_CREATE: [&str; 5] =
    ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"];

/// Completes a new object before it is stored. Its name, uid and times come later.
///
/// 1. The members of metadata that only the server sets are removed.
/// 2. A status is removed where it has a path of its own.
/// 3. The defaults of the kind are applied.
/// 4. The user who asks is written into the kinds that say who asked.
///
/// # Errors
/// 400 if a value is of a type that its field can not have.
pub fn complete_create(
    resource: &Resource,
    tree: &mut Tree,
    requester: &Tree,
) -> Result<(), Status> {
    let metadata = api_object::metadata_mut(tree);
    for member in SET_ON_CREATE {
        metadata.shift_remove(member);
    }
    if resource.has_status() {
        tree.shift_remove("status");
    }
    prepare_create(resource, tree)?;
    set_requester(resource, tree, requester);
    Ok(())
}

/// Completes the next state of an object. The resourceVersion stays as it is: the client says with it
/// which state it has seen.
///
/// 1. The members of metadata that no update changes are those of the old state.
/// 2. So are the parts that the path of the request does not change.
/// 3. The defaults and the fixed members of the kind are applied.
/// 4. The generation grows if what is wanted differs.
///
/// # Errors
/// 400 if a value is of a type that its field can not have.
pub fn complete_update(
    resource: &Resource,
    new: &mut Tree,
    old: &Tree,
    subresource: Option<&str>,
) -> Result<(), Status> {
    let version = api_object::metadata_mut(new).shift_remove("resourceVersion");
    api_object::carry_metadata(new, old);
    keep_other_parts(resource, new, old, subresource);
    prepare_update(resource, new, old, subresource)?;
    count_generation(resource, new, old);
    if let Some(version) = version {
        api_object::metadata_mut(new).insert("resourceVersion".to_owned(), version);
    }
    Ok(())
}

fn count_generation(resource: &Resource, new: &mut Tree, old: &Tree) {
    if resource.has_generation && is_content_changed(resource, new, old) {
        let metadata = api_object::metadata_mut(new);
        let next = api_object::number(metadata, "generation").saturating_add(1);
        metadata.insert("generation".to_owned(), next.into());
    }
}
