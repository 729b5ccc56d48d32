//! All roles and bindings at one moment.

use std::sync::Arc;

use authz::{Namespace, User};
use foldhash::fast::RandomState;
use persistent::{Map, Slab};

use crate::compiled_role::CompiledRole;
use crate::decide::Grant;
use crate::index::{
    BindingId, BindingIds, BindingNameKey, BindingSlab, CLUSTER_SCOPE, HeldBinding, RoleEntry,
    RoleId, RoleUsage, ScopeId, ScopeObjects, SubjectIndex, UNRESOLVABLE_ROLE, bindings_in_scope,
};
use crate::policy::{Binding, Principal, Role};

/// All roles and bindings at one moment, indexed by user and group.
///
/// A clone shares everything with its original and costs a few pointers. A writer clones the current
/// snapshot, changes the clone and publishes it; readers keep the snapshot that they have and need no
/// lock. A change copies the path to the changed object and to its subjects, and nothing else.
///
/// ```
/// use authz::{Attributes, Namespace, TraceRecorder, Resource, Target, User, Verb, Verdict};
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
/// let pods = Resource { resource: "pods", namespace: Namespace::new("team-a"), ..Resource::default() };
/// let request = Attributes { user: Some(&ana), verb: Verb::GET, target: Target::Resource(pods) };
/// assert_eq!(snapshot.authorize(&request, TraceRecorder::disabled_recorder()).verdict, Verdict::Allow);
/// ```
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The seed of the hashes in compiled roles.
    pub(crate) hash_builder: RandomState,
    /// The roles by number. INVARIANT: the scope of a role maps the name of the role to this number.
    roles: Slab<RoleEntry>,
    bindings: BindingSlab,
    pub(crate) subjects: SubjectIndex,
    cluster_scope_objects: ScopeObjects,
    /// INVARIANT: no scope is empty.
    scope_objects_by_namespace: Map<Arc<str>, Arc<ScopeObjects>>,
    /// The numbers of namespaces, each reduced by one, because number 0 belongs to the cluster scope.
    namespace_id_allocator: Slab<()>,
}

/// A binding that applies to a user.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UserBinding<'s> {
    pub(crate) binding: &'s Arc<Binding>,
    /// The index of the first subject that matches the user.
    pub(crate) subject_idx: usize,
    /// The compiled role; `None` if the role does not exist.
    pub(crate) role: Option<&'s CompiledRole>,
}

/// The reason why the role of a binding cannot be found. Displays in Kubernetes' words.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum RoleLookupError {
    /// The ClusterRole does not exist.
    #[error("clusterrole.rbac.authorization.k8s.io {} not found", go_compat::quote(.0))]
    ClusterRoleNotFound(String),
    /// The Role does not exist in the namespace of the binding.
    #[error("role.rbac.authorization.k8s.io {} not found", go_compat::quote(.0))]
    RoleNotFound(String),
    /// The kind of the reference is neither Role nor ClusterRole.
    #[error("unsupported role reference kind: {}", go_compat::quote(.0))]
    UnsupportedKind(String),
}

/// Functions that change one role or one binding.
impl Snapshot {
    /// Adds a role, or replaces the role with the same name.
    pub fn put_role(&mut self, role: Role) {
        let id = self.get_or_insert_role_usage(role.namespace(), role.name()).id;
        let compiled = Arc::new(CompiledRole::new(&self.hash_builder, Arc::new(role)));
        if let Some(entry) = self.roles.get_mut(id.0) {
            *entry = RoleEntry {
                target_bloom_filter: compiled.target_bloom_filter,
                compiled_role: Some(compiled),
            };
        }
    }

    /// Removes a Role of a namespace, or a ClusterRole of the cluster scope.
    pub fn remove_role(&mut self, namespace: Namespace<'_>, name: &str) -> Option<Arc<Role>> {
        let id = self.scope_objects(namespace)?.roles.get(name)?.id;
        let removed = std::mem::take(self.roles.get_mut(id.0)?).compiled_role;
        self.drop_role_id_if_unused(namespace, name);
        removed.map(|compiled| Arc::clone(&compiled.role))
    }

