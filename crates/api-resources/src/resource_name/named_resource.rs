//! One resource with all the names by which it can be found.

use api_object::{GroupResource, Tree};
use serde_json::Value;

use super::{ResourceNameError, WILDCARD};
use crate::json_members::{list_member, string_list_member, string_member};
use crate::resource::{Resource, Scope};

/// Subresources that policies name for every resource: the status, and the permission to set owner references
/// that block deletion.
const COMMON_SUBRESOURCES: [&str; 2] = ["status", "finalizers"];

/// One resource with all its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedResource {
    pub(super) group: String,
    pub(super) plural: String,
    pub(super) singular: String,
    pub(super) kind: String,
    pub(super) short_names: Vec<String>,
    pub(super) scope: Scope,
    pub(super) subresources: KnownSubresources,
    pub(super) resource_origin: ResourceNameOrigin,
}

/// The subresources that a resource has besides [`COMMON_SUBRESOURCES`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KnownSubresources {
    Known(Vec<String>),
    /// Every subresource may exist, such as the keys of `userextras`.
    Any,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResourceNameOrigin {
    /// A resource of Kubernetes. A name without a group means the first such resource, as for
    /// kubectl.
    BuiltIn,
    /// Found only with its group, such as `pods.metrics.k8s.io`.
    OnlyWithGroup,
    /// Defined by a CustomResourceDefinition.
    Custom,
}

impl KnownSubresources {
    pub(super) fn extend(&mut self, more: Self) {
        match (&mut *self, more) {
            (Self::Any, _) => {}
            (_, Self::Any) => *self = Self::Any,
            (Self::Known(own), Self::Known(more)) => {
                for name in more {
                    if !own.contains(&name) {
                        own.push(name);
                    }
                }
            }
        }
    }
}

impl NamedResource {
    pub(super) fn from_resource(resource: &Resource) -> Self {
        let names = resource.subresources.iter().map(|own| own.name.to_owned());
        Self {
            group: resource.group.clone(),
            plural: resource.plural.clone(),
            singular: resource.singular.clone(),
            kind: resource.kind.clone(),
            short_names: resource.short_names.clone(),
            scope: resource.scope,
            subresources: KnownSubresources::Known(names.collect()),
            resource_origin: match resource.is_custom_resource() {
                true => ResourceNameOrigin::Custom,
                false => ResourceNameOrigin::BuiltIn,
            },
        }
    }

    /// Reads the names of a definition, whether it is served or not.
    pub(super) fn from_custom_resource_definition(tree: &Tree) -> Option<Self> {
        let spec = tree.get("spec")?.as_object()?;
        let names = spec.get("names")?.as_object()?;
        let (group, plural) = (string_member(spec, "group"), string_member(names, "plural"));
        if group.is_empty() || plural.is_empty() {
            return None;
        }
        let kind = string_member(names, "kind");
        let singular = match string_member(names, "singular") {
            "" => kind.to_ascii_lowercase(),
            singular => singular.to_owned(),
        };
        let scope = match string_member(spec, "scope") {
            "Cluster" => Scope::Cluster,
            _ => Scope::Namespaced,
        };
        let has_scale = |version: &Value| version.pointer("/subresources/scale").is_some();
        // In v1beta1 the subresources may be those of all versions.
        let is_scalable = list_member(spec, "versions").iter().any(has_scale)
            || spec.get("subresources").and_then(|own| own.get("scale")).is_some();
        let subresources = is_scalable.then(|| "scale".to_owned()).into_iter().collect();
        Some(Self {
            group: group.to_owned(),
            plural: plural.to_owned(),
            singular,
            kind: kind.to_owned(),
            short_names: string_list_member(names, "shortNames"),
            scope,
            subresources: KnownSubresources::Known(subresources),
            resource_origin: ResourceNameOrigin::Custom,
        })
    }

    /// Reports whether the resource has this plural, singular or kind, which is given in lower case.
    pub(super) fn has_long_name(&self, lower: &str) -> bool {
        self.plural == lower || self.singular == lower || self.kind.eq_ignore_ascii_case(lower)
    }

    pub(super) fn long_names(&self) -> impl Iterator<Item = &str> {
        let names = [self.plural.as_str(), self.singular.as_str()];
        names.into_iter().filter(|name| !name.is_empty())
    }

    pub(super) fn group_resource(&self) -> GroupResource {
        GroupResource::new(&self.group, &self.plural)
    }

    pub(super) fn check_subresource(&self, subresource: &str) -> Result<(), ResourceNameError> {
        let KnownSubresources::Known(known) = &self.subresources else { return Ok(()) };
        // The rest of a path after the subresource, as in `services/proxy/metrics`, is no part of policies.
        let is_known = matches!(subresource, "" | WILDCARD)
            || COMMON_SUBRESOURCES.contains(&subresource)
            || known.iter().any(|own| own == subresource);
        if is_known {
            return Ok(());
        }
        let all = known.iter().map(String::as_str).chain(COMMON_SUBRESOURCES);
        let nearest = field_errors::nearest_word(subresource, all);
        Err(ResourceNameError::UnknownSubresource {
            resource: self.group_resource(),
            subresource: subresource.to_owned(),
            nearest: nearest.map(|nearest| format!("{}/{nearest}", self.plural)),
        })
    }
}
