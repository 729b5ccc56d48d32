//! Tests of `portcullis rules`.

use serde_json::{Value, json};

use crate::program::{Run, run};

fn rules(question: &str, more: &[&str]) -> Run {
    let question: Vec<&str> = question.split(' ').collect();
    let objects = ["--objects", "offline/manifests", "--bootstrap-policy=false"];
    run(&[&["rules"], &question[..], &objects, more].concat())
}

#[test]
fn people_see_a_table() {
    let found = rules("--as ana -n staging", &[]);
    assert_eq!((found.code, found.stderr.as_str()), (0, ""));
    assert_eq!(
        found.stdout,
        "VERBS       API GROUPS  RESOURCES   NAMES\n\
         get,update  \"\"          configmaps  settings\n"
    );
    let found = run(&["rules", "--as", "ana"]);
    assert_eq!(found.code, 0);
    assert!(
        found.stdout.contains("\n\nVERBS  NON-RESOURCE URLS\nget    /api\n"),
        "{}",
        found.stdout
    );
    let found = rules("--as nobody", &[]);
    assert_eq!(found.stdout, "VERBS  API GROUPS  RESOURCES  NAMES\n");
}

#[test]
fn programs_get_the_status_of_a_review() {
    let want = json!({
        "resourceRules": [{
            "verbs": ["get", "update"], "apiGroups": [""], "resources": ["configmaps"],
            "resourceNames": ["settings"],
        }],
        "nonResourceRules": [],
        "incomplete": false,
    });
    let found = rules("--as ana -n staging -o json", &[]);
    assert_eq!(serde_json::from_str::<Value>(&found.stdout).unwrap(), want);
    let found = rules("--as ana -n staging -o yaml", &[]);
    assert_eq!(
        found.stdout,
        "resourceRules:\n- verbs:\n  - get\n  - update\n  apiGroups:\n  - \"\"\n  resources:\n  \
         - configmaps\n  resourceNames:\n  - settings\nnonResourceRules: []\nincomplete: false\n"
    );
}

#[test]
fn the_namespace_and_the_groups_count() {
    let n_rows = |question: &str| rules(question, &[]).stdout.lines().count() - 1;
    assert_eq!(n_rows("--as ana"), 0, "the namespace is `default`");
    assert_eq!(n_rows("--as ana -n prod"), 0);
    assert_eq!(n_rows("--as ana -n staging"), 1);
    let defaults = |more: &[&str]| run(&[&["rules", "--as", "ana"], more].concat()).stdout;
    assert_ne!(defaults(&[]), defaults(&["--no-implicit-groups"]));
    let found =
        run(&["rules", "--as-group", "dev", "-n", "prod", "--objects", "offline/manifests"]);
    assert!(
        found.stdout.contains("\nget,list,watch  \"\"                     pods\n"),
        "{}",
        found.stdout
    );
}

/// The node authorizer and webhooks cannot list all rules.
#[test]
fn an_incomplete_list_says_so() {
    let found = rules("--as system:node:n1 --as-group system:nodes -n prod", &[]);
    assert_eq!(found.code, 0);
    assert_eq!(
        found.stderr,
        "warning: the list is incomplete, more may be allowed\n\
         warning: node authorizer does not support user rule resolution\n"
    );
    let found = rules("--as system:node:n1 --as-group system:nodes -n prod -o json", &[]);
    let status: Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!(status["incomplete"], true);
    assert_eq!(status["evaluationError"], "node authorizer does not support user rule resolution");
    let found = rules("--as bob", &[]);
    assert_eq!(found.stderr, "warning: clusterrole.rbac.authorization.k8s.io \"gone\" not found\n");
    let found = rules("--as root --as-group system:masters", &[]);
    assert!(found.stderr.starts_with("note: members of system:masters may do everything"));
}

#[test]
fn somebody_must_be_named() {
    let found = run(&["rules", "-n", "prod"]);
    assert_eq!((found.code, found.stdout.as_str()), (2, ""));
    assert_eq!(found.stderr, "error: `portcullis rules` needs --as or --as-group\n");
}
