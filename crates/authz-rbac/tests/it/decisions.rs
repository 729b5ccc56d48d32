//! The rules of RBAC decisions: for each rule a request that it allows, and the nearest one that it does not.

use authz::{Attributes, Namespace, Resource, Target, TraceRecorder, User, Verb};
use authz_rbac::{Binding, Metadata, PolicyRule, Role, RoleRef, Snapshot, Subject};

pub(crate) fn list(text: &str) -> Vec<String> {
    text.split_whitespace().map(|word| word.replace("core", "")).collect()
}

pub(crate) fn rule(verbs: &str, groups: &str, resources: &str) -> PolicyRule {
    PolicyRule {
        verbs: list(verbs),
        api_groups: list(groups),
        resources: list(resources),
        ..PolicyRule::default()
    }
}

pub(crate) fn url_rule(verbs: &str, urls: &str) -> PolicyRule {
    PolicyRule { verbs: list(verbs), non_resource_urls: list(urls), ..PolicyRule::default() }
}

fn metadata(namespace: &str, name: &str) -> Metadata {
    Metadata { namespace: namespace.to_owned(), name: name.to_owned(), ..Metadata::default() }
}

pub(crate) fn role(namespace: &str, name: &str, rules: Vec<PolicyRule>) -> Role {
    Role { metadata: metadata(namespace, name), rules, aggregation_rule: None }
}

pub(crate) fn binding(
    namespace: &str,
    name: &str,
    (kind, role): (&str, &str),
    subjects: &[Subject],
) -> Binding {
    let api_group = authz_rbac::GROUP.to_owned();
    Binding {
        metadata: metadata(namespace, name),
        role_ref: RoleRef { api_group, kind: kind.to_owned(), name: role.to_owned() },
        subjects: subjects.to_vec(),
    }
}

pub(crate) fn snapshot(roles: Vec<Role>, bindings: Vec<Binding>) -> Snapshot {
    let mut snapshot = Snapshot::default();
    roles.into_iter().for_each(|role| snapshot.put_role(role));
    bindings.into_iter().for_each(|binding| snapshot.put_binding(binding));
    snapshot
}

pub(crate) fn user(name: &str, groups: &str) -> User {
    User { name: name.to_owned(), groups: list(groups), ..User::default() }
}

/// Parses a request such as `get pods ns1`, `get pods` or `get /path`.
pub(crate) fn attributes<'a>(user: &'a User, asked: &'a str) -> Attributes<'a> {
    let mut words = asked.split(' ');
    let mut word = || words.next().unwrap_or_default();
    let (verb, what, namespace) = (word(), word(), word());
    let target = match what.starts_with('/') {
        true => Target::Path(what),
        false => Target::Resource(Resource {
            resource: what,
            namespace: Namespace::new(namespace),
            ..Resource::default()
        }),
    };
    Attributes { user: Some(user), verb: Verb::new(verb), target }
}

#[track_caller]
fn check(snapshot: &Snapshot, user: &User, cases: &[(&str, &str, &str)]) {
    for (asked, verdict, reason) in cases {
        let decision =
            snapshot.authorize(&attributes(user, asked), TraceRecorder::disabled_recorder());
        assert_eq!(decision.verdict.name(), *verdict, "{asked}");
        assert_eq!(decision.reason, *reason, "{asked}");
        assert!(decision.error.is_none());
    }
}

#[test]
fn a_role_binding_grants_inside_its_namespace_only() {
    let all = role("", "all", vec![rule("*", "*", "*"), url_rule("*", "*")]);
    let to = [Subject::user("admin"), Subject::group("admins")];
    let policy = snapshot(vec![all], vec![binding("ns1", "b", ("ClusterRole", "all"), &to)]);
    let by_user = r#"RBAC: allowed by RoleBinding "b/ns1" of ClusterRole "all" to User "admin""#;
    check(
        &policy,
        &user("admin", "admins"),
        &[
            ("get pods ns1", "allow", by_user),
            ("get pods ns2", "noOpinion", ""),
            ("get nodes", "noOpinion", ""),
            ("get /metrics", "noOpinion", ""),
        ],
    );
    let by_group = r#"RBAC: allowed by RoleBinding "b/ns1" of ClusterRole "all" to Group "admins""#;
    check(&policy, &user("joe", "group1 admins"), &[("watch foobar ns1", "allow", by_group)]);
}

