//! The index: all roles and bindings, found by who asks.

use std::sync::Arc;

use authz::User;

use crate::hash_trie::HashTrie;
use crate::policy::{Binding, Identity, Role};
use crate::sequence::{Named, Sequence};

/// All policy at one moment.
///
/// A clone shares everything with its original and costs a few pointers. Whoever changes policy
/// clones the current snapshot, changes the clone and publishes it; readers keep the one they have
/// and need no lock. A change copies what leads to the changed object and to its subjects, and
/// nothing that belongs to others.
///
/// ```
/// use authz::{Attributes, Recorder, Resource, Target, User, Verdict};
/// use authz_rbac::{Binding, Metadata, PolicyRule, Role, RoleRef, Snapshot, Subject};
///
/// let metadata = Metadata { name: "reader".to_owned(), ..Metadata::default() };
/// let mut snapshot = Snapshot::default();
/// snapshot.put_role(Role {
///     metadata: metadata.clone(),
///     rules: vec![PolicyRule {
///         verbs: vec!["get".to_owned()],
///         api_groups: vec![String::new()],
///         resources: vec!["pods".to_owned()],
///         ..PolicyRule::default()
///     }],
///     aggregation_rule: None,
/// });
/// snapshot.put_binding(Binding {
///     metadata,
///     role_ref: RoleRef { kind: "ClusterRole".to_owned(), name: "reader".to_owned(), ..RoleRef::default() },
///     subjects: vec![Subject::user("ana")],
/// });
///
/// let ana = User { name: "ana".to_owned(), ..User::default() };
/// let pods = Resource { resource: "pods", namespace: "team-a", ..Resource::default() };
/// let asked = Attributes { user: Some(&ana), verb: "get", target: Target::Resource(pods) };
/// assert_eq!(snapshot.authorize(&asked, Recorder::off()).verdict, Verdict::Allow);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    cluster: Scope,
    namespaces: HashTrie<Scope>,
    /// Service accounts are among the users, by the names that authentication gives them.
    users: HashTrie<Holdings>,
    groups: HashTrie<Holdings>,
}

/// The objects of the cluster, or of one namespace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    pub(crate) roles: HashTrie<Arc<Role>>,
    pub(crate) bindings: Sequence<Arc<Binding>>,
}

/// The bindings of which one user or group is a subject.
#[derive(Debug, Clone, Default)]
pub(crate) struct Holdings {
    pub(crate) cluster: Sequence<Held>,
    pub(crate) namespaces: HashTrie<Sequence<Held>>,
}

/// A binding and the first of its subjects that means the holder.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) binding: Arc<Binding>,
    pub(crate) subject_idx: usize,
}

/// Why a binding grants nothing. Displays in Kubernetes' words.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum LookupError {
    /// The ClusterRole does not exist.
    #[error("clusterrole.rbac.authorization.k8s.io {} not found", gotext::quote(.0))]
    ClusterRoleNotFound(String),
    /// The Role does not exist in the namespace of the binding.
    #[error("role.rbac.authorization.k8s.io {} not found", gotext::quote(.0))]
    RoleNotFound(String),
    /// There is no such kind of role.
    #[error("unsupported role reference kind: {}", gotext::quote(.0))]
    UnsupportedKind(String),
}

impl Named for Arc<Binding> {
    fn name(&self) -> &str {
        Binding::name(self)
    }
}

impl Named for Held {
    fn name(&self) -> &str {
        self.binding.as_ref().name()
    }
}

/// Changes.
impl Snapshot {
    /// Adds a role, or replaces the one of its name.
    pub fn put_role(&mut self, role: Role) {
        let role = Arc::new(role);
        self.scope_mut(&role.metadata.namespace).roles.put(role.name(), Arc::clone(&role));
    }

    /// Takes out a role; an empty namespace means a ClusterRole.
    pub fn remove_role(&mut self, namespace: &str, name: &str) -> Option<Arc<Role>> {
        self.role(namespace, name)?;
        let removed = self.scope_mut(namespace).roles.remove(name);
        self.drop_empty_scope(namespace);
        removed
    }

