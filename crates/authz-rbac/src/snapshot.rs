//! The index: all roles and bindings, found by who asks.

use std::cmp::Ordering;
use std::hint::black_box;
use std::sync::Arc;

use crate::bound::{BindingSlot, SoughtName};
use crate::compiled::CompiledRole;
use crate::grants::{GrantKey, Grants};
use crate::holders::{Held, Holders};
use crate::names::Names;
use crate::namespaces::{CLUSTER, NamespaceNumber, Namespaces};
use crate::policy::{Binding, Identity, Role, Subject};
use crate::question::Hashes;
use crate::roles::{NO_ROLE, RoleSlot, Roles};
use crate::sequence::Sequence;
use crate::slab::Slab;

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
    pub(crate) hashes: Hashes,
    pub(crate) roles: Roles,
    pub(crate) bindings: Slab<BindingSlot>,
    pub(crate) grants: Grants,
    pub(crate) cluster: Scope,
    pub(crate) namespaces: Namespaces,
}

/// What belongs to the cluster, or to one namespace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    /// The numbers of roles, those included that bindings refer to and that do not exist.
    roles: Names<u32>,
    /// The numbers of bindings in the order of their names.
    bindings: Sequence<u32>,
    /// Whom the bindings are for. Service accounts are among the users, by the names that
    /// authentication gives them.
    pub(crate) holders: Holders,
}

/// Why a binding grants nothing. Displays in Kubernetes' words.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum LookupError {
    /// The ClusterRole does not exist.
    #[error("clusterrole.rbac.authorization.k8s.io {} not found", go_compat::quote(.0))]
    ClusterRoleNotFound(String),
    /// The Role does not exist in the namespace of the binding.
    #[error("role.rbac.authorization.k8s.io {} not found", go_compat::quote(.0))]
    RoleNotFound(String),
    /// There is no such kind of role.
    #[error("unsupported role reference kind: {}", go_compat::quote(.0))]
    UnsupportedKind(String),
}

/// Changes.
impl Snapshot {
    /// Adds a role, or replaces the one of its name.
    pub fn put_role(&mut self, role: Role) {
        let Some(number) = self.role_number(&role.metadata.namespace, role.name()) else { return };
        let compiled = CompiledRole::new(&self.hashes, Arc::new(role));
        self.roles.set(&self.hashes, number, Some(compiled));
    }

    /// Takes out a role; an empty namespace means a ClusterRole.
    pub fn remove_role(&mut self, namespace: &str, name: &str) -> Option<Arc<Role>> {
        let number = *self.scope(namespace)?.roles.get(name)?;
        let removed = self.roles.set(&self.hashes, number, None)?;
        self.drop_unused_role(namespace, name, number);
        Some(removed)
    }

    /// Adds a binding, or replaces the one of its name.
    pub fn put_binding(&mut self, binding: Binding) {
        self.remove_binding(binding.namespace(), binding.name());
        let Some(role) = self.role_number_of(&binding) else { return };
        let Some((namespace, _)) = self.scope_mut(binding.namespace()) else { return };
        let slot = BindingSlot::new(binding, role, namespace);
        let binding = Arc::clone(&slot.binding);
        let Some(number) = self.bindings.insert(slot) else { return };
        let (keys, place) = (self.keys(&binding), self.hashes.place(binding.namespace()));
        self.roles.bind(role, place, &keys);
        for key in distinct(&keys) {
            self.grants.insert(GrantKey::new(key, place, role), number);
        }
        let Self { bindings, cluster, namespaces, .. } = self;
        let order = |a: u32, b: u32| order(bindings, a, b);
        let role_of = |number: u32| bindings.get(number).map_or(NO_ROLE, |slot| slot.role);
        let Some((_, scope)) = scope_mut(cluster, namespaces, binding.namespace()) else { return };
        scope.bindings.put(number, |own| order(own, number));
        for key in keys {
            let held = Held { role, binding: number };
            scope.holders.insert(key, held, &role_of, &order);
        }
    }

