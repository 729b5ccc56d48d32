//! Rules: the operations and resources that a hook or an initializer applies to.

use api_object::Tree;

use crate::attributes::{Attributes, GroupVersionResource, Operation};
use crate::json_members::{read_owned_strings, read_string, read_strings};

/// The wildcard for operations, groups, versions, resources and subresources.
pub(crate) const ANY: &str = "*";

/// The only resource whose objects have a namespace attribute but are cluster-scoped.
const NAMESPACES: GroupVersionResource<'static> =
    GroupVersionResource { group: "", version: "v1", resource: "namespaces" };

/// The two versions of the rule syntax.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RuleDialect {
    /// The syntax of the `v1alpha1` kinds: operations may be called `verbs`, and `pods/*` matches the subresources of
    /// pods but not pods themselves.
    V1alpha1,
    /// The syntax of `v1`, where `pods/*` includes pods.
    V1,
}

/// A rule, which matches if all of its parts match.
///
/// Values that no request has match nothing, so every stored rule can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub(crate) operations: Vec<String>,
    pub(crate) groups: Vec<String>,
    pub(crate) versions: Vec<String>,
    pub(crate) resources: Vec<ResourcePattern>,
    scope: RuleScope,
}

/// The part of a request that rules are matched against. The operation is text because rules compare it as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleTarget<'a> {
    /// The operation, such as `CREATE`.
    pub operation: &'a str,
    /// The requested resource, or an equivalent one.
    pub resource: GroupVersionResource<'a>,
    /// The subresource; empty for the resource itself.
    pub subresource: &'a str,
    /// The namespace attribute of the request.
    pub namespace: &'a str,
}

/// One entry of a rule's resources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResourcePattern {
    /// The name of a resource, or [`ANY`].
    pub(crate) resource: String,
    pub(crate) subresource: SubresourcePattern,
}

/// The subresources that an entry matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SubresourcePattern {
    /// This subresource; the empty text is the resource itself.
    Exactly(String),
    /// All subresources, and the resource itself.
    AllAndNone,
    /// All subresources, but not the resource itself.
    All,
}

/// The scope of the resources that a rule matches: namespaced, cluster-scoped or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum RuleScope {
    All,
    Namespaced,
    Cluster,
    /// Any other stored value; it matches nothing.
    Unknown,
}

impl Rule {
    /// Reads a rule of a hook.
    #[must_use]
    pub fn read(tree: &Tree, dialect: RuleDialect) -> Self {
        let operations = operations_member_name(tree, dialect);
        let pattern = |entry: &&str| ResourcePattern::read(entry, dialect);
        Self {
            operations: read_owned_strings(tree, operations),
            groups: read_owned_strings(tree, "apiGroups"),
            versions: read_owned_strings(tree, "apiVersions"),
            resources: read_strings(tree, "resources").iter().map(pattern).collect(),
            scope: match (dialect, read_string(tree, "scope")) {
                (RuleDialect::V1alpha1, _) | (RuleDialect::V1, None | Some(ANY)) => RuleScope::All,
                (RuleDialect::V1, Some("Namespaced")) => RuleScope::Namespaced,
                (RuleDialect::V1, Some("Cluster")) => RuleScope::Cluster,
                (RuleDialect::V1, Some(_)) => RuleScope::Unknown,
            },
        }
    }

    /// Reads a rule of an initializer. It matches only the creation of objects, not of subresources, and `*/*` means the
    /// same as `*`.
    pub(crate) fn read_initializer_rule(tree: &Tree) -> Self {
        let pattern = |entry: &&str| ResourcePattern {
            resource: if *entry == "*/*" { ANY } else { entry }.to_owned(),
            subresource: SubresourcePattern::Exactly(String::new()),
        };
        Self {
            operations: vec![Operation::Create.name().to_owned()],
            groups: read_owned_strings(tree, "apiGroups"),
            versions: read_owned_strings(tree, "apiVersions"),
            resources: read_strings(tree, "resources").iter().map(pattern).collect(),
            scope: RuleScope::All,
        }
    }

    /// Reports whether scope, operation, group, version and resource all match.
    #[must_use]
    pub fn matches(&self, target: &RuleTarget<'_>) -> bool {
        self.scope.matches(target)
            && list_contains_value_or_wildcard(&self.operations, target.operation)
            && list_contains_value_or_wildcard(&self.groups, target.resource.group)
            && list_contains_value_or_wildcard(&self.versions, target.resource.version)
            && self.resources.iter().any(|pattern| pattern.matches(target))
    }
}

/// The name of the member that holds the operations of a rule. Rules of `v1alpha1` may use either name.
pub(crate) fn operations_member_name(tree: &Tree, dialect: RuleDialect) -> &'static str {
    match dialect {
        RuleDialect::V1 => "operations",
        RuleDialect::V1alpha1 if tree.contains_key("verbs") => "verbs",
        RuleDialect::V1alpha1 if tree.contains_key("operations") => "operations",
        RuleDialect::V1alpha1 => "verbs",
    }
}

fn list_contains_value_or_wildcard(items: &[String], requested: &str) -> bool {
    items.iter().any(|item| item == ANY || item == requested)
}

impl ResourcePattern {
    /// Parses an entry. Like Kubernetes' matcher, it splits at the first slash only.
    fn read(entry: &str, dialect: RuleDialect) -> Self {
        let (resource, subresource) = entry.split_once('/').unwrap_or((entry, ""));
        let subresource = match (subresource, dialect) {
            (ANY, RuleDialect::V1alpha1) if resource != ANY => SubresourcePattern::All,
            (ANY, RuleDialect::V1alpha1 | RuleDialect::V1) => SubresourcePattern::AllAndNone,
            (named, _) => SubresourcePattern::Exactly(named.to_owned()),
        };
        Self { resource: resource.to_owned(), subresource }
    }

    fn matches(&self, target: &RuleTarget<'_>) -> bool {
        (self.resource == ANY || self.resource == target.resource.resource)
            && match &self.subresource {
                SubresourcePattern::Exactly(own) => own == target.subresource,
                SubresourcePattern::AllAndNone => true,
                SubresourcePattern::All => !target.subresource.is_empty(),
            }
    }
}

impl RuleScope {
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
    /// The part of the request that rules are matched against.
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
