//! Finds the resource of an object.

use std::sync::Arc;

use admission::GroupVersionKind;
use api_resources::{Registry, Resource, ResourceName, ResourceNameError, ResourceNameTable};

/// The resource of an object is not known.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FindResourceError {
    #[error("--resource: {0}")]
    UnknownResource(ResourceNameError),
    #[error("unknown kind `{kind}` of version `{version}`: {hint}")]
    UnknownKind { kind: String, version: String, hint: &'static str },
}

/// Finds the resource of a kind: the one of `--resource`, the only one with such a subresource, or the one with
/// that kind.
///
/// # Errors
/// No resource has the kind, or the flag names no resource.
pub(super) fn find_resource<'r>(
    registry: &'r Registry,
    kind: &GroupVersionKind<'_>,
    subresource: &str,
    named: Option<&ResourceName>,
) -> Result<&'r Arc<Resource>, FindResourceError> {
    if let Some(named) = named {
        return find_resource_by_name(registry, kind, named);
    }
    let takes = |resource: &&Arc<Resource>| {
        let own = resource.find_subresource(subresource).and_then(|own| own.kind);
        own.is_some_and(|own| (own.group, own.kind) == (kind.group, kind.kind))
    };
    let mut takers = registry.resources().filter(takes);
    if let (Some(only), None) = (takers.next(), takers.next()) {
        return Ok(only);
    }
    if let Some(own) = registry.resource_of_kind(kind.group, kind.version, kind.kind) {
        return Ok(own);
    }
    let version = match kind.group {
        "" => kind.version.to_owned(),
        group => format!("{group}/{}", kind.version),
    };
    let hint = match subresource {
        "" => "pass its CustomResourceDefinition with --objects",
        _ => "set its resource with --resource",
    };
    Err(FindResourceError::UnknownKind { kind: kind.kind.to_owned(), version, hint })
}

/// Finds the resource that `--resource` names, in the version of the object if it has that version.
fn find_resource_by_name<'r>(
    registry: &'r Registry,
    kind: &GroupVersionKind<'_>,
    named: &ResourceName,
) -> Result<&'r Arc<Resource>, FindResourceError> {
    // The subresource is another flag.
    let named = ResourceName { subresource: String::new(), ..named.clone() };
    // Only what is served calls hooks.
    let resolved =
        ResourceNameTable::registry_resource_names(registry).resolve_resource_name(&named);
    let resolved = resolved.map_err(FindResourceError::UnknownResource)?;
    let same = (kind.group == resolved.group).then_some(kind.version);
    let same = same.and_then(|it| registry.resource(&resolved.group, it, &resolved.plural));
    let any_version = || {
        let versions = &registry.group(&resolved.group)?.versions;
        versions.iter().find_map(|version| version.resource(&resolved.plural))
    };
    same.or_else(any_version).ok_or_else(|| {
        let name = resolved.qualified_name();
        FindResourceError::UnknownResource(ResourceNameError::UnknownResource {
            name,
            nearest: None,
        })
    })
}

/// Returns the kind of the connect options.
pub(super) fn connect_options_kind(resource: &Resource, subresource: &str) -> Option<&'static str> {
    resource.find_subresource(subresource)?.connect_options_kind()
}
