//! The resource that a review about subjects names, by its plural or in another way that people write.

use access_reviews::{NamedResource, ResolvedResource, UnresolvedResource};
use api_resources::{Registry, ResourceName, ResourceNameError, ResourceNameTable, Scope};

/// Finds the resource that a review about subjects names:
///
/// 1. among the resources that this server serves; a review of today that says no group means the core group, and a name
///    that the core group does not have is looked for in all groups;
/// 2. among those of Kubernetes that this server does not serve, such as `pods/log`, and those that only policies name, such
///    as `users` for the verb `impersonate`.
///
/// A resource of a group that this server does not serve is used as it is, because an aggregated server may serve it.
pub(super) fn resolve_resource(
    registry: &Registry,
    named: &NamedResource<'_>,
) -> Result<Option<ResolvedResource>, UnresolvedResource> {
    if named.resource == "*" {
        return Ok(None);
    }
    let group = named.api_group.map(str::to_owned);
    let (name, subresource) = (named.resource.to_owned(), named.subresource.to_owned());
    let name = ResourceName { name, group, subresource };
    let resolve = |table: &ResourceNameTable| match table.resolve(&name) {
        Err(ResourceNameError::UnknownResource { .. }) if named.api_group == Some("") => {
            table.resolve(&ResourceName { group: None, ..name.clone() })
        }
        resolved => resolved,
    };
    let resolved = match resolve(registry.resource_names()) {
        Err(
            unknown @ (ResourceNameError::UnknownResource { .. }
            | ResourceNameError::UnknownSubresource { .. }),
        ) => match resolve(&ResourceNameTable::of_kubernetes()) {
            Ok(found) => Ok(found),
            Err(error @ ResourceNameError::UnknownSubresource { .. }) => Err(error),
            Err(_) if named.api_group.is_some_and(|own| registry.group(own).is_none()) => {
                return Ok(None);
            }
            Err(_) => Err(unknown),
        },
        resolved => resolved,
    };
    let found = resolved.map_err(|error| UnresolvedResource { detail: error.to_string() })?;
    Ok(Some(ResolvedResource {
        is_namespaced: found.scope == Some(Scope::Namespaced),
        api_group: found.group,
        resource: found.plural,
    }))
}
