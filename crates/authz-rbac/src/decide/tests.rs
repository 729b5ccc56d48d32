//! The index, the explanation and an exhaustive search give the same answers, also when hashes of names
//! collide.

use authz::{Attributes, Namespace, Resource, Target, Trace, TraceRecorder, User, Verb};
use proptest::prelude::*;

use super::*;
use crate::policy::{Metadata, PolicyRule, Role, RoleRef};

const VERBS: [&str; 3] = ["get", "list", "frobnicate"];
const RESOURCES: [&str; 4] = ["pods", "pods/log", "jobs", "*"];

fn metadata(namespace: &str, name: String) -> Metadata {
    Metadata { namespace: namespace.to_owned(), name, ..Metadata::default() }
}

fn role(name: usize, namespace: &str, (verb, resource): (usize, usize)) -> Role {
    let rule = PolicyRule {
        verbs: vec![VERBS[verb].to_owned()],
        api_groups: vec![String::new()],
        resources: vec![RESOURCES[resource].to_owned()],
        ..PolicyRule::default()
    };
    let metadata = metadata(namespace, format!("role-{name}"));
    Role { metadata, rules: vec![rule], aggregation_rule: None }
}

/// Makes a binding. Some bindings refer to roles that do not exist or to a kind that is none.
fn binding(name: usize, namespace: &str, role: usize, subjects: &[(bool, usize)]) -> Binding {
    let kind = ["ClusterRole", "Role", "ClusterRole", "Other"][role % 4];
    let subject = |&(is_group, name): &(bool, usize)| match is_group {
        true => Subject::group(&format!("group-{name}")),
        false => Subject::user(&format!("user-{name}")),
    };
    Binding {
        metadata: metadata(namespace, format!("a-binding-with-a-rather-long-name-{name}")),
        role_ref: RoleRef {
            kind: kind.to_owned(),
            name: format!("role-{role}"),
            ..RoleRef::default()
        },
        subjects: subjects.iter().map(subject).collect(),
    }
}

/// The reason of an exhaustive search: every binding in the order of names.
fn exhaustive_reason(
    snapshot: &Snapshot,
    attributes: &Attributes<'_>,
    namespace: Namespace<'_>,
) -> String {
    let Some(user) = attributes.user else { return String::new() };
    let mut errors = Vec::new();
    for scope in snapshot.scopes_for_namespace(namespace) {
        let mut bindings: Vec<_> = scope.bindings.iter().map(|(binding, _)| &binding.0).collect();
        bindings.sort_unstable_by(|a, b| a.name().cmp(b.name()));
        for binding in bindings {
            let is_user = |subject: &Subject| {
                let user_name = subject.user_name(binding.namespace());
                let is_group = |group: &String| subject.group_name() == Some(group);
                user_name.as_deref() == Some(&user.name) || user.groups.iter().any(is_group)
            };
            let Some(subject_idx) = binding.subjects.iter().position(is_user) else { continue };
            match snapshot.role_of_binding(binding) {
                Ok(role) if role.rules.iter().any(|rule| rule.allows(attributes)) => {
                    return Reason::RbacGrant { bindings: binding.clone(), grant_idx: subject_idx }
                        .to_string();
                }
                Ok(_) => {}
                Err(error) => errors.push(error.to_string()),
            }
        }
    }
    match errors.is_empty() {
        true => String::new(),
        false => format!("RBAC: {}", field_errors::aggregate_messages(&errors)),
    }
}

fn user() -> impl Strategy<Value = User> {
    let groups = prop_oneof![
        3 => prop::collection::vec(0..60usize, 0..8),
        1 => prop::collection::vec(0..400usize, 60..140),
    ];
    (0..40usize, groups).prop_map(|(name, groups)| User {
        name: format!("user-{name}"),
        groups: groups.into_iter().map(|group| format!("group-{group}")).collect(),
        ..User::default()
    })
}

fn subjects() -> impl Strategy<Value = Vec<(bool, usize)>> {
    // A few groups have very many bindings.
    let group = prop_oneof![2 => 0..3usize, 3 => 0..60usize];
    let subject = prop_oneof![
        3 => group.prop_map(|name| (true, name)),
        2 => (0..40usize).prop_map(|name| (false, name)),
    ];
    prop::collection::vec(subject, 0..4)
}

/// In half of the cases most roles are for the same target.
fn roles(n: std::ops::Range<usize>) -> impl Strategy<Value = Vec<(usize, usize, (usize, usize))>> {
    any::<bool>().prop_flat_map(move |are_alike| {
        let n_alike = if are_alike { 1 } else { VERBS.len() };
        let resource = prop_oneof![6 => 0..n_alike, 1 => 0..RESOURCES.len()];
        prop::collection::vec((0..28usize, 0..3usize, (0..n_alike, resource)), n.clone())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn all_searches_agree(
        all_names_collide in any::<bool>(),
        [roles, late_roles] in [roles(0..60), roles(0..20)],
        bindings in prop::collection::vec(
            (0..150usize, 0..3usize, 0..32usize, subjects()), 0..300),
        removed in prop::collection::vec((0..3usize, 0..150usize), 0..40),
        removed_roles in prop::collection::vec((0..3usize, 0..28usize), 0..12),
        users in prop::collection::vec(user(), 1..6),
    ) {
        let namespace = |place: usize| ["", "ns", "other"][place];
        let mut snapshot = Snapshot::default();
        snapshot.subjects.all_names_collide = all_names_collide;
        for (name, place, rule) in roles {
            snapshot.put_role(role(name, namespace(place), rule));
        }
        for (name, place, role, subjects) in bindings {
            snapshot.put_binding(binding(name, namespace(place), role, &subjects));
        }
        for (place, name) in removed {
            let name = format!("a-binding-with-a-rather-long-name-{name}");
            snapshot.remove_binding(Namespace::new(namespace(place)), &name);
        }
        for (name, place, rule) in late_roles {
            snapshot.put_role(role(name, namespace(place), rule));
        }
        for (place, name) in removed_roles {
            snapshot.remove_role(Namespace::new(namespace(place)), &format!("role-{name}"));
        }
        for user in &users {
            for (verb, resource) in VERBS.iter().flat_map(|verb| RESOURCES.map(|it| (*verb, it))) {
                let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
                let namespace = Namespace::new("ns");
                let target = Resource { resource, subresource, namespace, ..Resource::default() };
                let target = Target::Resource(target);
                let attributes = Attributes { user: Some(user), verb: Verb::new(verb), target };
                let want = exhaustive_reason(&snapshot, &attributes, namespace);
                let indexed = snapshot.authorize(&attributes, TraceRecorder::disabled_recorder());
                prop_assert_eq!(&indexed.reason.to_string(), &want);
                let mut trace = Trace::default();
                let explained = snapshot.authorize(&attributes, TraceRecorder::new(&mut trace));
                prop_assert_eq!(&explained.reason.to_string(), &want);
                prop_assert_eq!(explained.verdict, indexed.verdict);
            }
        }
    }
}