    /// Takes out a binding; an empty namespace means a ClusterRoleBinding.
    pub fn remove_binding(&mut self, namespace: &str, name: &str) -> Option<Arc<Binding>> {
        let number = self.binding_number(namespace, name)?;
        let BindingSlot { binding, role, .. } = self.bindings.get(number)?.clone();
        let (keys, place) = (self.keys(&binding), self.hashes.place(namespace));
        self.roles.unbind(role, place, &keys);
        for key in distinct(&keys) {
            self.grants.remove(GrantKey::new(key, place, role), number);
        }
        let Self { bindings, cluster, namespaces, .. } = self;
        let order = |a: u32, b: u32| order(bindings, a, b);
        let (_, scope) = scope_mut(cluster, namespaces, namespace)?;
        for key in keys {
            let held = Held { role, binding: number };
            scope.holders.remove(key, held, &order);
        }
        scope.bindings.remove(|own| order(own, number));
        self.bindings.remove(number);
        let role_namespace = match binding.role_ref.kind.as_str() {
            "Role" => namespace,
            _ => "",
        };
        self.drop_unused_role(role_namespace, &binding.role_ref.name, role);
        self.drop_empty_scope(namespace);
        Some(binding)
    }

    /// The keys of those for whom a binding is.
    fn keys(&self, binding: &Binding) -> Vec<u64> {
        let identity = |subject: &Subject| subject.identity(binding.namespace());
        let key = |identity: Identity| match identity {
            Identity::User(name) => self.hashes.user(&name),
            Identity::Group(name) => self.hashes.group(&name),
        };
        binding.subjects.iter().filter_map(identity).map(key).collect()
    }

    /// The number of a role, which gets one if it has none; `None` if there are no more.
    fn role_number(&mut self, namespace: &str, name: &str) -> Option<u32> {
        let known = self.scope(namespace).and_then(|scope| scope.roles.get(name));
        if let Some(number) = known {
            return Some(*number);
        }
        let number = self.roles.add()?;
        let (_, scope) = self.scope_mut(namespace)?;
        Some(*scope.roles.slot(name, || number))
    }

    /// The number of the role that a binding refers to.
    fn role_number_of(&mut self, binding: &Binding) -> Option<u32> {
        let name = &binding.role_ref.name;
        match (binding.role_ref.kind.as_str(), binding.namespace()) {
            ("ClusterRole", _) => self.role_number("", name),
            // Roles have a namespace, so a cluster-wide binding finds none.
            ("Role", "") => Some(NO_ROLE),
            ("Role", namespace) => self.role_number(namespace, name),
            _ => Some(NO_ROLE),
        }
    }

    /// Gives up the number of a role that does not exist and that no binding refers to.
    fn drop_unused_role(&mut self, namespace: &str, name: &str, number: u32) {
        if self.roles.remove_unused(number)
            && let Some((_, scope)) = self.scope_mut(namespace)
        {
            scope.roles.remove(name);
            self.drop_empty_scope(namespace);
        }
    }

    fn drop_empty_scope(&mut self, namespace: &str) {
        let is_empty = |scope: &Scope| scope.roles.is_empty() && scope.bindings.is_empty();
        if self.namespaces.get(namespace).is_some_and(is_empty) {
            self.namespaces.remove(namespace);
        }
    }

    fn scope_mut(&mut self, namespace: &str) -> Option<(NamespaceNumber, &mut Scope)> {
        scope_mut(&mut self.cluster, &mut self.namespaces, namespace)
    }
}

/// Each of some keys once.
fn distinct(keys: &[u64]) -> Vec<u64> {
    let mut keys = keys.to_vec();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// What belongs to a namespace, or to the cluster; `None` if there are too many namespaces.
fn scope_mut<'a>(
    cluster: &'a mut Scope,
    namespaces: &'a mut Namespaces,
    namespace: &str,
) -> Option<(NamespaceNumber, &'a mut Scope)> {
    match namespace {
        "" => Some((CLUSTER, cluster)),
        namespace => namespaces.get_mut(namespace),
    }
}