    /// Adds a binding, or replaces the one of its name.
    pub fn put_binding(&mut self, binding: Binding) {
        self.remove_binding(binding.namespace(), binding.name());
        let binding = Arc::new(binding);
        self.scope_mut(binding.namespace()).bindings.put(Arc::clone(&binding));
        for (subject_idx, subject) in binding.subjects.iter().enumerate() {
            let Some(identity) = subject.identity(binding.namespace()) else { continue };
            let held = self.held_mut(&identity, binding.namespace());
            // The first of several subjects that mean the same holder is the one that is named.
            if held.get(binding.name()).is_none() {
                held.put(Held { binding: Arc::clone(&binding), subject_idx });
            }
        }
    }

    /// Takes out a binding; an empty namespace means a ClusterRoleBinding.
    pub fn remove_binding(&mut self, namespace: &str, name: &str) -> Option<Arc<Binding>> {
        self.binding(namespace, name)?;
        let binding = self.scope_mut(namespace).bindings.remove(name)?;
        self.drop_empty_scope(namespace);
        for subject in &binding.subjects {
            if let Some(identity) = subject.identity(namespace) {
                self.remove_held(&identity, namespace, name);
            }
        }
        Some(binding)
    }

    fn scope_mut(&mut self, namespace: &str) -> &mut Scope {
        match namespace {
            "" => &mut self.cluster,
            namespace => self.namespaces.slot(namespace, Scope::default),
        }
    }

    fn drop_empty_scope(&mut self, namespace: &str) {
        let is_empty = |scope: &Scope| scope.roles.is_empty() && scope.bindings.is_empty();
        if self.namespaces.get(namespace).is_some_and(is_empty) {
            self.namespaces.remove(namespace);
        }
    }

    fn held_mut(&mut self, identity: &Identity, namespace: &str) -> &mut Sequence<Held> {
        let holdings = match identity {
            Identity::User(name) => self.users.slot(name, Holdings::default),
            Identity::Group(name) => self.groups.slot(name, Holdings::default),
        };
        match namespace {
            "" => &mut holdings.cluster,
            namespace => holdings.namespaces.slot(namespace, Sequence::default),
        }
    }

    fn remove_held(&mut self, identity: &Identity, namespace: &str, binding: &str) {
        let (holders, name) = match identity {
            Identity::User(name) => (&mut self.users, name),
            Identity::Group(name) => (&mut self.groups, name),
        };
        // A subject that is named twice is gone after the first time.
        if holders.get(name).is_none_or(|holdings| holdings.held(namespace).is_none()) {
            return;
        }
        let holdings = holders.slot(name, Holdings::default);
        if namespace.is_empty() {
            holdings.cluster.remove(binding);
        } else {
            let held = holdings.namespaces.slot(namespace, Sequence::default);
            held.remove(binding);
            if held.is_empty() {
                holdings.namespaces.remove(namespace);
            }
        }
        if holdings.cluster.is_empty() && holdings.namespaces.is_empty() {
            holders.remove(name);
        }
    }
}

/// Reading.
impl Snapshot {
    /// A role; an empty namespace means a ClusterRole.
    pub fn role(&self, namespace: &str, name: &str) -> Option<&Arc<Role>> {
        self.scope(namespace)?.roles.get(name)
    }

    /// A binding; an empty namespace means a ClusterRoleBinding.
    pub fn binding(&self, namespace: &str, name: &str) -> Option<&Arc<Binding>> {
        self.scope(namespace)?.bindings.get(name)
    }

    /// The bindings of a namespace by name; an empty one means ClusterRoleBindings.
    pub fn bindings(&self, namespace: &str) -> impl Iterator<Item = &Arc<Binding>> {
        self.scope(namespace).into_iter().flat_map(|scope| scope.bindings.iter())
    }

    /// The ClusterRoles by name.
    pub fn cluster_roles(&self) -> Vec<&Arc<Role>> {
        let mut roles = Vec::new();
        self.cluster.roles.for_each(&mut |_, role| roles.push(role));
        roles.sort_unstable_by(|a, b| a.name().cmp(b.name()));
        roles
    }

    /// The role that a binding grants.
    ///
    /// # Errors
    /// Returns why there is none.
    pub fn role_of(&self, binding: &Binding) -> Result<&Arc<Role>, LookupError> {
        self.find_role_of(binding).ok_or_else(|| {
            let name = binding.role_ref.name.clone();
            match binding.role_ref.kind.as_str() {
                "ClusterRole" => LookupError::ClusterRoleNotFound(name),
                "Role" => LookupError::RoleNotFound(name),
                kind => LookupError::UnsupportedKind(kind.to_owned()),
            }
        })
    }