    /// Adds a binding, or replaces the binding with the same name.
    pub fn put_binding(&mut self, binding: Binding) {
        self.remove_binding(binding.namespace(), binding.name());
        let role = match referenced_role_namespace(&binding) {
            Some(namespace) => {
                let get_or_insert_role_usage =
                    self.get_or_insert_role_usage(namespace, &binding.role_ref.name);
                get_or_insert_role_usage.n_bindings += 1;
                get_or_insert_role_usage.id
            }
            None => UNRESOLVABLE_ROLE,
        };
        let binding = Arc::new(binding);
        let id = BindingId(self.bindings.insert(Arc::clone(&binding)));
        let scope = self.scope_objects_mut(binding.namespace());
        let bound = BindingIds { scope_id: scope.id, binding_id: id, role_id: role };
        scope.bindings.insert(BindingNameKey(Arc::clone(&binding)), bound);
        self.subjects.add_binding(&binding, bound, &self.bindings);
    }

    /// Removes a RoleBinding of a namespace, or a ClusterRoleBinding of the cluster scope.
    pub fn remove_binding(&mut self, namespace: Namespace<'_>, name: &str) -> Option<Arc<Binding>> {
        let bound = *self.scope_objects(namespace)?.bindings.get(name)?;
        let binding = Arc::clone(self.bindings.get(bound.binding_id.0)?);
        self.subjects.remove_binding(&binding, bound, &self.bindings);
        self.scope_objects_mut(namespace).bindings.remove(name);
        self.bindings.remove(bound.binding_id.0);
        if let Some(role_namespace) = referenced_role_namespace(&binding) {
            self.get_or_insert_role_usage(role_namespace, &binding.role_ref.name).n_bindings -= 1;
            self.drop_role_id_if_unused(role_namespace, &binding.role_ref.name);
        }
        self.drop_scope_if_empty(namespace);
        Some(binding)
    }

    /// Returns the number of a role and the number of its bindings. A role without a number gets one.
    fn get_or_insert_role_usage(&mut self, namespace: Namespace<'_>, name: &str) -> &mut RoleUsage {
        let known_id =
            self.scope_objects(namespace).and_then(|scope| scope.roles.get(name)).map(|own| own.id);
        let id = known_id.unwrap_or_else(|| RoleId(self.roles.insert(RoleEntry::default())));
        let roles = &mut self.scope_objects_mut(namespace).roles;
        roles.get_or_insert_with(name.into(), || RoleUsage { id, n_bindings: 0 })
    }

    /// Frees the number of a role that does not exist and to which no binding refers.
    fn drop_role_id_if_unused(&mut self, namespace: Namespace<'_>, name: &str) {
        let Some(scope) = self.scope_objects(namespace) else { return };
        let Some(RoleUsage { id, n_bindings: 0 }) = scope.roles.get(name).copied() else { return };
        if self.compiled_role(id).is_none() {
            self.roles.remove(id.0);
            self.scope_objects_mut(namespace).roles.remove(name);
            self.drop_scope_if_empty(namespace);
        }
    }

    fn scope_objects_mut(&mut self, namespace: Namespace<'_>) -> &mut ScopeObjects {
        let Some(namespace) = namespace.name() else { return &mut self.cluster_scope_objects };
        let Self {
            scope_objects_by_namespace: namespaces,
            namespace_id_allocator: namespace_ids,
            ..
        } = self;
        let scope = namespaces.get_or_insert_with(namespace.into(), || {
            Arc::new(ScopeObjects::new(ScopeId(namespace_ids.insert(()) + 1)))
        });
        Arc::make_mut(scope)
    }

    fn drop_scope_if_empty(&mut self, namespace: Namespace<'_>) {
        if let Some(namespace) = namespace.name()
            && let Some(scope) = self.scope_objects_by_namespace.get(namespace)
            && scope.is_empty()
        {
            self.namespace_id_allocator.remove(scope.id.0 - 1);
            self.scope_objects_by_namespace.remove(namespace);
        }
    }
}

/// Lookups of roles, bindings and scopes.
impl Snapshot {
    /// Returns a Role of a namespace, or a ClusterRole of the cluster scope.
    pub fn role(&self, namespace: Namespace<'_>, name: &str) -> Option<&Arc<Role>> {
        let get_or_insert_role_usage = self.scope_objects(namespace)?.roles.get(name)?;
        self.compiled_role(get_or_insert_role_usage.id).map(|compiled| &compiled.role)
    }

