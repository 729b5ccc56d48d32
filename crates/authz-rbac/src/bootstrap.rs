//! The default roles and bindings of Kubernetes.

use authz::Namespace;

use crate::policy::{Binding, GROUP, Metadata, PolicyRule, Role};
use crate::reconcile::{
    AUTOUPDATE_ANNOTATION, ReconcileExtrasPolicy, ReconcileOperation, reconcile_binding,
    reconcile_role,
};
use crate::snapshot::Snapshot;

/// The default roles and bindings of Kubernetes as JSON: `clusterRoles`, `clusterRoleBindings`, `roles` and
/// `roleBindings` are lists of objects; `aggregatedClusterRoles` lists some roles with the rules that aggregation
/// gives them. This crate holds the text only; the crate `manifests` decodes it.
pub const BOOTSTRAP_POLICY_JSON: &str = include_str!("../data/bootstrap-policy.json");

/// Roles that became aggregated in a later version of Kubernetes, and the role that takes over the rules
/// that an administrator added to each.
const ROLES_AGGREGATED_IN_LATER_VERSIONS: [(&str, &str); 3] = [
    ("admin", "system:aggregate-to-admin"),
    ("edit", "system:aggregate-to-edit"),
    ("view", "system:aggregate-to-view"),
];

/// A binding that a later version of Kubernetes split: the original one, and the one split off.
const SPLIT_BINDING: (&str, &str) = ("system:discovery", "system:public-info-viewer");

/// The default roles and bindings as values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BootstrapPolicy {
    /// The default ClusterRoles and Roles.
    pub roles: Vec<Role>,
    /// The default ClusterRoleBindings and RoleBindings.
    pub bindings: Vec<Binding>,
}

/// One write of the reconciliation, in terms of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BootstrapPolicyWrite {
    /// Create the role, or replace the role with the same name.
    PutRole(Role),
    /// Create the binding, or replace the binding with the same name.
    PutBinding(Binding),
    /// Delete the binding of this name, then create it.
    RecreateBinding(Binding),
}

/// Reconciles a snapshot with the default policy and returns the writes, in order.
///
/// 1. The rules of a role that is to become aggregated move to the role that supplies it, so that
///    additions of an administrator stay. This step ends at the first role that is aggregated already.
/// 2. The binding that is split off gets the subjects of the original one.
/// 3. Every default object is reconciled.
/// 4. Aggregation computes the rules of aggregated roles.
pub fn reconcile_bootstrap_policy(
    snapshot: &mut Snapshot,
    policy: &BootstrapPolicy,
    extras: ReconcileExtrasPolicy,
) -> Vec<BootstrapPolicyWrite> {
    let mut changes = move_rules_to_aggregated_source_roles(snapshot);
    changes.extend(split_discovery_binding(snapshot, policy));
    apply_bootstrap_writes(snapshot, &changes);
    for expected in &policy.roles {
        let existing = snapshot.role(expected.namespace(), expected.name());
        match reconcile_role(expected, existing.map(AsRef::as_ref), extras) {
            ReconcileOperation::Unchanged | ReconcileOperation::Protected => {}
            ReconcileOperation::Create(role)
            | ReconcileOperation::Update(role)
            | ReconcileOperation::Recreate(role) => {
                snapshot.put_role(role.clone());
                changes.push(BootstrapPolicyWrite::PutRole(role));
            }
        }
    }
    for expected in &policy.bindings {
        let existing = snapshot.binding_by_name(expected.namespace(), expected.name());
        let change = match reconcile_binding(expected, existing.map(AsRef::as_ref), extras) {
            ReconcileOperation::Unchanged | ReconcileOperation::Protected => continue,
            ReconcileOperation::Create(binding) | ReconcileOperation::Update(binding) => {
                BootstrapPolicyWrite::PutBinding(binding)
            }
            ReconcileOperation::Recreate(binding) => BootstrapPolicyWrite::RecreateBinding(binding),
        };
        apply_bootstrap_writes(snapshot, std::slice::from_ref(&change));
        changes.push(change);
    }
    let aggregated = snapshot.aggregate_roles();
    changes
        .extend(aggregated.iter().map(|role| BootstrapPolicyWrite::PutRole(role.as_ref().clone())));
    changes
}

fn apply_bootstrap_writes(snapshot: &mut Snapshot, changes: &[BootstrapPolicyWrite]) {
    for change in changes {
        match change {
            BootstrapPolicyWrite::PutRole(role) => snapshot.put_role(role.clone()),
            BootstrapPolicyWrite::PutBinding(binding)
            | BootstrapPolicyWrite::RecreateBinding(binding) => {
                snapshot.put_binding(binding.clone());
            }
        }
    }
}

fn move_rules_to_aggregated_source_roles(snapshot: &Snapshot) -> Vec<BootstrapPolicyWrite> {
    let mut changes = Vec::new();
    for (name, supplier) in ROLES_AGGREGATED_IN_LATER_VERSIONS {
        let Some(role) = snapshot.role(Namespace::CLUSTER_SCOPE, name) else { continue };
        if snapshot.role(Namespace::CLUSTER_SCOPE, supplier).is_some() {
            continue;
        }
        if role.aggregation_rule.is_some() {
            break;
        }
        let metadata = Metadata { name: supplier.to_owned(), ..role.metadata.clone() };
        changes.push(BootstrapPolicyWrite::PutRole(Role { metadata, ..role.as_ref().clone() }));
    }
    changes
}

