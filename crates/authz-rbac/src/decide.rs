//! Deciding: does some binding grant the request?

use std::collections::HashSet;
use std::sync::Arc;

use authz::{
    Attributes, Decision, Namespace, RbacGrant, RbacGrantSource, RbacSubject, Reason,
    TraceRecorder, User,
};
use foldhash::fast::RandomState;

use crate::compiled_role::CompiledRequest;
use crate::explain;
use crate::index::{CLUSTER_SCOPE, HeldBinding, RoleId, ScopeId, bindings_in_scope, chunk_by_role};
use crate::policy::{Binding, Principal, Subject};
use crate::snapshot::{RoleLookupError, Snapshot};

/// The result of searching for a binding that grants a request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum GrantSearchResult<'s> {
    /// This binding grants the request.
    Granted(Grant<'s>),
    /// No binding grants the request.
    NotGranted {
        /// Whether the role of some binding of the user does not exist.
        has_dangling_bindings: bool,
    },
}

impl Snapshot {
    /// Decides a request. Never denies: a request that no binding grants is left to the next
    /// authorizer.
    ///
    /// 1. Only bindings that name the user or a group of the user count: ClusterRoleBindings, and
    ///    RoleBindings in the namespace of the request.
    /// 2. ClusterRoleBindings come before RoleBindings; among each, the first by name that grants the
    ///    request decides.
    /// 3. The reason names the first subject of that binding that matches the user.
    /// 4. A binding whose role does not exist grants nothing. If no other binding grants the request,
    ///    the reason says which roles do not exist.
    ///
    /// Allowing allocates nothing unless the recorder is on.
    pub fn authorize(
        &self,
        attributes: &Attributes<'_>,
        mut recorder: TraceRecorder<'_>,
    ) -> Decision {
        let Some(user) = attributes.user else { return Decision::no_opinion("") };
        let search = match recorder.is_recording() {
            true => explain::find_grant_and_record_trace(self, user, attributes, &mut recorder),
            false => self.find_grant(user, attributes),
        };
        match search {
            GrantSearchResult::Granted(Grant { binding, subject_idx }) => {
                let bindings: Arc<Binding> = Arc::clone(binding);
                Decision::allow(Reason::RbacGrant { bindings, grant_idx: subject_idx })
            }
            GrantSearchResult::NotGranted { has_dangling_bindings: false } => {
                Decision::no_opinion("")
            }
            GrantSearchResult::NotGranted { has_dangling_bindings: true } => {
                let errors = self.role_lookup_errors(user, request_namespace(attributes));
                if errors.is_empty() {
                    // No error was found, so the dangling bindings belong to other names with the same hash.
                    return Decision::no_opinion("");
                }
                let messages: Vec<String> = errors.iter().map(ToString::to_string).collect();
                Decision::no_opinion(format!(
                    "RBAC: {}",
                    field_errors::aggregate_messages(&messages)
                ))
            }
        }
    }

    fn find_grant(&self, user: &User, attributes: &Attributes<'_>) -> GrantSearchResult<'_> {
        let mut roles = RoleChecker {
            snapshot: self,
            request: CompiledRequest::new(&self.hash_builder, attributes),
            slow_denying_roles: HashSet::default(),
            has_dangling_bindings: false,
        };
        let namespace =
            self.namespace_scope_objects(request_namespace(attributes)).map(|scope| scope.id);
        match roles.find_first_grant(user, namespace) {
            Some(grant) => GrantSearchResult::Granted(grant),
            None => {
                GrantSearchResult::NotGranted { has_dangling_bindings: roles.has_dangling_bindings }
            }
        }
    }

    /// The errors of the bindings of a user whose roles do not exist.
    fn role_lookup_errors(&self, user: &User, namespace: Namespace<'_>) -> Vec<RoleLookupError> {
        let bindings = self.bindings_of_user(user, namespace).into_iter();
        let broken_bindings = bindings.filter(|binding| binding.role.is_none());
        broken_bindings.map(|broken| RoleLookupError::new(broken.binding)).collect()
    }
}

/// A binding that grants a request, and the index of the subject that matches the user.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grant<'s> {
    pub(crate) binding: &'s Arc<Binding>,
    pub(crate) subject_idx: usize,
}

impl Grant<'_> {
    fn binding_sort_key(&self) -> (&str, usize) {
        (self.binding.name(), self.subject_idx)
    }
}

