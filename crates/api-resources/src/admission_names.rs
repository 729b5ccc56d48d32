//! The kind and resource names under which admission sees a write.

use admission::{EquivalentResource, GroupVersionKind, GroupVersionResource};

use crate::registry::Registry;
use crate::resource::Resource;

/// The kind of the object that a write to a resource or subresource carries.
#[must_use]
pub fn kind_of_written_object<'r>(
    resource: &'r Resource,
    subresource: &str,
) -> GroupVersionKind<'r> {
    let other = resource.find_subresource(subresource).and_then(|own| own.kind);
    other.map_or(
        GroupVersionKind {
            group: &resource.group,
            version: &resource.version,
            kind: &resource.kind,
        },
        |own| GroupVersionKind { group: own.group, version: own.version, kind: own.kind },
    )
}

/// Group, version and plural of a resource.
#[must_use]
pub fn group_version_resource(resource: &Resource) -> GroupVersionResource<'_> {
    GroupVersionResource {
        group: &resource.group,
        version: &resource.version,
        resource: &resource.plural,
    }
}

/// The names of the resource in all its versions; empty if its group has one version only.
#[must_use]
pub fn equivalent_resources<'r>(
    registry: &'r Registry,
    resource: &Resource,
    subresource: &str,
) -> Vec<EquivalentResource<'r>> {
    let versions = registry.group(&resource.group).map(|group| group.versions.as_slice());
    let Some(versions @ [_, _, ..]) = versions else { return Vec::new() };
    let same = versions.iter().filter_map(|version| version.resource(&resource.plural));
    let same = same.filter(|own| own.storage_path == resource.storage_path);
    same.map(|own| {
        let has_kind = subresource.is_empty() || own.find_subresource(subresource).is_some();
        EquivalentResource {
            resource: group_version_resource(own),
            kind: has_kind.then(|| kind_of_written_object(own, subresource)),
        }
    })
    .collect()
}