#[test]
fn a_service_account_is_found_by_its_user_name() {
    let pods = || vec![rule("get", "core", "pods")];
    let roles = vec![role("ns1", "r", pods()), role("", "c", pods())];
    let account = [Subject::service_account_subject("", "ci")];
    let bindings = vec![
        binding("ns1", "rb", ("Role", "r"), &account),
        // In a ClusterRoleBinding, a service account without a namespace matches no user.
        binding("", "crb", ("ClusterRole", "c"), &account),
    ];
    let policy = snapshot(roles, bindings);
    let reason = r#"RBAC: allowed by RoleBinding "rb/ns1" of Role "r" to ServiceAccount "ci/ns1""#;
    let ci = user("system:serviceaccount:ns1:ci", "");
    check(&policy, &ci, &[("get pods ns1", "allow", reason), ("get pods", "noOpinion", "")]);
    check(&policy, &user("system:serviceaccount::ci", ""), &[("get pods", "noOpinion", "")]);
}

#[test]
fn missing_roles_are_the_reason_only_without_a_grant() {
    let bob = [Subject::user("bob")];
    let broken = vec![
        binding("", "a", ("ClusterRole", "x"), &bob),
        binding("", "b", ("Role", "y"), &bob),
        binding("", "c", ("ClusterRole", "x"), &bob),
        binding("ns1", "d", ("Odd", "z"), &bob),
    ];
    let roles = vec![role("", "r", vec![rule("get", "core", "pods")])];
    let mut policy = snapshot(roles, broken);
    let cluster = concat!(
        r#"RBAC: [clusterrole.rbac.authorization.k8s.io "x" not found, "#,
        r#"role.rbac.authorization.k8s.io "y" not found]"#,
    );
    let local = concat!(
        r#"RBAC: [clusterrole.rbac.authorization.k8s.io "x" not found, "#,
        r#"role.rbac.authorization.k8s.io "y" not found, unsupported role reference kind: "Odd"]"#,
    );
    let cases = [("get pods", "noOpinion", cluster), ("get pods ns1", "noOpinion", local)];
    check(&policy, &user("bob", ""), &cases);
    check(&policy, &user("eve", ""), &[("get pods ns1", "noOpinion", "")]);
    policy.put_binding(binding("", "z", ("ClusterRole", "r"), &bob));
    let reason = r#"RBAC: allowed by ClusterRoleBinding "z" of ClusterRole "r" to User "bob""#;
    check(&policy, &user("bob", ""), &[("get pods ns1", "allow", reason)]);
}

#[test]
fn the_first_binding_by_name_and_its_first_subject_are_named() {
    let roles = vec![role("", "r", vec![rule("get", "core", "pods")])];
    let to = [Subject::group("g2"), Subject::group("g1"), Subject::user("ana")];
    let bindings = vec![
        binding("", "b", ("ClusterRole", "r"), &[Subject::user("ana")]),
        binding("", "a", ("ClusterRole", "r"), &to),
    ];
    let policy = snapshot(roles, bindings);
    let reason = r#"RBAC: allowed by ClusterRoleBinding "a" of ClusterRole "r" to Group "g2""#;
    check(&policy, &user("ana", "g1 g2"), &[("get pods ns1", "allow", reason)]);
}

