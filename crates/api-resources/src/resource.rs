//! A resource of one version.

use api_object::{GroupKind, GroupResource, GroupVersion};
use field_errors::{dns1123_label_faults, dns1123_subdomain_faults, path_segment_faults};

use crate::built_in::BuiltIn;
use crate::custom::ServedVersion;
use crate::verb::{Verb, Verbs};

/// A resource as one version of its group serves it.
#[derive(Debug, Clone)]
pub struct Resource {
    /// Empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind of its objects.
    pub kind: String,
    /// The kind of a list of them.
    pub list_kind: String,
    /// The name in paths and policies.
    pub plural: String,
    /// The singular name for kubectl.
    pub singular: String,
    /// Short names for kubectl.
    pub short_names: Vec<String>,
    /// Groups of resources, such as `all`, that people may list at once.
    pub categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub scope: Scope,
    /// The verbs that its objects support.
    pub verbs: Verbs,
    /// The parts of its objects that have paths of their own.
    pub subresources: Vec<Subresource>,
    /// Which names its objects may have.
    pub name_rule: NameRule,
    /// Whether `metadata.generation` counts the changes of what is wanted.
    pub has_generation: bool,
    /// Whether replacing an object that does not exist creates it.
    pub is_created_on_update: bool,
    /// Whether an update must name the resourceVersion.
    pub is_resource_version_required: bool,
    /// Whether the answer to a deletion is the object rather than a Status.
    pub is_returned_on_delete: bool,
    /// Where its objects are stored, below the prefix of the store; `None` if they are not.
    pub storage_path: Option<String>,
    /// Where it comes from.
    pub origin: Origin,
}

/// Whether objects live in namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// They belong to the whole cluster.
    Cluster,
    /// Each lives in one namespace.
    Namespaced,
}

/// Where a resource comes from.
#[derive(Debug, Clone)]
pub enum Origin {
    /// It is part of the program.
    BuiltIn(&'static BuiltIn),
    /// A CustomResourceDefinition describes it.
    Custom(Box<ServedVersion>),
}

/// A part of an object, or an action on it, that has a path of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subresource {
    /// The last segment of the path.
    pub name: &'static str,
    /// The verbs that the subresource supports.
    pub verbs: Verbs,
    /// The kind that it takes and returns, if it is not the resource's own.
    pub kind: Option<SubresourceKind>,
}

/// A kind of another group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubresourceKind {
    /// The group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
}

/// Which names objects may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameRule {
    /// One DNS label.
    DnsLabel,
    /// Some DNS labels.
    DnsSubdomain,
    /// Whatever can be one segment of a path.
    PathSegment,
}

impl Subresource {
    /// The `status` subresource.
    pub const STATUS: Self = Self { name: "status", verbs: Verbs::PART, kind: None };
}

impl Resource {
    /// Group and version.
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

    /// Reports whether objects live in namespaces.
    #[must_use]
    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// Reports whether a CustomResourceDefinition describes it.
    #[must_use]
    pub fn is_custom(&self) -> bool {
        matches!(self.origin, Origin::Custom(_))
    }

    /// Reports whether objects are kept; others are answered and forgotten.
    #[must_use]
    pub fn is_stored(&self) -> bool {
        self.storage_path.is_some()
    }

    /// Reports whether the status is a subresource, so that the main path does not change it.
    #[must_use]
    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    /// The subresource of this name.
    #[must_use]
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|it| it.name == name)
    }

    /// Reports whether an update without a version adopts the current one.
    #[must_use]
    pub fn is_unconditional_update_allowed(&self) -> bool {
        !self.is_resource_version_required
    }

    /// Reports whether the verb is offered on the resource itself.
    #[must_use]
    pub fn offers(&self, verb: Verb) -> bool {
        self.verbs.contains(verb)
    }
}

impl NameRule {
    /// Reasons why an object may not have that name; each is the detail of an invalid value.
    #[must_use]
    pub fn faults(self, name: &str) -> Vec<String> {
        match self {
            Self::DnsLabel => dns1123_label_faults(name),
            Self::DnsSubdomain => dns1123_subdomain_faults(name),
            Self::PathSegment => path_segment_faults(name),
        }
    }

    /// Reasons why no name can begin with that text: what is generated follows it.
    ///
    /// A dash at the end is fine, since a letter or a digit comes next. A name of the path kind has
    /// nothing at its end that could be wrong.
    #[must_use]
    pub fn prefix_faults(self, prefix: &str) -> Vec<String> {
        match (self, prefix.strip_suffix('-')) {
            (Self::PathSegment, _) => path_segment_prefix_faults(prefix),
            (_, Some(start)) if prefix.len() > 1 => self.faults(&format!("{start}a")),
            (_, _) => self.faults(prefix),
        }
    }
}

/// A prefix of `.` or `..` is not the whole name, so only the characters matter.
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
            assert!(rule.faults(good).is_empty(), "{rule:?} {good}");
            assert!(!rule.faults(bad).is_empty(), "{rule:?} {bad}");
        }
    }

    #[test]
    fn a_generated_name_may_begin_with_a_dash_at_the_end() {
        for (rule, good, bad) in [
            (NameRule::DnsLabel, "a-", "a."),
            (NameRule::DnsSubdomain, "a.b-", "A-"),
            (NameRule::PathSegment, "..", "a/"),
        ] {
            assert!(rule.prefix_faults(good).is_empty(), "{rule:?} {good}");
            assert!(!rule.prefix_faults(bad).is_empty(), "{rule:?} {bad}");
        }
        assert!(!NameRule::DnsLabel.prefix_faults("-").is_empty());
    }
}
