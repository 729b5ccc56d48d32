//! Roles and bindings of the snapshot.

use authz::Namespace;
use bytes::Bytes;
use serde_json::Value;

use super::StoredObjectDecodeError;

/// Stores a role or a binding in the index, or removes it. An object that cannot be decoded is removed: its
/// earlier version does not stay in force.
pub(super) fn apply_rbac_object(
    rbac: &mut authz_rbac::Snapshot,
    path: &str,
    value: Option<&Bytes>,
) -> Result<(), StoredObjectDecodeError> {
    let mut segments = path.split('/');
    let kind = segments.next().unwrap_or_default();
    let (namespace, name) = match (segments.next(), segments.next()) {
        (Some(namespace), Some(name)) => (namespace, name),
        (Some(name), None) => ("", name),
        _ => return Err(StoredObjectDecodeError::UnnamedKey),
    };
    let is_role = kind.ends_with("roles");
    let decoded =
        value.map(|value| decode_rbac_object(value, is_role, namespace, name)).transpose();
    let (object, result) = match decoded {
        Ok(object) => (object, Ok(())),
        Err(error) => (None, Err(error)),
    };
    match object {
        Some(manifests::rbac::RbacObject::Role(role)) => rbac.put_role(role),
        Some(manifests::rbac::RbacObject::Binding(binding)) => rbac.put_binding(binding),
        None if is_role => drop(rbac.remove_role(Namespace::new(namespace), name)),
        None => drop(rbac.remove_binding(Namespace::new(namespace), name)),
    }
    result
}

/// Decodes a role or a binding, which must be the object that its key names.
fn decode_rbac_object(
    value: &[u8],
    is_role: bool,
    namespace: &str,
    name: &str,
) -> Result<manifests::rbac::RbacObject, StoredObjectDecodeError> {
    let manifest = manifests::rbac::decode_unvalidated_rbac_object(&Value::Object(
        codec::decode_stored_object(value)?,
    ))?;
    let object = manifest.into_object_unvalidated().map_err(StoredObjectDecodeError::Invalid)?;
    let (metadata, is_of_kind) = match &object {
        manifests::rbac::RbacObject::Role(role) => (&role.metadata, is_role),
        manifests::rbac::RbacObject::Binding(binding) => (&binding.metadata, !is_role),
    };
    match is_of_kind && (metadata.namespace.as_str(), metadata.name.as_str()) == (namespace, name) {
        true => Ok(object),
        false => Err(StoredObjectDecodeError::NameDiffersFromKey),
    }
}