    /// Returns a RoleBinding of a namespace, or a ClusterRoleBinding of the cluster scope.
    pub fn binding_by_name(&self, namespace: Namespace<'_>, name: &str) -> Option<&Arc<Binding>> {
        let bound = self.scope_objects(namespace)?.bindings.get(name)?;
        self.bindings.get(bound.binding_id.0)
    }

    /// Returns all ClusterRoles in the order of their names.
    pub fn cluster_roles(&self) -> Vec<&Arc<Role>> {
        let compiled =
            self.cluster_scope_objects.roles.values().filter_map(|own| self.compiled_role(own.id));
        let mut roles: Vec<&Arc<Role>> = compiled.map(|compiled| &compiled.role).collect();
        roles.sort_unstable_by(|a, b| a.name().cmp(b.name()));
        roles
    }

    /// Returns the role to which a binding refers.
    ///
    /// # Errors
    /// Fails if there is no such role.
    pub fn role_of_binding(&self, binding: &Binding) -> Result<&Arc<Role>, RoleLookupError> {
        let role = referenced_role_namespace(binding)
            .and_then(|namespace| self.role(namespace, &binding.role_ref.name));
        role.ok_or_else(|| RoleLookupError::new(binding))
    }

    pub(crate) fn compiled_role(&self, id: RoleId) -> Option<&CompiledRole> {
        self.roles.get(id.0)?.compiled_role.as_deref()
    }

    pub(crate) fn role_entry(&self, id: RoleId) -> Option<&RoleEntry> {
        self.roles.get(id.0)
    }

    /// Returns a binding of a principal with the subject that matches the principal. Returns `None` if the binding
    /// belongs to another name with the same hash.
    pub(crate) fn resolve_grant(
        &self,
        held: &HeldBinding,
        principal: Principal<'_>,
    ) -> Option<Grant<'_>> {
        let (binding, subject_idx) =
            (self.bindings.get(held.binding_id.0)?, held.subject_idx as usize);
        let subject = binding.subjects.get(subject_idx)?;
        subject
            .matches_principal(principal, binding.namespace())
            .then_some(Grant { binding, subject_idx })
    }

    /// The objects of a namespace, or those of the cluster scope.
    pub(crate) fn scope_objects(&self, namespace: Namespace<'_>) -> Option<&ScopeObjects> {
        match namespace.name() {
            None => Some(&self.cluster_scope_objects),
            Some(name) => self.scope_objects_by_namespace.get(name).map(AsRef::as_ref),
        }
    }

    /// The objects of a namespace; `None` for the cluster scope.
    pub(crate) fn namespace_scope_objects(
        &self,
        namespace: Namespace<'_>,
    ) -> Option<&ScopeObjects> {
        self.scope_objects_by_namespace.get(namespace.name()?).map(AsRef::as_ref)
    }

    /// The scopes whose bindings apply to a request in a namespace, in the order of the search.
    pub(crate) fn scopes_for_namespace(
        &self,
        namespace: Namespace<'_>,
    ) -> impl Iterator<Item = &ScopeObjects> {
        [&self.cluster_scope_objects].into_iter().chain(self.namespace_scope_objects(namespace))
    }

    /// All namespaces that have a role or a binding, in unspecified order.
    pub(crate) fn namespaces(&self) -> impl Iterator<Item = Namespace<'_>> {
        self.scope_objects_by_namespace.iter().map(|(name, _)| Namespace::new(name))
    }

    /// The bindings that apply to a user in a namespace: ClusterRoleBindings before RoleBindings, both
    /// in the order of their names.
    pub(crate) fn bindings_of_user(
        &self,
        user: &User,
        namespace: Namespace<'_>,
    ) -> Vec<UserBinding<'_>> {
        self.scopes_for_namespace(namespace)
            .flat_map(|scope| self.bindings_in_scope(user, scope))
            .collect()
    }

    /// The bindings of one scope that apply to a user, in the order of their names.
    pub(crate) fn bindings_in_scope<'s>(
        &'s self,
        user: &User,
        scope: &'s ScopeObjects,
    ) -> Vec<UserBinding<'s>> {
        let mut held_bindings: Vec<HeldBinding> = Vec::new();
        self.subjects.for_each_principal(user, |principal, all| {
            let bindings_in_scope = bindings_in_scope(all, scope.id).iter();
            held_bindings.extend(
                bindings_in_scope.filter(|own| self.resolve_grant(own, principal).is_some()),
            );
        });
        held_bindings.sort_unstable_by_key(|held| (held.binding_id, held.subject_idx));
        held_bindings.dedup_by_key(|held| held.binding_id);
        let resolve = |held: HeldBinding| {
            Some(UserBinding {
                binding: self.bindings.get(held.binding_id.0)?,
                subject_idx: held.subject_idx as usize,
                role: self.compiled_role(held.role_id),
            })
        };
        let mut bindings: Vec<UserBinding<'_>> =
            held_bindings.into_iter().filter_map(resolve).collect();
        bindings.sort_unstable_by(|a, b| a.binding.name().cmp(b.binding.name()));
        bindings
    }
}

