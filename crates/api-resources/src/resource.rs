//! A resource of one version.

use api_object::{GroupKind, GroupResource, GroupVersion};
use field_errors::{
    dns1123_label_faults, dns1123_subdomain_faults, mask_trailing_dash, path_segment_faults,
};

use crate::built_in_resources::BuiltInResource;
use crate::custom_resources::ServedVersion;
use crate::scale::ReplicaPaths;
use crate::verb::{Verb, Verbs};

/// A resource as one version of its group serves it.
#[derive(Debug, Clone)]
pub struct Resource {
    /// Empty for the core group.
    pub group: String,
    /// The version of the group, such as `v1`.
    pub version: String,
    /// The kind of its objects.
    pub kind: String,
    /// The kind of a list of its objects, such as `PodList`.
    pub list_kind: String,
    /// The name in paths and policies.
    pub plural: String,
    /// The singular name for kubectl.
    pub singular: String,
    /// Short names for kubectl.
    pub short_names: Vec<String>,
    /// The categories, such as `all`, under which kubectl lists the resource.
    pub categories: Vec<String>,
    /// Whether objects are namespaced.
    pub scope: Scope,
    /// The verbs that its objects support.
    pub verbs: Verbs,
    /// The subresources of its objects.
    pub subresources: Vec<Subresource>,
    /// The rule for the names of its objects.
    pub name_rule: NameRule,
    /// Whether `metadata.generation` counts changes of the spec.
    pub has_generation: bool,
    /// Whether an update of an object that does not exist creates it.
    pub allows_create_on_update: bool,
    /// Whether an update must name the resourceVersion.
    pub is_resource_version_required: bool,
    /// Whether the response to a delete is the object rather than a Status.
    pub returns_object_on_delete: bool,
    /// Whether a delete that names no propagation policy orphans the dependents of an object.
    pub orphans_dependents_by_default: bool,
    /// The path of its objects in the store, below the prefix of the store; `None` if they are not stored.
    pub storage_path: Option<String>,
    /// Whether it is built in or defined by a CustomResourceDefinition.
    pub resource_origin: ResourceOrigin,
}

/// Whether objects are namespaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Objects belong to the whole cluster.
    Cluster,
    /// Each object belongs to one namespace.
    Namespaced,
}

/// The origin of a resource.
#[derive(Debug, Clone)]
pub enum ResourceOrigin {
    /// The resource is built in.
    BuiltIn(&'static BuiltInResource),
    /// A CustomResourceDefinition defines the resource.
    Custom(Box<ServedVersion>),
}

/// A subresource: a part of an object, or an action on it, with its own path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subresource {
    /// The last segment of the path.
    pub name: &'static str,
    /// The verbs that the subresource supports.
    pub verbs: Verbs,
    /// The kind that it accepts and returns, if it is not that of the resource.
    pub kind: Option<SubresourceKind>,
}

/// The kind of a subresource that differs from the kind of its resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubresourceKind {
    /// The API group of the kind.
    pub group: &'static str,
    /// The API version of the kind.
    pub version: &'static str,
    /// The name of the kind.
    pub kind: &'static str,
}

/// The rule for the names of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameRule {
    /// The name is one DNS label.
    DnsLabel,
    /// The name is a DNS subdomain: one or more DNS labels.
    DnsSubdomain,
    /// The name can be any one segment of a path.
    PathSegment,
}

impl Subresource {
    /// The subresource `scale` of workloads, and of custom resources whose definition declares it.
    pub const SCALE: Self = Self {
        name: "scale",
        verbs: Verbs::PART,
        kind: Some(SubresourceKind { group: "autoscaling", version: "v1", kind: "Scale" }),
    };

    /// The subresource `status` with its verbs.
    pub const STATUS: Self = Self { name: "status", verbs: Verbs::PART, kind: None };

    /// A subresource whose requests become connections to a node. Its kind is that of the options in the query.
    pub(crate) const fn connect_subresource(
        name: &'static str,
        verbs: Verbs,
        options_kind: &'static str,
    ) -> Self {
        let kind = Some(SubresourceKind { group: "", version: "v1", kind: options_kind });
        Self { name, verbs, kind }
    }

    /// The kind of the options, if requests for the subresource become connections to a node. Admission calls
    /// them CONNECT, whatever their verb.
    #[must_use]
    pub fn connect_options_kind(&self) -> Option<&'static str> {
        let is_connection = matches!(self.name, "attach" | "exec" | "portforward" | "proxy");
        self.kind.filter(|_| is_connection).map(|own| own.kind)
    }
}

