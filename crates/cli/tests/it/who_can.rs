//! Tests of `portcullis who-can`.

use serde_json::{Value, json};

use crate::program::{Run, run};

fn who_can(question: &str, more: &[&str]) -> Run {
    let question: Vec<&str> = question.split(' ').collect();
    let objects = ["--objects", "offline/manifests", "--bootstrap-policy=false"];
    run(&[&["who-can"], &question[..], &objects, more].concat())
}

/// The lists in JSON.
fn listed(question: &str, more: &[&str]) -> Value {
    let found = who_can(question, &[more, &["-o", "json"]].concat());
    serde_json::from_str(&found.stdout).unwrap()
}

#[test]
fn people_see_a_table() {
    let found = who_can("get configmaps settings -n staging", &[]);
    assert_eq!(found.code, 0);
    assert_eq!(
        found.stdout,
        "KIND   NAME\n\
         User   ana\n\
         Group  system:masters\n"
    );
    assert_eq!(
        found.stderr,
        "note: rbac: clusterrole.rbac.authorization.k8s.io \"gone\" not found\n"
    );
    let objects = ["--objects", "offline/manifests"];
    let found = run(&[&["who-can", "list", "services", "-n", "prod"], &objects[..]].concat());
    assert!(found.stdout.contains("\nServiceAccount  prod/ci\n"), "{}", found.stdout);
    assert!(found.stdout.contains("\nGroup           dev\n"), "{}", found.stdout);
}

#[test]
fn programs_get_the_status_of_a_review() {
    let error = "rbac: clusterrole.rbac.authorization.k8s.io \"gone\" not found";
    assert_eq!(
        listed("update configmaps settings -n staging", &[]),
        json!({"users": ["ana"], "groups": ["system:masters"], "evaluationError": error})
    );
    let found = who_can("update configmaps settings -n staging -o yaml", &[]);
    assert_eq!(
        found.stdout,
        "users:\n- ana\ngroups:\n- system:masters\nevaluationError: \"rbac: \
         clusterrole.rbac.authorization.k8s.io \\\"gone\\\" not found\"\n"
    );
}

#[test]
fn every_part_of_the_question_counts() {
    let users = |question: &str| listed(question, &[])["users"].clone();
    assert_eq!(users("get configmaps settings -n staging"), json!(["ana"]));
    for other in [
        "delete configmaps settings -n staging",
        "get secrets settings -n staging",
        "get configmaps other -n staging",
        "get configmaps -n staging",
        "get configmaps settings -n prod",
        "get configmaps settings",
        "get configmaps/status settings -n staging",
    ] {
        assert_eq!(users(other), json!([]), "{other}");
    }
    // The nodes that run a pod which uses the object.
    assert_eq!(users("get secrets db -n prod"), json!(["system:node:n1"]));
}

#[test]
fn every_authorizer_contributes() {
    let groups = |modes: &str| {
        let found = run(&["who-can", "get", "/metrics", "-o", "json", modes]);
        let status: Value = serde_json::from_str(&found.stdout).unwrap();
        status["groups"].clone()
    };
    let everybody = json!(["system:authenticated", "system:masters", "system:unauthenticated"]);
    assert_eq!(groups("--authorization-mode=AlwaysAllow"), everybody);
    assert_eq!(groups("--authorization-mode=AlwaysDeny"), json!(["system:masters"]));
    let abac = ["--authorization-mode=ABAC", "--authorization-policy-file=offline/policies.jsonl"];
    let found = run(&[&["who-can", "get", "/metrics", "-o", "json"], &abac[..]].concat());
    assert_eq!(found.code, 0);
    let status: Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!(status, json!({"users": [], "groups": ["auditors", "system:masters"]}));
}

#[test]
fn a_webhook_makes_the_list_incomplete() {
    let flags = [
        "--authorization-config=offline/authorization.yaml",
        "--authorization-policy-file=offline/policies.jsonl",
    ];
    let args = ["who-can", "get", "pods", "-n", "dev"];
    let found = run(&[&args[..], &flags].concat());
    assert_eq!(found.code, 4);
    assert!(found.stdout.contains("\nUser            zoe\n"), "{}", found.stdout);
    let note = "note: guard.example.com: webhook authorizer cannot enumerate subjects\n";
    assert!(found.stderr.contains(note), "{}", found.stderr);
    // Its conditions depend on who asks, so an assumption does not complete the list.
    let assumed = ["--webhook=guard.example.com=allow"];
    assert_eq!(run(&[&args[..], &flags, &assumed].concat()).code, 4);
    let flags =
        ["--authorization-mode=Webhook,AlwaysAllow", "--authorization-webhook-config-file=unread"];
    assert_eq!(run(&[&args[..], &flags].concat()).code, 4);
    for (assumed, want) in [("allow", 4), ("deny", 2), ("no-opinion", 4)] {
        let assumed = format!("--webhook=default={assumed}");
        let found = run(&[&args[..], &flags, &[&assumed]].concat());
        assert_eq!((found.code, found.stdout.lines().count()), (0, want), "{assumed}");
    }
}

#[test]
fn a_path_has_no_name() {
    for wrong in
        ["get /healthz name", "get /healthz -n prod", "get", "get pods/", "get pods -o xml"]
    {
        let found = who_can(wrong, &[]);
        assert_eq!((found.code, found.stdout.as_str()), (2, ""), "{wrong}");
    }
    assert_eq!(who_can("get /healthz", &[]).code, 0);
}