fn split_discovery_binding(
    snapshot: &Snapshot,
    policy: &BootstrapPolicy,
) -> Option<BootstrapPolicyWrite> {
    let (first, second) = SPLIT_BINDING;
    let existing = snapshot.binding_by_name(Namespace::CLUSTER_SCOPE, first)?;
    if snapshot.binding_by_name(Namespace::CLUSTER_SCOPE, second).is_some() {
        return None;
    }
    let is_second =
        |binding: &&Binding| binding.namespace().is_cluster_scope() && binding.name() == second;
    let expected = policy.bindings.iter().find(is_second)?;
    let metadata = Metadata { name: second.to_owned(), ..existing.metadata.clone() };
    let subjects = existing.subjects.clone();
    Some(BootstrapPolicyWrite::PutBinding(Binding { metadata, subjects, ..expected.clone() }))
}

/// The role that Portcullis adds to those of Kubernetes: administrators of a namespace may list who can
/// perform an action there.
pub fn resource_access_reviewer_role() -> Role {
    let rule = |group: &str, resources: &[&str]| PolicyRule {
        verbs: vec!["create".to_owned()],
        api_groups: vec![group.to_owned()],
        resources: resources.iter().map(|&resource| resource.to_owned()).collect(),
        ..PolicyRule::default()
    };
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    Role {
        metadata: Metadata {
            name: "portcullis:resource-access-reviewer".to_owned(),
            labels: [
                pair("kubernetes.io/bootstrapping", "rbac-defaults"),
                pair(&format!("{GROUP}/aggregate-to-admin"), "true"),
            ]
            .into(),
            annotations: [pair(AUTOUPDATE_ANNOTATION, "true")].into(),
            ..Metadata::default()
        },
        rules: vec![
            rule(
                "authorization.portcullis.io",
                &["localresourceaccessreviews", "resourceaccessreviews"],
            ),
            rule("", &["resourceaccessreviews"]),
        ],
        aggregation_rule: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{AggregationRule, RoleRef, Subject};

    fn role(name: &str, verbs: &[&str]) -> Role {
        let rule = PolicyRule {
            verbs: verbs.iter().map(|&verb| verb.to_owned()).collect(),
            api_groups: vec![String::new()],
            resources: vec!["pods".to_owned()],
            ..PolicyRule::default()
        };
        let metadata = Metadata { name: name.to_owned(), ..Metadata::default() };
        Role { metadata, rules: vec![rule], aggregation_rule: None }
    }

    fn binding(name: &str, users: &[&str]) -> Binding {
        Binding {
            metadata: Metadata { name: name.to_owned(), ..Metadata::default() },
            role_ref: RoleRef {
                kind: "ClusterRole".into(),
                name: name.into(),
                ..RoleRef::default()
            },
            subjects: users.iter().map(|user| Subject::user(user)).collect(),
        }
    }

    #[test]
    fn added_rules_move_to_the_source_role() {
        let mut snapshot = Snapshot::default();
        snapshot.put_role(role("edit", &["own"]));
        let changes = reconcile_bootstrap_policy(
            &mut snapshot,
            &BootstrapPolicy::default(),
            ReconcileExtrasPolicy::Keep,
        );
        assert_eq!(
            changes,
            [BootstrapPolicyWrite::PutRole(role("system:aggregate-to-edit", &["own"]))]
        );
        assert!(
            reconcile_bootstrap_policy(
                &mut snapshot,
                &BootstrapPolicy::default(),
                ReconcileExtrasPolicy::Keep
            )
            .is_empty()
        );
    }

    #[test]
    fn moving_rules_stops_at_an_aggregated_role() {
        let mut snapshot = Snapshot::default();
        let moved = Role {
            aggregation_rule: Some(AggregationRule::default()),
            rules: Vec::new(),
            ..role("admin", &[])
        };
        snapshot.put_role(moved);
        snapshot.put_role(role("edit", &["own"]));
        assert!(
            reconcile_bootstrap_policy(
                &mut snapshot,
                &BootstrapPolicy::default(),
                ReconcileExtrasPolicy::Keep
            )
            .is_empty()
        );
    }

    #[test]
    fn both_halves_of_a_split_binding_have_its_subjects() {
        let mut snapshot = Snapshot::default();
        snapshot.put_binding(binding("system:discovery", &["ana"]));
        let expected = binding("system:public-info-viewer", &["everybody"]);
        let policy = BootstrapPolicy { bindings: vec![expected], ..BootstrapPolicy::default() };
        reconcile_bootstrap_policy(&mut snapshot, &policy, ReconcileExtrasPolicy::Keep);
        let split = snapshot
            .binding_by_name(Namespace::CLUSTER_SCOPE, "system:public-info-viewer")
            .unwrap();
        assert_eq!(split.subjects, [Subject::user("ana"), Subject::user("everybody")]);
        assert_eq!(split.role_ref.name, "system:public-info-viewer");
    }

    #[test]
    fn a_binding_to_another_role_is_recreated() {
        let mut snapshot = Snapshot::default();
        let other = Binding { role_ref: RoleRef::default(), ..binding("b", &["ana"]) };
        snapshot.put_binding(other);
        let expected = binding("b", &["bob"]);
        let policy =
            BootstrapPolicy { bindings: vec![expected.clone()], ..BootstrapPolicy::default() };
        let changes =
            reconcile_bootstrap_policy(&mut snapshot, &policy, ReconcileExtrasPolicy::Keep);
        assert_eq!(changes, [BootstrapPolicyWrite::RecreateBinding(expected.clone())]);
        assert_eq!(
            snapshot.binding_by_name(Namespace::CLUSTER_SCOPE, "b").map(AsRef::as_ref),
            Some(&expected)
        );
    }
}