/// The namespace of the role to which a binding refers, the cluster scope for a ClusterRole; `None` if the
/// reference cannot name a role.
fn referenced_role_namespace(binding: &Binding) -> Option<Namespace<'_>> {
    match binding.role_ref.kind.as_str() {
        "ClusterRole" => Some(Namespace::CLUSTER_SCOPE),
        // A Role always has a namespace, so a ClusterRoleBinding cannot refer to one.
        "Role" => Some(binding.namespace()).filter(|namespace| !namespace.is_cluster_scope()),
        _ => None,
    }
}

impl Default for Snapshot {
    fn default() -> Self {
        Self {
            hash_builder: RandomState::default(),
            roles: Slab::default(),
            bindings: Slab::default(),
            subjects: SubjectIndex::default(),
            cluster_scope_objects: ScopeObjects::new(CLUSTER_SCOPE),
            scope_objects_by_namespace: Map::default(),
            namespace_id_allocator: Slab::default(),
        }
    }
}

impl RoleLookupError {
    /// The error for a binding whose role does not exist.
    pub(crate) fn new(binding: &Binding) -> Self {
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
    fn removing_all_objects_leaves_an_empty_index() {
        let mut snapshot = Snapshot::default();
        let twice = vec![Subject::user("ana"), Subject::group("dev"), Subject::user("ana")];
        snapshot.put_binding(binding("ns1", "b", twice));
        let role = Role {
            metadata: Metadata { namespace: "ns2".into(), name: "r".into(), ..Metadata::default() },
            ..Role::default()
        };
        snapshot.put_role(role);
        let before = snapshot.clone();
        assert!(snapshot.remove_binding(Namespace::new("ns1"), "other").is_none());
        assert!(snapshot.remove_binding(Namespace::new("ns1"), "b").is_some());
        assert!(snapshot.remove_role(Namespace::new("ns2"), "r").is_some());
        assert!(snapshot.remove_role(Namespace::new("ns2"), "r").is_none());
        assert!(snapshot.scope_objects_by_namespace.is_empty());
        assert!(snapshot.bindings.is_empty() && snapshot.roles.is_empty());
        assert!(
            before.binding_by_name(Namespace::new("ns1"), "b").is_some()
                && before.role(Namespace::new("ns2"), "r").is_some()
        );
    }

    #[test]
    fn replacing_a_binding_forgets_its_former_subjects() {
        let mut snapshot = Snapshot::default();
        snapshot.put_binding(binding("", "b", vec![Subject::user("ana"), Subject::user("bob")]));
        snapshot.put_binding(binding("", "b", vec![Subject::user("bob"), Subject::user("eve")]));
        let n_held_rules = |name: &str| {
            let user = User { name: name.to_owned(), ..User::default() };
            snapshot.bindings_of_user(&user, Namespace::CLUSTER_SCOPE).len()
        };
        assert_eq!((n_held_rules("ana"), n_held_rules("bob"), n_held_rules("eve")), (0, 1, 1));
    }

    #[test]
    fn a_missing_role_is_named_in_the_words_of_kubernetes() {
        let snapshot = Snapshot::default();
        let mut dangling = binding("ns1", "b", Vec::new());
        let message =
            |binding: &Binding| snapshot.role_of_binding(binding).map(|_| ()).unwrap_err();
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
