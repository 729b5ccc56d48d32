//! Roles and bindings. They are validated by the conversion that the RBAC authorizer uses.

use api_object::{Tree, object_member_mut};
use field_errors::{FieldErrors, FieldPath};
use manifests::rbac::{RbacDecodeError, RbacObject, UnvalidatedRbacObject};
use serde_json::Value;

use crate::json_members::{is_member_set, object_items_mut, set_default_member, string_member};

/// Sets the default `apiGroup` of the role reference and of User and Group subjects.
pub(super) fn prepare_rbac_object(tree: &mut Tree) {
    if is_member_set(tree, "roleRef") {
        set_default_member(object_member_mut(tree, "roleRef"), "apiGroup", authz_rbac::GROUP);
    }
    for subject in object_items_mut(tree, "subjects") {
        if matches!(string_member(subject, "kind"), "User" | "Group") {
            set_default_member(subject, "apiGroup", authz_rbac::GROUP);
        }
    }
}

pub(super) fn validate(new: &Tree, old: Option<&Tree>, errors: &mut FieldErrors) {
    let manifest = match decode_rbac_object(new) {
        Ok(manifest) => manifest,
        Err(error) => return errors.push(FieldPath::NOWHERE.internal(&error.to_string())),
    };
    let old = old.and_then(|old| decode_rbac_object(old).ok()?.into_object_unvalidated().ok());
    if let RbacObject::Role(role) = manifest.rbac_object() {
        let old = match &old {
            Some(RbacObject::Role(old)) => Some(old),
            Some(RbacObject::Binding(_)) | None => None,
        };
        errors.append(manifests::rbac::check_role_limits(role, old));
    }
    let result: Result<RbacObject, FieldErrors> = match &old {
        None => manifest.into_validated_object(),
        Some(old) => manifests::rbac::validate_rbac_object_update(manifest, old),
    };
    // The metadata was already validated, as for every object.
    let mut faults = result.err().unwrap_or_default();
    faults.retain(|fault| !fault.path.starts_with("metadata"));
    errors.append(faults);
}

fn decode_rbac_object(tree: &Tree) -> Result<UnvalidatedRbacObject, RbacDecodeError> {
    manifests::rbac::decode_unvalidated_rbac_object(&Value::Object(tree.clone()))
}
