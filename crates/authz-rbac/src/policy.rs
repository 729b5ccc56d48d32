//! The objects that policy is made of.
//!
//! They are taken as they come: some would not pass the validation of the API, and deciding must
//! cope with those too. An odd kind grants nothing.

use std::collections::BTreeMap;

/// The API group of the four kinds.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// What identifies and describes an object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metadata {
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// The name, unique for its kind in the namespace.
    pub name: String,
    /// The labels, by which cluster roles are aggregated.
    pub labels: BTreeMap<String, String>,
    /// The annotations.
    pub annotations: BTreeMap<String, String>,
}

/// A Role, or a ClusterRole if it has no namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Role {
    /// Which one.
    pub metadata: Metadata,
    /// What it grants.
    pub rules: Vec<PolicyRule>,
    /// Where the rules come from, if others supply them; ClusterRoles only.
    pub aggregation_rule: Option<AggregationRule>,
}

/// A RoleBinding, or a ClusterRoleBinding if it has no namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Binding {
    /// Which one.
    pub metadata: Metadata,
    /// The role it grants.
    pub role_ref: RoleRef,
    /// To whom.
    pub subjects: Vec<Subject>,
}

/// Verbs on resources, or verbs on paths. `*` stands for everything.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct PolicyRule {
    /// The verbs.
    pub verbs: Vec<String>,
    /// The API groups.
    pub api_groups: Vec<String>,
    /// The resources: `pods`, `pods/log`, `*/scale`.
    pub resources: Vec<String>,
    /// The names of objects; none stand for all.
    pub resource_names: Vec<String>,
    /// The paths; `*` at the end stands for any rest.
    pub non_resource_urls: Vec<String>,
}

/// One to whom a role is granted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Subject {
    /// `User`, `Group` or `ServiceAccount`; any other kind matches nobody.
    pub kind: String,
    /// The API group of the kind. It is not looked at when deciding.
    pub api_group: String,
    /// The name.
    pub name: String,
    /// The namespace of a service account; empty for that of the binding.
    pub namespace: String,
}

/// The role that a binding grants.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct RoleRef {
    /// The API group of the kind. It is not looked at when deciding.
    pub api_group: String,
    /// `Role` or `ClusterRole`.
    pub kind: String,
    /// The name.
    pub name: String,
}

/// Which cluster roles supply the rules of another.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AggregationRule {
    /// A role that any of these selects is a supplier.
    pub cluster_role_selectors: Vec<LabelSelector>,
}

/// A selector of objects by their labels; all parts must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelSelector {
    /// Labels that must have these values.
    pub match_labels: BTreeMap<String, String>,
    /// Further requirements.
    pub match_expressions: Vec<LabelExpression>,
}

/// One requirement on a label.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelExpression {
    /// The key of the label.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`; any other holds for no object.
    pub operator: String,
    /// The values of the first two.
    pub values: Vec<String>,
}

/// Whom a subject means, in terms of a user.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Identity {
    /// A user of this name.
    User(String),
    /// Everybody in a group of this name.
    Group(String),
}

impl Subject {
    /// A user.
    pub fn user(name: &str) -> Self {
        Self::of("User", GROUP, name, "")
    }

    /// A group.
    pub fn group(name: &str) -> Self {
        Self::of("Group", GROUP, name, "")
    }

    /// A service account.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self::of("ServiceAccount", "", name, namespace)
    }

    fn of(kind: &str, api_group: &str, name: &str, namespace: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            api_group: api_group.to_owned(),
            name: name.to_owned(),
            namespace: namespace.to_owned(),
        }
    }

    /// Whom this subject of a binding in `namespace` means; `None` if nobody. A service account is
    /// the user whose name is made of its namespace and name.
    pub(crate) fn identity(&self, namespace: &str) -> Option<Identity> {
        match self.kind.as_str() {
            "User" => Some(Identity::User(self.name.clone())),
            "Group" => Some(Identity::Group(self.name.clone())),
            "ServiceAccount" => match self.namespace_in(namespace) {
                "" => None,
                own => Some(Identity::User(format!("system:serviceaccount:{own}:{}", self.name))),
            },
            _ => None,
        }
    }

    /// Reports whether this subject of a binding in `namespace` means the user of this name: what
    /// [`identity`](Self::identity) says, without making a name.
    pub(crate) fn is_user(&self, name: &str, namespace: &str) -> bool {
        match self.kind.as_str() {
            "User" => self.name == name,
            "ServiceAccount" => {
                let own = self.namespace_in(namespace);
                let rest = name.strip_prefix("system:serviceaccount:");
                let rest = rest.and_then(|rest| rest.strip_prefix(own)?.strip_prefix(':'));
                !own.is_empty() && rest == Some(&self.name)
            }
            _ => false,
        }
    }

    /// Reports whether this subject means everybody in the group of this name.
    pub(crate) fn is_group(&self, name: &str) -> bool {
        self.kind == "Group" && self.name == name
    }

    /// The namespace of a service account in a binding of `namespace`.
    pub(crate) fn namespace_in<'a>(&'a self, namespace: &'a str) -> &'a str {
        if self.namespace.is_empty() { namespace } else { &self.namespace }
    }
}

impl Role {
    /// The name.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Reports whether others supply the rules.
    pub(crate) fn is_aggregated(&self) -> bool {
        self.aggregation_rule.as_ref().is_some_and(|rule| !rule.cluster_role_selectors.is_empty())
    }
}

impl Binding {
    /// The name.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// The namespace; empty for a ClusterRoleBinding.
    pub fn namespace(&self) -> &str {
        &self.metadata.namespace
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_account_takes_the_namespace_of_its_binding() {
        let account = Subject::service_account("", "ci");
        let user = |name: &str| Some(Identity::User(name.to_owned()));
        assert_eq!(account.identity("ns1"), user("system:serviceaccount:ns1:ci"));
        assert_eq!(account.identity(""), None);
        let elsewhere = Subject::service_account("ns2", "ci");
        assert_eq!(elsewhere.identity("ns1"), user("system:serviceaccount:ns2:ci"));
    }

    #[test]
    fn identities_are_told_without_making_names() {
        let subjects = [
            Subject::user("ci"),
            Subject::user("system:serviceaccount:ns1:ci"),
            Subject::group("ci"),
            Subject::service_account("", "ci"),
            Subject::service_account("ns2", "ci"),
            Subject::service_account("ns2", "a:ci"),
            Subject { kind: "user".to_owned(), ..Subject::user("ci") },
        ];
        let accounts = ["ns1:ci", "ns2:ci", "ns2:a:ci", ":ci", "ns1", "ns1ci", "ns1:cis"];
        let accounts = accounts.map(|rest| format!("system:serviceaccount:{rest}"));
        for subject in &subjects {
            for namespace in ["", "ns1", "ns2"] {
                let identity = subject.identity(namespace);
                for name in accounts.iter().map(String::as_str).chain(["ci", ""]) {
                    let [user, group] = [Identity::User, Identity::Group].map(|of| of(name.into()));
                    assert_eq!(subject.is_user(name, namespace), identity == Some(user));
                    assert_eq!(subject.is_group(name), identity == Some(group));
                }
            }
        }
    }

    #[test]
    fn an_odd_kind_means_nobody() {
        let odd = Subject { kind: "user".to_owned(), ..Subject::user("ana") };
        assert_eq!(odd.identity("ns1"), None);
        assert_eq!(Subject::group("*").identity(""), Some(Identity::Group("*".to_owned())));
    }
}