/// The order of bindings by name.
fn order(bindings: &Slab<BindingSlot>, a: u32, b: u32) -> Ordering {
    match (bindings.get(a), bindings.get(b)) {
        (Some(a), Some(b)) => a.order(b),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

/// Reading.
impl Snapshot {
    /// A role; an empty namespace means a ClusterRole.
    pub fn role(&self, namespace: &str, name: &str) -> Option<&Arc<Role>> {
        let number = *self.scope(namespace)?.roles.get(name)?;
        self.roles.get(number)?.role()
    }

    /// A binding; an empty namespace means a ClusterRoleBinding.
    pub fn binding(&self, namespace: &str, name: &str) -> Option<&Arc<Binding>> {
        let number = self.binding_number(namespace, name)?;
        self.bindings.get(number).map(|slot| &slot.binding)
    }

    /// The bindings of a namespace by name; an empty one means ClusterRoleBindings.
    pub fn bindings(&self, namespace: &str) -> impl Iterator<Item = &Arc<Binding>> {
        self.binding_slots(namespace).map(|slot| &slot.binding)
    }

    /// The ClusterRoles by name.
    pub fn cluster_roles(&self) -> Vec<&Arc<Role>> {
        let mut roles = Vec::new();
        self.cluster.roles.for_each(&mut |_, number| {
            roles.extend(self.roles.get(*number).and_then(RoleSlot::role));
        });
        roles.sort_unstable_by(|a, b| a.name().cmp(b.name()));
        roles
    }

    /// The role that a binding grants.
    ///
    /// # Errors
    /// Returns why there is none.
    pub fn role_of(&self, binding: &Binding) -> Result<&Arc<Role>, LookupError> {
        self.find_role_of(binding).ok_or_else(|| LookupError::of(binding))
    }

    /// The same without saying why, and so without allocating.
    pub(crate) fn find_role_of(&self, binding: &Binding) -> Option<&Arc<Role>> {
        let name = &binding.role_ref.name;
        match (binding.role_ref.kind.as_str(), binding.namespace()) {
            ("ClusterRole", _) => self.role("", name),
            // Roles have a namespace, so a cluster-wide binding finds none.
            ("Role", "") => None,
            ("Role", namespace) => self.role(namespace, name),
            _ => None,
        }
    }

    /// The binding of a number. Reads some bits of it, and of what its reason needs, so that they are
    /// on their way before they are needed.
    #[inline]
    pub(crate) fn fetch_binding(&self, number: u32) -> Option<&BindingSlot> {
        let leaf = self.bindings.leaf(number)?;
        let slot = leaf.get(number as usize)?;
        black_box(Arc::strong_count(leaf) ^ slot.touch());
        Some(slot)
    }

    pub(crate) fn scope(&self, namespace: &str) -> Option<&Scope> {
        match namespace {
            "" => Some(&self.cluster),
            namespace => self.namespaces.get(namespace),
        }
    }

    /// The number of a namespace, or of the cluster, which has no name.
    pub(crate) fn namespace_number(&self, namespace: &str) -> Option<NamespaceNumber> {
        match namespace {
            "" => Some(CLUSTER),
            namespace => self.namespaces.number(namespace),
        }
    }

    /// Visits every namespace, in no particular order.
    pub(crate) fn for_each_namespace<'a>(&'a self, visit: &mut dyn FnMut(&'a str, &'a Scope)) {
        self.namespaces.for_each(visit);
    }

    /// The bindings of a namespace by name, beside their roles.
    pub(crate) fn binding_slots(&self, namespace: &str) -> impl Iterator<Item = &BindingSlot> {
        let numbers = self.scope(namespace).into_iter().flat_map(|scope| scope.bindings.iter());
        numbers.filter_map(|number| self.bindings.get(number))
    }

    fn binding_number(&self, namespace: &str, name: &str) -> Option<u32> {
        let name = SoughtName::new(name);
        let order =
            |number| self.bindings.get(number).map_or(Ordering::Less, |own| own.order_to(&name));
        self.scope(namespace)?.bindings.get(order)
    }
}

impl LookupError {
    /// Why the role of a binding can not be found.
    pub(crate) fn of(binding: &Binding) -> Self {
        let name = binding.role_ref.name.clone();
        match binding.role_ref.kind.as_str() {
            "ClusterRole" => Self::ClusterRoleNotFound(name),
            "Role" => Self::RoleNotFound(name),
            kind => Self::UnsupportedKind(kind.to_owned()),
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
        assert!(snapshot.namespaces.is_empty());
        assert!((0..).take(9).all(|number| snapshot.bindings.get(number).is_none()));
        assert!((2..9).all(|number| snapshot.roles.get(number).is_none()));
        assert!(before.binding("ns1", "b").is_some() && before.role("ns2", "r").is_some());
    }

    #[test]
    fn replacing_a_binding_forgets_its_former_subjects() {
        let mut snapshot = Snapshot::default();
        snapshot.put_binding(binding("", "b", vec![Subject::user("ana"), Subject::user("bob")]));
        snapshot.put_binding(binding("", "b", vec![Subject::user("bob"), Subject::user("eve")]));
        let n_held = |name| snapshot.cluster.holders.bindings(snapshot.hashes.user(name)).len();
        assert_eq!((n_held("ana"), n_held("bob"), n_held("eve")), (0, 1, 1));
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
