//! The objects that decide, from files, from a cluster, or from both.

use std::collections::HashSet;

use manifests::{AuthorizerObject, rbac};

/// The objects that authorizers decide from, and their origin.
pub(super) struct PolicyObjects {
    pub(super) authorizer_objects: Vec<AuthorizerObject>,
    pub(super) policy_origin: PolicyOrigin,
}

/// Where the objects come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PolicyOrigin {
    /// Files: a server that starts with them adds its default roles and aggregates roles.
    Files,
    /// A cluster: its roles count as they are stored, as for its own authorizer.
    Cluster,
    /// A cluster to which files are applied: its controllers will aggregate roles again.
    ClusterAndFiles,
}

/// Applies objects to those of a cluster: one of the same kind, namespace and name replaces the stored one.
pub(super) fn merge_into_cluster_objects(
    stored: Vec<AuthorizerObject>,
    applied: Vec<AuthorizerObject>,
) -> Vec<AuthorizerObject> {
    let key = |object: &AuthorizerObject| match object {
        AuthorizerObject::Rbac(own) => {
            let metadata = own.metadata();
            let kind = match own {
                rbac::RbacObject::Role(_) => "Role",
                rbac::RbacObject::Binding(_) => "Binding",
            };
            Some((kind, metadata.namespace.clone(), metadata.name.clone()))
        }
        // The graph replaces an object that is added again.
        AuthorizerObject::Node(_) => None,
    };
    let replaced: HashSet<_> = applied.iter().filter_map(key).collect();
    let kept = stored.into_iter().filter(|own| key(own).is_none_or(|key| !replaced.contains(&key)));
    kept.chain(applied).collect()
}