    /// The same without saying why, and so without allocating.
    pub(crate) fn find_role_of(&self, binding: &Binding) -> Option<&Arc<Role>> {
        let name = &binding.role_ref.name;
        match (binding.role_ref.kind.as_str(), binding.namespace()) {
            ("ClusterRole", _) => self.cluster.roles.get(name),
            // Roles have a namespace, so a cluster-wide binding finds none.
            ("Role", "") => None,
            ("Role", namespace) => self.role(namespace, name),
            _ => None,
        }
    }

    /// What the user holds by name, and then what each group of the user holds.
    pub(crate) fn holdings_of(&self, user: &User) -> impl Iterator<Item = &Holdings> {
        let by_name = self.users.get(&user.name).into_iter();
        by_name.chain(user.groups.iter().filter_map(|group| self.groups.get(group)))
    }

    fn scope(&self, namespace: &str) -> Option<&Scope> {
        match namespace {
            "" => Some(&self.cluster),
            namespace => self.namespaces.get(namespace),
        }
    }
}

impl Holdings {
    /// The bindings of one namespace; an empty one means those of the cluster.
    pub(crate) fn held(&self, namespace: &str) -> Option<&Sequence<Held>> {
        match namespace {
            "" => Some(&self.cluster),
            namespace => self.namespaces.get(namespace),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Metadata, RoleRef, Subject};

    fn binding(namespace: &str, name: &str, subjects: Vec<Subject>) -> Binding {
        let metadata = Metadata {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            ..Metadata::default()
        };
        let role_ref = RoleRef { kind: "Role".into(), name: "r".into(), ..RoleRef::default() };
        Binding { metadata, role_ref, subjects }
    }

    #[test]
    fn nothing_is_left_of_what_is_taken_out() {
        let mut snapshot = Snapshot::default();
        let twice = vec![Subject::user("ana"), Subject::group("dev"), Subject::user("ana")];
        snapshot.put_binding(binding("ns1", "b", twice));
        let role = Role {
            metadata: Metadata { namespace: "ns2".into(), name: "r".into(), ..Metadata::default() },
            ..Role::default()
        };
        snapshot.put_role(role);
        let before = snapshot.clone();
        assert!(snapshot.remove_binding("ns1", "other").is_none());
        assert!(snapshot.remove_binding("ns1", "b").is_some());
        assert!(snapshot.remove_role("ns2", "r").is_some());
        assert!(snapshot.remove_role("ns2", "r").is_none());
        assert!(snapshot.users.is_empty() && snapshot.groups.is_empty());
        assert!(snapshot.namespaces.is_empty());
        assert!(before.binding("ns1", "b").is_some() && before.role("ns2", "r").is_some());
    }

    #[test]
    fn replacing_a_binding_forgets_its_former_subjects() {
        let mut snapshot = Snapshot::default();
        snapshot.put_binding(binding("", "b", vec![Subject::user("ana"), Subject::user("bob")]));
        snapshot.put_binding(binding("", "b", vec![Subject::user("bob"), Subject::user("eve")]));
        assert!(snapshot.users.get("ana").is_none());
        let held = snapshot.users.get("bob").and_then(|holdings| holdings.cluster.get("b"));
        assert_eq!(held.map(|held| held.subject_idx), Some(0));
        assert!(snapshot.users.get("eve").is_some());
    }

    #[test]
    fn a_role_that_can_not_be_found_says_so() {
        let snapshot = Snapshot::default();
        let mut dangling = binding("ns1", "b", Vec::new());
        let message = |binding: &Binding| snapshot.role_of(binding).map(|_| ()).unwrap_err();
        assert_eq!(
            message(&dangling).to_string(),
            r#"role.rbac.authorization.k8s.io "r" not found"#
        );
        dangling.role_ref.kind = "ClusterRole".into();
        assert_eq!(
            message(&dangling).to_string(),
            r#"clusterrole.rbac.authorization.k8s.io "r" not found"#
        );
        dangling.role_ref.kind = "Rôle".into();
        assert_eq!(message(&dangling).to_string(), r#"unsupported role reference kind: "Rôle""#);
    }
}
