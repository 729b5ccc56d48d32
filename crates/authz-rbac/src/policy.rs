//! Roles, bindings and rules as values.
//!
//! Objects are not validated here: a snapshot may hold objects that the API would reject, and an unknown
//! kind grants nothing.

use std::borrow::Cow;
use std::collections::BTreeMap;

use authz::Namespace;

/// The API group of the four kinds.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// The metadata of an object that authorization reads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metadata {
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// The name, unique for its kind in the namespace.
    pub name: String,
    /// The labels, by which cluster roles are aggregated.
    pub labels: BTreeMap<String, String>,
    /// The annotations, one of which excludes an object from reconciliation.
    pub annotations: BTreeMap<String, String>,
}

/// A Role, or a ClusterRole if it has no namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Role {
    /// The namespace, name, labels and annotations.
    pub metadata: Metadata,
    /// The permissions that the role grants.
    pub rules: Vec<PolicyRule>,
    /// Selects the ClusterRoles that supply the rules of an aggregated ClusterRole.
    pub aggregation_rule: Option<AggregationRule>,
}

/// A RoleBinding, or a ClusterRoleBinding if it has no namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Binding {
    /// The namespace, name, labels and annotations.
    pub metadata: Metadata,
    /// The role that the binding grants.
    pub role_ref: RoleRef,
    /// The users, groups and service accounts to which the binding grants the role.
    pub subjects: Vec<Subject>,
}

/// Verbs on resources, or verbs on paths. `*` stands for everything.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct PolicyRule {
    /// The verbs, such as `get`.
    pub verbs: Vec<String>,
    /// The API groups; the core group is empty.
    pub api_groups: Vec<String>,
    /// The resources: `pods`, `pods/log`, `*/scale`.
    pub resources: Vec<String>,
    /// The names of objects; an empty list stands for all names.
    pub resource_names: Vec<String>,
    /// The paths; `*` at the end stands for any suffix.
    pub non_resource_urls: Vec<String>,
}

/// A user, group or service account to which a binding grants a role.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Subject {
    /// `User`, `Group` or `ServiceAccount`; any other kind matches nobody.
    pub kind: String,
    /// The API group of the kind. Decisions ignore it.
    pub api_group: String,
    /// The name of the user, group or service account.
    pub name: String,
    /// The namespace of a service account; empty for that of the binding.
    pub namespace: String,
}

/// The role that a binding grants.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct RoleRef {
    /// The API group of the kind. Decisions ignore it.
    pub api_group: String,
    /// The kind of the role: `Role` or `ClusterRole`.
    pub kind: String,
    /// The name of the role.
    pub name: String,
}

/// The selectors of an aggregated ClusterRole. Its rules are those of the ClusterRoles that they select.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AggregationRule {
    /// The selectors. A ClusterRole that any of them selects contributes its rules.
    pub cluster_role_selectors: Vec<LabelSelector>,
}

/// A selector of objects by their labels; all requirements must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelSelector {
    /// Labels that must have these values.
    pub match_labels: BTreeMap<String, String>,
    /// Further requirements on labels, which must hold as well.
    pub match_expressions: Vec<LabelExpression>,
}

/// One requirement on a label.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelExpression {
    /// The key of the label.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`; any other holds for no object.
    pub operator: String,
    /// The values for `In` and `NotIn`.
    pub values: Vec<String>,
}

