//! Escalation checks: which users may write which roles and bindings.

use authz::Namespace;
use authz_rbac::{
    AggregationRule, Binding, CHECK_STEPS_MAX, EscalationRefusal, LabelSelector, Role, Snapshot,
    Subject, bind_check_target, escalate_check_target,
};

use crate::decisions::{binding, role, rule, snapshot, url_rule, user};

fn policy() -> Snapshot {
    let roles = vec![
        role("", "all", vec![rule("*", "*", "*"), url_rule("*", "*")]),
        role("", "jobs", vec![rule("create", "batch", "jobs")]),
    ];
    let bindings = vec![
        binding("", "a", ("ClusterRole", "all"), &[Subject::user("alice")]),
        binding("", "j", ("ClusterRole", "jobs"), &[Subject::user("wide")]),
        binding("job-ns", "j", ("ClusterRole", "jobs"), &[Subject::user("local")]),
        binding("job-ns", "x", ("ClusterRole", "gone"), &[Subject::user("local")]),
    ];
    snapshot(roles, bindings)
}

#[test]
fn writing_a_role_requires_its_permissions() {
    let pods = role("ns1", "r", vec![rule("get list", "core", "pods")]);
    let policy = policy();
    for (name, groups, want) in
        [("bob", "system:masters", true), ("alice", "", true), ("bob", "devs", false)]
    {
        let is_ok =
            policy.check_role_write(&user(name, groups), &pods, None, CHECK_STEPS_MAX).is_ok();
        assert_eq!(is_ok, want, "{name}");
    }
    // The update changes nothing, so it grants nothing.
    assert_eq!(
        policy.check_role_write(&user("bob", ""), &pods, Some(&pods), CHECK_STEPS_MAX),
        Ok(())
    );
}

#[test]
fn the_refusal_names_missing_permissions() {
    let rules = vec![
        rule("list", "core", "pods"),
        url_rule("get", "/metrics"),
        rule("get", "core", "pods"),
    ];
    let wanted = role("ns1", "r", rules);
    let bob = user("bob", "devs system:authenticated");
    let refusal = policy().check_role_write(&bob, &wanted, None, CHECK_STEPS_MAX).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        concat!(
            r#"user "bob" (groups=["devs" "system:authenticated"]) is attempting to grant RBAC "#,
            "permissions not currently held:\n",
            r#"{APIGroups:[""], Resources:["pods"], Verbs:["list" "get"]}"#,
            "\n",
            r#"{NonResourceURLs:["/metrics"], Verbs:["get"]}"#,
        )
    );
    let local = user("local", "");
    let wanted = role("job-ns", "r", vec![rule("get", "core", "pods")]);
    let message =
        policy().check_role_write(&local, &wanted, None, CHECK_STEPS_MAX).unwrap_err().to_string();
    let tail = r#"; resolution errors: [clusterrole.rbac.authorization.k8s.io "gone" not found]"#;
    assert!(message.ends_with(tail), "{message}");
}

#[test]
fn writing_an_aggregated_role_requires_all_permissions() {
    let selectors = vec![LabelSelector::default()];
    let aggregated = Role {
        aggregation_rule: Some(AggregationRule { cluster_role_selectors: selectors }),
        ..role("", "r", vec![rule("create", "batch", "jobs")])
    };
    let plain = Role { aggregation_rule: None, ..aggregated.clone() };
    let (policy, wide) = (policy(), user("wide", ""));
    assert_eq!(policy.check_role_write(&wide, &plain, None, CHECK_STEPS_MAX), Ok(()));
    assert_eq!(
        policy.check_role_write(&wide, &aggregated, None, CHECK_STEPS_MAX),
        Err(EscalationRefusal::Aggregation)
    );
    assert_eq!(
        policy.check_role_write(&wide, &plain, Some(&aggregated), CHECK_STEPS_MAX),
        Err(EscalationRefusal::Aggregation)
    );
    assert_eq!(
        policy.check_role_write(&user("alice", ""), &aggregated, None, CHECK_STEPS_MAX),
        Ok(())
    );
    assert_eq!(
        EscalationRefusal::Aggregation.to_string(),
        "must have cluster-admin privileges to use the aggregationRule"
    );
}

#[test]
fn writing_a_binding_requires_the_permissions_of_its_role() {
    let to_jobs = |namespace: &str| -> Binding {
        binding(namespace, "new", ("ClusterRole", "jobs"), &[Subject::user("eve")])
    };
    let policy = policy();
    for (name, namespace, want) in [
        ("local", "job-ns", true),
        ("local", "other", false),
        ("local", "", false),
        ("wide", "other", true),
        ("wide", "", true),
        ("bob", "job-ns", false),
    ] {
        let answer =
            policy.check_binding_write(&user(name, ""), &to_jobs(namespace), None, CHECK_STEPS_MAX);
        assert_eq!(answer.is_ok(), want, "{name} in {namespace}");
    }
    let same = to_jobs("other");
    assert_eq!(
        policy.check_binding_write(&user("bob", ""), &same, Some(&same), CHECK_STEPS_MAX),
        Ok(())
    );
}

#[test]
fn a_binding_to_a_missing_role_is_not_found() {
    let policy = policy();
    let missing = binding("", "new", ("ClusterRole", "x"), &[]);
    let refusal = policy
        .check_binding_write(&user("alice", ""), &missing, None, CHECK_STEPS_MAX)
        .unwrap_err();
    assert_eq!(refusal.to_string(), r#"clusterroles.rbac.authorization.k8s.io "x" not found"#);
    assert_eq!(
        policy.check_binding_write(&user("bob", "system:masters"), &missing, None, CHECK_STEPS_MAX),
        Ok(())
    );
    let odd = binding("", "new", ("Odd", "x"), &[]);
    let refusal =
        policy.check_binding_write(&user("alice", ""), &odd, None, CHECK_STEPS_MAX).unwrap_err();
    assert_eq!(refusal.to_string(), r#"unsupported role reference kind: "Odd""#);
}

#[test]
fn targets_of_escalate_and_bind_checks() {
    let wanted = role("ns1", "r", Vec::new());
    let escalate = escalate_check_target(&wanted, "");
    assert_eq!(
        (escalate.resource, escalate.name, escalate.namespace),
        ("roles", "", Namespace::new("ns1"))
    );
    assert_eq!(escalate.api_version, "*");
    assert_eq!(escalate_check_target(&role("", "r", Vec::new()), "r").resource, "clusterroles");
    let wanted = binding("ns1", "b", ("ClusterRole", "r"), &[]);
    let bind = bind_check_target(&wanted);
    assert_eq!(
        (bind.resource, bind.name, bind.namespace),
        ("clusterroles", "r", Namespace::new("ns1"))
    );
    assert_eq!(bind.api_group, authz_rbac::GROUP);
}
