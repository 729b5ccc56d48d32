//! Rules: which requests a hook or an initializer is about (admission §3.2 to §3.6).

use api_object::Tree;

use crate::attributes::{Attributes, GroupVersionResource, Operation};
use crate::members::{owned_texts, text, texts};

/// Stands for all operations, groups, versions, resources or subresources.
pub(crate) const ANY: &str = "*";

/// The one resource whose objects have a namespace attribute and are not namespaced.
const NAMESPACES: GroupVersionResource<'static> =
    GroupVersionResource { group: "", version: "v1", resource: "namespaces" };

/// The two dialects of rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// That of the proposal's kinds: operations may be called `verbs`, and `pods/*` means the
    /// subresources of pods and not pods themselves.
    V1alpha1,
    /// That of Kubernetes today, where `pods/*` includes pods.
    V1,
}

/// One rule. It matches if all of its parts do.
///
/// Values that no request has match nothing, so that a stored rule can be read whatever it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub(crate) operations: Vec<String>,
    pub(crate) groups: Vec<String>,
    pub(crate) versions: Vec<String>,
    pub(crate) resources: Vec<ResourcePattern>,
    scope: Scope,
}

/// What a rule looks at. The operation is text since a rule compares it as such.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleTarget<'a> {
    /// The operation.
    pub operation: &'a str,
    /// The resource, or an equivalent one.
    pub resource: GroupVersionResource<'a>,
    /// Empty for the resource itself.
    pub subresource: &'a str,
    /// The namespace attribute of the request.
    pub namespace: &'a str,
}

/// One entry of a rule's resources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResourcePattern {
    /// A resource, or [`ANY`].
    pub(crate) resource: String,
    pub(crate) subresource: Subresource,
}

/// Which subresources an entry is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subresource {
    /// This one; the empty one is the resource itself.
    Exactly(String),
    /// All, and the resource itself.
    AllAndNone,
    /// All, but not the resource itself.
    All,
}

/// Which resources a rule is about by where their objects live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Scope {
    All,
    Namespaced,
    Cluster,
    /// A value that is none of these matches nothing.
    Unknown,
}

impl Rule {
    /// Reads a rule of a hook.
    #[must_use]
    pub fn read(tree: &Tree, dialect: Dialect) -> Self {
        let operations = operations_member(tree, dialect);
        let pattern = |entry: &&str| ResourcePattern::read(entry, dialect);
        Self {
            operations: owned_texts(tree, operations),
            groups: owned_texts(tree, "apiGroups"),
            versions: owned_texts(tree, "apiVersions"),
            resources: texts(tree, "resources").iter().map(pattern).collect(),
            scope: match (dialect, text(tree, "scope")) {
                (Dialect::V1alpha1, _) | (Dialect::V1, None | Some(ANY)) => Scope::All,
                (Dialect::V1, Some("Namespaced")) => Scope::Namespaced,
                (Dialect::V1, Some("Cluster")) => Scope::Cluster,
                (Dialect::V1, Some(_)) => Scope::Unknown,
            },
        }
    }

    /// Reads a rule of an initializer: only creations of objects themselves count, and `*/*` means
    /// the same as `*`.
    pub(crate) fn read_for_initializer(tree: &Tree) -> Self {
        let pattern = |entry: &&str| ResourcePattern {
            resource: if *entry == "*/*" { ANY } else { entry }.to_owned(),
            subresource: Subresource::Exactly(String::new()),
        };
        Self {
            operations: vec![Operation::Create.name().to_owned()],
            groups: owned_texts(tree, "apiGroups"),
            versions: owned_texts(tree, "apiVersions"),
            resources: texts(tree, "resources").iter().map(pattern).collect(),
            scope: Scope::All,
        }
    }

    /// Whether scope, operation, group, version and resource all match.
    #[must_use]
    pub fn matches(&self, target: &RuleTarget<'_>) -> bool {
        self.scope.matches(target)
            && is_listed(&self.operations, target.operation)
            && is_listed(&self.groups, target.resource.group)
            && is_listed(&self.versions, target.resource.version)
            && self.resources.iter().any(|pattern| pattern.matches(target))
    }
}

/// The member that holds the operations of a rule: v1alpha1 rules have either name, and are matched
/// by the one that was written.
pub(crate) fn operations_member(tree: &Tree, dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::V1 => "operations",
        Dialect::V1alpha1 if tree.contains_key("verbs") => "verbs",
        Dialect::V1alpha1 if tree.contains_key("operations") => "operations",
        Dialect::V1alpha1 => "verbs",
    }
}

fn is_listed(items: &[String], requested: &str) -> bool {
    items.iter().any(|item| item == ANY || item == requested)
}

impl ResourcePattern {
    /// Splits at the first slash only, as the matcher of Kubernetes does.
    fn read(entry: &str, dialect: Dialect) -> Self {
        let (resource, subresource) = entry.split_once('/').unwrap_or((entry, ""));
        let subresource = match (subresource, dialect) {
            (ANY, Dialect::V1alpha1) if resource != ANY => Subresource::All,
            (ANY, Dialect::V1alpha1 | Dialect::V1) => Subresource::AllAndNone,
            (named, _) => Subresource::Exactly(named.to_owned()),
        };
        Self { resource: resource.to_owned(), subresource }
    }

    fn matches(&self, target: &RuleTarget<'_>) -> bool {
        (self.resource == ANY || self.resource == target.resource.resource)
            && match &self.subresource {
                Subresource::Exactly(own) => own == target.subresource,
                Subresource::AllAndNone => true,
                Subresource::All => !target.subresource.is_empty(),
            }
    }
}

impl Scope {
    fn matches(self, target: &RuleTarget<'_>) -> bool {
        let is_cluster = || target.resource == NAMESPACES || target.namespace.is_empty();
        match self {
            Self::All => true,
            Self::Namespaced => !is_cluster(),
            Self::Cluster => is_cluster(),
            Self::Unknown => false,
        }
    }
}

impl<'a> Attributes<'a> {
    /// What rules look at.
    #[must_use]
    pub fn rule_target(&self) -> RuleTarget<'a> {
        RuleTarget {
            operation: self.operation.name(),
            resource: self.resource,
            subresource: self.subresource,
            namespace: self.namespace,
        }
    }
}
