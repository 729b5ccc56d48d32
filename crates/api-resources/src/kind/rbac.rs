//! Roles and bindings. Their rules are those by which the authorizer reads them.

use api_object::{Tree, object_mut};
use field_errors::{FieldErrors, FieldPath};
use manifests::rbac::{Object, UnvalidatedObject};
use serde_json::Value;

use crate::tree::{default, is_set, objects_mut, text};

/// Sets the default `apiGroup` of the role reference and of User and Group subjects.
pub(super) fn prepare(tree: &mut Tree) {
    if is_set(tree, "roleRef") {
        default(object_mut(tree, "roleRef"), "apiGroup", authz_rbac::GROUP);
    }
    for subject in objects_mut(tree, "subjects") {
        if matches!(text(subject, "kind"), "User" | "Group") {
            default(subject, "apiGroup", authz_rbac::GROUP);
        }
    }
}

pub(super) fn validate(new: &Tree, old: Option<&Tree>, errors: &mut FieldErrors) {
    let manifest = match decode(new) {
        Ok(manifest) => manifest,
        Err(why) => return errors.push(FieldPath::NOWHERE.internal(&why)),
    };
    let old = old.and_then(|old| decode(old).ok()?.into_unchecked().ok());
    if let Object::Role(role) = manifest.object() {
        let old = match &old {
            Some(Object::Role(old)) => Some(old),
            Some(Object::Binding(_)) | None => None,
        };
        errors.append(manifests::rbac::check_role_limits(role, old));
    }
    let result: Result<Object, FieldErrors> = match &old {
        None => manifest.into_valid(),
        Some(old) => manifests::rbac::validate_update(manifest, old),
    };
    // The rules for metadata have been applied to it already, as to that of every object.
    let mut faults = result.err().unwrap_or_default();
    faults.retain(|fault| !fault.path.starts_with("metadata"));
    errors.append(faults);
}

fn decode(tree: &Tree) -> Result<UnvalidatedObject, String> {
    manifests::rbac::decode(&Value::Object(tree.clone())).map_err(|error| error.to_string())
}
