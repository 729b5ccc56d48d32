//! Finds the resource of an object.

use std::sync::Arc;

use admission::GroupVersionKind;
use api_resources::{Registry, Resource};

use crate::offline::ResourceArgument;

/// The resource of an object is not known.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FindResourceError {
    #[error("--resource: there is no `{0}`")]
    UnknownResource(String),
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
    named: Option<&ResourceArgument>,
) -> Result<&'r Arc<Resource>, FindResourceError> {
    if let Some(named) = named {
        return find_resource_by_name(registry, kind, named).ok_or_else(|| {
            let ResourceArgument { resource, api_group, .. } = named;
            let dot = if api_group.is_empty() { "" } else { "." };
            FindResourceError::UnknownResource(format!("{resource}{dot}{api_group}"))
        });
    }
    let takes = |resource: &&Arc<Resource>| {
        let own = resource.subresource(subresource).and_then(|own| own.kind);
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
    named: &ResourceArgument,
) -> Option<&'r Arc<Resource>> {
    let same = (kind.group == named.api_group).then_some(kind.version);
    let same = same.and_then(|it| registry.resource(&named.api_group, it, &named.resource));
    same.or_else(|| {
        let versions = &registry.group(&named.api_group)?.versions;
        versions.iter().find_map(|version| version.resource(&named.resource))
    })
}

/// Returns the kind of the connect options.
pub(super) fn connect_options_kind(resource: &Resource, subresource: &str) -> Option<&'static str> {
    resource.subresource(subresource)?.connect_options_kind()
}
