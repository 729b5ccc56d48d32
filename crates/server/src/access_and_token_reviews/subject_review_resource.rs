//! Resolves the resource in a review about subjects, which may be a plural, singular or short name.

use access_reviews::{ResolvedResource, ResourceResolutionError, ResourceToResolve};
use api_resources::{Registry, ResourceName, ResourceNameError, ResourceNameTable, Scope};

/// Finds the resource that a review about subjects names, among those of Kubernetes and the custom resources. Those of
/// Kubernetes include what this server does not serve, such as `pods/log`, and what only policies name, such as `users` for
/// the verb `impersonate`.
///
/// 1. The group of a review is that group. A current review without a group refers to the core group, and a name that
///    the core group does not have is searched for in all groups.
/// 2. A group that this server does not serve stands for itself or for a group of Kubernetes that begins with it, never for
///    one of custom resources: an aggregated server may serve it, and everyone who may define a resource chooses its group.
///    If Kubernetes has no such resource either, the name is used as it is.
pub(super) fn resolve_review_resource(
    registry: &Registry,
    named: &ResourceToResolve<'_>,
) -> Result<Option<ResolvedResource>, ResourceResolutionError> {
    if named.resource == "*" {
        return Ok(None);
    }
    let group = named.api_group.map(str::to_ascii_lowercase);
    let (resource, subresource) = (named.resource.to_owned(), named.subresource.to_owned());
    let name = ResourceName { name: resource, group, subresource };
    let is_unserved = |group: &str| group != "*" && registry.group(group).is_none();
    let resolved = match name.group.as_deref() {
        Some(group) if is_unserved(group) => {
            match ResourceNameTable::kubernetes_resource_names().resolve_resource_name(&name) {
                Err(
                    ResourceNameError::UnknownResource { .. }
                    | ResourceNameError::AmbiguousName { .. },
                ) => return Ok(None),
                resolved => resolved,
            }
        }
        Some("") => match registry.resource_names().resolve_resource_name(&name) {
            Err(ResourceNameError::UnknownResource { .. }) => registry
                .resource_names()
                .resolve_resource_name(&ResourceName { group: None, ..name }),
            resolved => resolved,
        },
        Some(_) | None => registry.resource_names().resolve_resource_name(&name),
    };
    let found =
        resolved.map_err(|error| ResourceResolutionError { error_detail: error.to_string() })?;
    Ok(Some(ResolvedResource {
        is_namespaced: found.scope == Some(Scope::Namespaced),
        api_group: found.group,
        resource: found.plural,
    }))
}