/// A user or a group of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Principal<'a> {
    /// The user of this name.
    User(&'a str),
    /// Every user in the group of this name.
    Group(&'a str),
}

impl Subject {
    /// Returns the subject for a user.
    pub fn user(name: &str) -> Self {
        Self::new("User", GROUP, name, "")
    }

    /// Returns the subject for all members of a group.
    pub fn group(name: &str) -> Self {
        Self::new("Group", GROUP, name, "")
    }

    /// Returns the subject for a service account.
    pub fn service_account_subject(namespace: &str, name: &str) -> Self {
        Self::new("ServiceAccount", "", name, namespace)
    }

    fn new(kind: &str, api_group: &str, name: &str, namespace: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            api_group: api_group.to_owned(),
            name: name.to_owned(),
            namespace: namespace.to_owned(),
        }
    }

    /// The user name that a subject of a binding in `namespace` refers to; `None` if the subject is not a user or a
    /// service account. The user name of a service account contains its namespace and name.
    pub(crate) fn user_name(&self, namespace: Namespace<'_>) -> Option<Cow<'_, str>> {
        match self.kind.as_str() {
            "User" => Some(Cow::Borrowed(&self.name)),
            "ServiceAccount" => {
                let own = self.service_account_namespace(namespace).name()?;
                Some(Cow::Owned(format!("system:serviceaccount:{own}:{}", self.name)))
            }
            _ => None,
        }
    }

    /// The group that a subject refers to; `None` if the subject is not a group.
    pub(crate) fn group_name(&self) -> Option<&str> {
        (self.kind == "Group").then_some(self.name.as_str())
    }

    /// Reports whether a subject of a binding in `namespace` matches this user or group. Allocates nothing.
    pub(crate) fn matches_principal(
        &self,
        principal: Principal<'_>,
        namespace: Namespace<'_>,
    ) -> bool {
        match (self.kind.as_str(), principal) {
            ("User", Principal::User(name)) | ("Group", Principal::Group(name)) => {
                self.name == name
            }
            ("ServiceAccount", Principal::User(name)) => {
                let own = self.service_account_namespace(namespace).name();
                let rest = name.strip_prefix("system:serviceaccount:");
                let rest = rest.and_then(|rest| rest.strip_prefix(own?)?.strip_prefix(':'));
                rest == Some(&self.name)
            }
            _ => false,
        }
    }

    /// Reports whether two subjects of a binding in `namespace` mean the same user or the same group.
    pub(crate) fn is_same_principal(&self, other: &Self, namespace: Namespace<'_>) -> bool {
        self.user_name(namespace) == other.user_name(namespace)
            && self.group_name() == other.group_name()
    }

    /// The namespace of a service account in a binding of `namespace`.
    pub(crate) fn service_account_namespace<'a>(
        &'a self,
        namespace: Namespace<'a>,
    ) -> Namespace<'a> {
        let own = Namespace::new(&self.namespace);
        if own.is_cluster_scope() { namespace } else { own }
    }
}

impl Role {
    /// The name in the metadata.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// The namespace; the cluster scope for a ClusterRole.
    pub fn namespace(&self) -> Namespace<'_> {
        Namespace::new(&self.metadata.namespace)
    }

    /// Reports whether other ClusterRoles supply the rules.
    pub(crate) fn is_aggregated(&self) -> bool {
        self.aggregation_rule.as_ref().is_some_and(|rule| !rule.cluster_role_selectors.is_empty())
    }
}

impl Binding {
    /// The name in the metadata.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// The namespace; the cluster scope for a ClusterRoleBinding.
    pub fn namespace(&self) -> Namespace<'_> {
        Namespace::new(&self.metadata.namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_account_takes_the_namespace_of_its_binding() {
        let account = Subject::service_account_subject("", "ci");
        assert_eq!(
            account.user_name(Namespace::new("ns1")).as_deref(),
            Some("system:serviceaccount:ns1:ci")
        );
        assert_eq!(account.user_name(Namespace::CLUSTER_SCOPE), None);
        let elsewhere = Subject::service_account_subject("ns2", "ci");
        assert_eq!(
            elsewhere.user_name(Namespace::new("ns1")).as_deref(),
            Some("system:serviceaccount:ns2:ci")
        );
    }

    #[test]
    fn a_subject_matches_the_principal_of_its_name() {
        let subjects = [
            Subject::user("ci"),
            Subject::user("system:serviceaccount:ns1:ci"),
            Subject::group("ci"),
            Subject::service_account_subject("", "ci"),
            Subject::service_account_subject("ns2", "ci"),
            Subject::service_account_subject("ns2", "a:ci"),
            Subject { kind: "user".to_owned(), ..Subject::user("ci") },
        ];
        let accounts = ["ns1:ci", "ns2:ci", "ns2:a:ci", ":ci", "ns1", "ns1ci", "ns1:cis"];
        let accounts = accounts.map(|rest| format!("system:serviceaccount:{rest}"));
        for subject in &subjects {
            for namespace in ["", "ns1", "ns2"] {
                for name in accounts.iter().map(String::as_str).chain(["ci", ""]) {
                    let user_name = subject.user_name(Namespace::new(namespace));
                    let matches_principal =
                        |principal| subject.matches_principal(principal, Namespace::new(namespace));
                    assert_eq!(
                        matches_principal(Principal::User(name)),
                        user_name.as_deref() == Some(name)
                    );
                    assert_eq!(
                        matches_principal(Principal::Group(name)),
                        subject.group_name() == Some(name)
                    );
                }
            }
        }
    }

    #[test]
    fn an_unknown_kind_matches_nobody() {
        let unknown = Subject { kind: "user".to_owned(), ..Subject::user("ana") };
        assert_eq!((unknown.user_name(Namespace::new("ns1")), unknown.group_name()), (None, None));
        assert_eq!(Subject::group("*").group_name(), Some("*"));
    }
}