/// Checks the roles of a user against one request.
struct RoleChecker<'s, 'a> {
    snapshot: &'s Snapshot,
    request: CompiledRequest<'a>,
    /// Roles that take long to check and do not allow the request. Several groups of a user may hold
    /// the same role, and a slow one is checked once.
    slow_denying_roles: HashSet<RoleId, RandomState>,
    has_dangling_bindings: bool,
}

impl<'s> RoleChecker<'s, '_> {
    /// Finds the first ClusterRoleBinding by name that grants the request to the user, or else the first RoleBinding of
    /// the namespace, and the first subject of the binding that matches the user.
    ///
    /// The index sorts the bindings of a user or group to one role by name, so only the first binding of
    /// each role is compared. The first binding of all is also the first for each of its subjects.
    fn find_first_grant(&mut self, user: &User, namespace: Option<ScopeId>) -> Option<Grant<'s>> {
        let (mut in_cluster, mut in_namespace) = (None, None);
        self.snapshot.subjects.for_each_principal(user, |principal, bindings| {
            let in_cluster_scope = bindings_in_scope(bindings, CLUSTER_SCOPE);
            self.replace_if_earlier_grant(principal, in_cluster_scope, &mut in_cluster);
            if let (Some(namespace), None) = (namespace, in_cluster) {
                let in_namespace_scope = bindings_in_scope(bindings, namespace);
                self.replace_if_earlier_grant(principal, in_namespace_scope, &mut in_namespace);
            }
        });
        in_cluster.or(in_namespace)
    }

    /// Replaces `first_grant` if a binding of a principal in one scope grants the request and comes
    /// before it.
    fn replace_if_earlier_grant(
        &mut self,
        principal: Principal<'_>,
        bindings: &[HeldBinding],
        first_grant: &mut Option<Grant<'s>>,
    ) {
        for bindings_of_role in chunk_by_role(bindings) {
            if bindings_of_role.first().is_none_or(|binding| !self.allows(binding.role_id)) {
                continue;
            }
            let mut grants = bindings_of_role
                .iter()
                .filter_map(|binding| self.snapshot.resolve_grant(binding, principal));
            if let Some(grant) = grants.next()
                && first_grant
                    .is_none_or(|first| grant.binding_sort_key() < first.binding_sort_key())
            {
                *first_grant = Some(grant);
            }
        }
    }

    fn allows(&mut self, role: RoleId) -> bool {
        let entry = self.snapshot.role_entry(role);
        if entry.is_some_and(|entry| {
            entry.target_bloom_filter & self.request.target_bloom_filter == 0
                && entry.compiled_role.is_some()
        }) {
            return false;
        }
        let Some(compiled) = entry.and_then(|entry| entry.compiled_role.as_deref()) else {
            self.has_dangling_bindings = true;
            return false;
        };
        if !compiled.is_slow_to_check() {
            return compiled.allows(&self.request);
        }
        if self.slow_denying_roles.contains(&role) {
            return false;
        }
        let is_allowed = compiled.allows(&self.request);
        if !is_allowed {
            self.slow_denying_roles.insert(role);
        }
        is_allowed
    }
}

/// The namespace whose RoleBindings apply to a request. A path has the cluster scope.
pub(crate) fn request_namespace<'a>(attributes: &Attributes<'a>) -> Namespace<'a> {
    attributes.resource().map_or(Namespace::CLUSTER_SCOPE, |resource| resource.namespace)
}

/// The index of a grant is the position of the subject in the binding.
impl RbacGrantSource for Binding {
    fn grant_at_index(&self, grant_idx: usize) -> Option<RbacGrant<'_>> {
        let namespace = self.namespace();
        let subject = self.subjects.get(grant_idx);
        Some(RbacGrant {
            binding_namespace: namespace,
            binding_name: self.name(),
            role_kind: &self.role_ref.kind,
            role_name: &self.role_ref.name,
            subject: subject.map(|subject| to_rbac_subject(subject, namespace)),
            rule_idx: None,
        })
    }
}

/// Describes a subject of a binding in `namespace` in Kubernetes' words.
pub(crate) fn describe_subject(subject: &Subject, namespace: Namespace<'_>) -> String {
    to_rbac_subject(subject, namespace).to_string()
}

fn to_rbac_subject<'a>(subject: &'a Subject, binding_namespace: Namespace<'a>) -> RbacSubject<'a> {
    let namespace = subject.service_account_namespace(binding_namespace);
    RbacSubject { kind: &subject.kind, name: &subject.name, namespace }
}

#[cfg(test)]
mod tests;