impl Resource {
    /// The group and version of the resource.
    #[must_use]
    pub fn group_version(&self) -> GroupVersion {
        GroupVersion::new(&self.group, &self.version)
    }

    /// Group and kind, as messages about an object show them.
    #[must_use]
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(&self.group, &self.kind)
    }

    /// Group and plural, as messages about a request show them.
    #[must_use]
    pub fn group_resource(&self) -> GroupResource {
        GroupResource::new(&self.group, &self.plural)
    }

    /// Reports whether objects are namespaced.
    #[must_use]
    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// Reports whether a CustomResourceDefinition defines the resource.
    #[must_use]
    pub fn is_custom_resource(&self) -> bool {
        matches!(self.resource_origin, ResourceOrigin::Custom(_))
    }

    /// The paths of replicas in the objects of a custom resource, if its definition declares the subresource `scale`.
    pub(crate) fn replica_paths(&self) -> Option<&ReplicaPaths> {
        match &self.resource_origin {
            ResourceOrigin::Custom(served) => served.replica_paths.as_ref(),
            ResourceOrigin::BuiltIn(_) => None,
        }
    }

    /// Reports whether objects are stored.
    #[must_use]
    pub fn is_stored(&self) -> bool {
        self.storage_path.is_some()
    }

    /// Reports whether the status is a subresource, so that the main path does not change it.
    #[must_use]
    pub fn has_status_subresource(&self) -> bool {
        self.find_subresource("status").is_some()
    }

    /// The subresource of this name.
    #[must_use]
    pub fn find_subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|it| it.name == name)
    }

    /// Reports whether an update without a resourceVersion is applied to the current state.
    #[must_use]
    pub fn is_unconditional_update_allowed(&self) -> bool {
        !self.is_resource_version_required
    }

    /// Reports whether the resource itself supports the verb.
    #[must_use]
    pub fn supports_verb(&self, verb: Verb) -> bool {
        self.verbs.contains(verb)
    }
}

impl NameRule {
    /// The reasons why an object may not have this name; each is the detail of an invalid value.
    #[must_use]
    pub fn name_faults(self, name: &str) -> Vec<String> {
        match self {
            Self::DnsLabel => dns1123_label_faults(name),
            Self::DnsSubdomain => dns1123_subdomain_faults(name),
            Self::PathSegment => path_segment_faults(name),
        }
    }

    /// The reasons why a generated name cannot begin with this prefix.
    ///
    /// A trailing dash is allowed, because the generated suffix follows it.
    #[must_use]
    pub fn name_prefix_faults(self, prefix: &str) -> Vec<String> {
        match self {
            Self::PathSegment => path_segment_prefix_faults(prefix),
            Self::DnsLabel | Self::DnsSubdomain => self.name_faults(&mask_trailing_dash(prefix)),
        }
    }
}

/// The faults of a prefix. A prefix of `.` or `..` is allowed, because it is not the whole name.
fn path_segment_prefix_faults(prefix: &str) -> Vec<String> {
    match prefix {
        "." | ".." => Vec::new(),
        _ => path_segment_faults(prefix),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_on_the_other_side_of_each_rule() {
        for (rule, good, bad) in [
            (NameRule::DnsLabel, "a-1", "a.1"),
            (NameRule::DnsSubdomain, "a.1", "a_1"),
            (NameRule::PathSegment, "system:A_1", "a/1"),
        ] {
            assert!(rule.name_faults(good).is_empty(), "{rule:?} {good}");
            assert!(!rule.name_faults(bad).is_empty(), "{rule:?} {bad}");
        }
    }

    #[test]
    fn a_generated_name_may_begin_with_a_dash_at_the_end() {
        for (rule, good, bad) in [
            (NameRule::DnsLabel, "a-", "a."),
            (NameRule::DnsSubdomain, "a.b-", "A-"),
            (NameRule::PathSegment, "..", "a/"),
        ] {
            assert!(rule.name_prefix_faults(good).is_empty(), "{rule:?} {good}");
            assert!(!rule.name_prefix_faults(bad).is_empty(), "{rule:?} {bad}");
        }
        assert!(!NameRule::DnsLabel.name_prefix_faults("-").is_empty());
    }
}
