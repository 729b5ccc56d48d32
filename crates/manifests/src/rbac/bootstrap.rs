//! Decodes the default roles and bindings.

use authz_rbac::{BOOTSTRAP_POLICY_JSON, BootstrapPolicy, resource_access_reviewer_role};
use serde_json::Value;

use super::decode_rbac::{RbacDecodeError, RbacObject, decode_unvalidated_rbac_object};

/// The lists of the data, in the order in which they are reconciled.
const LISTS: [&str; 4] = ["clusterRoles", "clusterRoleBindings", "roles", "roleBindings"];

/// Decodes the default roles and bindings of Kubernetes and the one role that Portcullis adds.
///
/// # Errors
/// Never in practice: the data is part of the program, and tests read it.
pub fn bootstrap_policy() -> Result<BootstrapPolicy, RbacDecodeError> {
    let data: Value = serde_json::from_str(BOOTSTRAP_POLICY_JSON)?;
    let mut policy = BootstrapPolicy::default();
    let lists = LISTS.iter().filter_map(|list| data.get(list)?.as_array());
    for value in lists.flatten() {
        // A test shows that the data is valid, so validation is skipped.
        match decode_unvalidated_rbac_object(value)?.into_object_unvalidated() {
            Ok(RbacObject::Role(role)) => policy.roles.push(role),
            Ok(RbacObject::Binding(binding)) => policy.bindings.push(binding),
            Err(faults) => {
                return Err(RbacDecodeError::Malformed(serde::de::Error::custom(faults)));
            }
        }
    }
    policy.roles.push(resource_access_reviewer_role());
    Ok(policy)
}
