//! Roles and bindings as part of the snapshot.

use super::parse;

/// Takes in a role or a binding, or its end. One that can not be decoded counts as absent: what it granted
/// before does not stay in force.
///
/// # Errors
/// It can not be decoded.
pub(super) fn apply_rbac(
    rbac: &mut authz_rbac::Snapshot,
    path: &str,
    value: Option<&bytes::Bytes>,
) -> Result<(), String> {
    let mut segments = path.split('/');
    let kind = segments.next().unwrap_or_default();
    let (namespace, name) = match (segments.next(), segments.next()) {
        (Some(namespace), Some(name)) => (namespace, name),
        (Some(name), None) => ("", name),
        _ => return Err("the key names no object".to_owned()),
    };
    let is_role = kind.ends_with("roles");
    let object = value.map(|value| read_rbac(value, is_role, namespace, name)).transpose();
    let outcome = object.as_ref().map(|_| ()).map_err(Clone::clone);
    match object {
        Ok(Some(manifests::rbac::Object::Role(role))) => rbac.put_role(role),
        Ok(Some(manifests::rbac::Object::Binding(binding))) => rbac.put_binding(binding),
        Ok(None) | Err(_) if is_role => drop(rbac.remove_role(namespace, name)),
        Ok(None) | Err(_) => drop(rbac.remove_binding(namespace, name)),
    }
    outcome
}

/// Reads a role or a binding, which must be the one that its key names.
fn read_rbac(
    value: &[u8],
    is_role: bool,
    namespace: &str,
    name: &str,
) -> Result<manifests::rbac::Object, String> {
    let manifest = manifests::rbac::decode(&parse(value)?).map_err(|error| error.to_string())?;
    let object = manifest.into_unchecked().map_err(|errors| errors.to_string())?;
    let (metadata, is_of_kind) = match &object {
        manifests::rbac::Object::Role(role) => (&role.metadata, is_role),
        manifests::rbac::Object::Binding(binding) => (&binding.metadata, !is_role),
    };
    match is_of_kind && (metadata.namespace.as_str(), metadata.name.as_str()) == (namespace, name) {
        true => Ok(object),
        false => Err("it is not the object that its key names".to_owned()),
    }
}