#[test]
fn cluster_role_bindings_come_before_role_bindings() {
    let roles = vec![role("", "r", vec![rule("get", "core", "pods")])];
    // Neither the order of subjects nor the order of insertion matters.
    let bindings = vec![
        binding("ns1", "a", ("ClusterRole", "r"), &[Subject::user("ana")]),
        binding("", "z", ("ClusterRole", "r"), &[Subject::group("g")]),
    ];
    let policy = snapshot(roles, bindings);
    let reason = r#"RBAC: allowed by ClusterRoleBinding "z" of ClusterRole "r" to Group "g""#;
    check(&policy, &user("ana", "g"), &[("get pods ns1", "allow", reason)]);
}

#[test]
fn a_request_without_user_is_granted_nothing() {
    let roles = vec![role("", "r", vec![rule("*", "*", "*")])];
    let to = [Subject::user(""), Subject::user("*"), Subject::group("*")];
    let policy = snapshot(roles, vec![binding("", "b", ("ClusterRole", "r"), &to)]);
    check(&policy, &user("foobar", "g"), &[("get pods", "noOpinion", "")]);
    let anyone = user("foobar", "");
    let asked = Attributes { user: None, ..attributes(&anyone, "get pods") };
    assert_eq!(
        policy.authorize(&asked, TraceRecorder::disabled_recorder()).verdict.name(),
        "noOpinion"
    );
}

#[test]
fn who_can_lists_the_superusers_first_and_every_subject() {
    let all = role("", "all", vec![rule("*", "*", "*")]);
    let supers = [Subject::user("super-admin"), Subject::group("super-admins")];
    let admins = [Subject::user("admin"), Subject::group("admins")];
    let bindings = vec![
        binding("", "b1", ("ClusterRole", "all"), &supers),
        binding("", "b2", ("ClusterRole", "gone"), &supers),
        binding("ns1", "b1", ("ClusterRole", "all"), &admins),
    ];
    let policy = snapshot(vec![all], bindings);
    let anyone = user("x", "");
    let names = |asked: &str, superuser| -> String {
        let found = policy.who_can(&attributes(&anyone, asked), superuser);
        assert_eq!(found.role_lookup_errors.len(), 1);
        let names: Vec<_> = found.subjects.into_iter().map(|subject| subject.name).collect();
        names.join(" ")
    };
    assert_eq!(names("get pods ns1", None), "system:masters super-admin super-admins admin admins");
    assert_eq!(names("get pods", None), "system:masters super-admin super-admins");
    assert_eq!(names("* pods *", None), "system:masters super-admin super-admins");
    assert_eq!(names("get pods ns2", Some("foo")), "system:masters foo super-admin super-admins");
    let listed = policy.allowed_subjects(&attributes(&anyone, "get pods ns1"));
    assert_eq!(listed.users.into_iter().collect::<Vec<_>>(), ["admin", "super-admin"]);
    let note = r#"rbac: clusterrole.rbac.authorization.k8s.io "gone" not found"#;
    assert_eq!(listed.subject_listing_notes, [note]);
}

#[test]
fn rules_review_lists_rules_and_missing_roles() {
    let mixed = PolicyRule { non_resource_urls: list("/x"), ..rule("get", "core", "pods") };
    let ana = [Subject::user("ana")];
    let bindings = vec![
        binding("", "a", ("ClusterRole", "gone"), &ana),
        binding("", "b", ("ClusterRole", "mixed"), &ana),
        binding("ns1", "c", ("Role", "gone"), &ana),
    ];
    let policy = snapshot(vec![role("", "mixed", vec![mixed])], bindings);
    let rules = policy.rules_for(&user("ana", ""), Namespace::new("ns1"));
    assert_eq!((rules.resource_rules.len(), rules.non_resource_rules.len()), (1, 1));
    assert!(!rules.is_incomplete);
    assert_eq!(
        rules.error.unwrap().to_string(),
        concat!(
            r#"[clusterrole.rbac.authorization.k8s.io "gone" not found, "#,
            r#"role.rbac.authorization.k8s.io "gone" not found]"#,
        )
    );
    assert!(policy.rules_for(&user("eve", ""), Namespace::new("ns1")).error.is_none());
}
