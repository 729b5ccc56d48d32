//! Tests of `portcullis explain`.

use serde_json::{Value, json};

use crate::expected::assert_is;
use crate::program::{Run, TESTDATA, run, run_with_stdin};

const OBJECTS: [&str; 2] = ["--objects", "offline/manifests"];
const GUARDED: [&str; 7] = [
    "--authorization-config",
    "offline/authorization.yaml",
    "--authorization-policy-file",
    "offline/policies.jsonl",
    "--no-webhooks",
    "--objects",
    "offline/manifests",
];

fn ask(question: &str, more: &[&str]) -> Run {
    let question: Vec<&str> = question.split(' ').collect();
    run(&[&["explain"], &question[..], more].concat())
}

#[track_caller]
fn check(expected: &str, question: &str, flags: &[&str], code: i32) {
    let found = ask(question, flags);
    assert_eq!((found.code, found.stderr.as_str()), (code, ""), "{question}");
    assert_is(&format!("{TESTDATA}/offline/{expected}.txt"), &found.stdout);
}

#[test]
fn what_decides_is_shown() {
    let dev = "--as ana --as-group dev --verb";
    check("allowed", &format!("{dev} get --resource pods -n prod"), &OBJECTS, 0);
    check(
        "node",
        "--as system:node:n1 --as-group system:nodes --verb get --resource secrets --name db -n prod",
        &OBJECTS,
        0,
    );
    check("policy-line", "--as zoe --verb delete --resource pods -n dev", &GUARDED, 0);
    check("superuser", "--as root --as-group system:masters --verb get --path /x", &OBJECTS, 0);
    check("open", &format!("{dev} get --resource pods -n prod"), &GUARDED, 4);
    let assumed = [&GUARDED[..], &["--webhook=guard.example.com=deny"]].concat();
    check("assumed", &format!("{dev} get --resource pods -n prod"), &assumed, 1);
}

/// The near misses that are promised, and then some.
#[test]
fn what_nearly_decided_is_shown() {
    for (expected, question, want) in [
        (
            "lacks-verb",
            "--as ana --as-group dev --verb create --resource pods -n prod",
            "≈ near miss: RoleBinding prod/readers of ClusterRole view: rule 1: lacks only the \
             verb, has get, list, watch\n",
        ),
        (
            "other-namespace",
            "--as ana --verb get --resource configmaps --name settings -n prod",
            "≈ near miss: RoleBinding staging/settings of Role settings allows it in namespace \
             \"staging\", and not in namespace \"prod\"\n",
        ),
        (
            "misspelt-group",
            "--as ana --as-group devs --verb get --resource pods -n prod",
            "≈ near miss: group \"dev\" is allowed, and \"devs\" is not\n",
        ),
        (
            "misspelt-user",
            "--as anna --verb get --resource configmaps --name settings -n staging",
            "≈ near miss: user \"ana\" is allowed, and \"anna\" is not\n",
        ),
        (
            "other-name",
            "--as ana --verb get --resource configmaps --name other -n staging",
            "lacks only the name, has settings\n",
        ),
        (
            "other-group",
            "--as ana --as-group dev --verb get --resource statefulsets.batch \
             --allow-unknown -n prod",
            "lacks only the API group, has apps\n",
        ),
        (
            "other-node",
            "--as system:node:n2 --as-group system:nodes --verb get --resource secrets --name db \
             -n prod",
            "≈ near miss: nothing leads from secret prod/db to this node; nothing is known of \
             this node; it leads to n1\n",
        ),
        (
            "no-node",
            "--as system:node:n1 --verb get --resource secrets --name db -n prod",
            "≈ near miss: not a node, because the group system:nodes is missing\n",
        ),
    ] {
        let found = ask(question, &OBJECTS);
        assert!(found.stdout.contains(want), "{expected}: {}", found.stdout);
        check(expected, question, &OBJECTS, 1);
    }
    let abac = ["--authorization-mode=ABAC", "--authorization-policy-file=offline/policies.jsonl"];
    let post = "--as ana --as-group auditors --verb post --path /metrics";
    check("lacks-readonly", post, &abac, 1);
}

#[test]
fn a_broken_binding_is_shown() {
    let found = ask("--as bob --verb get --resource pods", &OBJECTS);
    let want = "ClusterRoleBinding broken of ClusterRole gone to User \"bob\": \
                clusterrole.rbac.authorization.k8s.io \"gone\" not found\n";
    assert!(found.stdout.contains(want), "{}", found.stdout);
}

#[test]
fn a_missing_group_of_everybody_is_hinted_at() {
    let line = br#"{"user":"ana","nonResourceAttributes":{"path":"/healthz","verb":"get"}}"#;
    let found = run_with_stdin(&["explain"], line);
    assert_eq!(found.code, 1);
    assert!(
        found.stdout.contains("\nhint: the request is allowed with the group system:authenticated")
    );
    let found = run_with_stdin(&["explain", "-o", "json"], line);
    let explanation: Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!(explanation["hints"].as_array().map(Vec::len), Some(1));
    let line = br#"{"user":"ana","nonResourceAttributes":{"path":"/secret","verb":"get"}}"#;
    assert!(!run_with_stdin(&["explain"], line).stdout.contains("hint:"));
}

#[test]
fn programs_get_the_trace_as_a_tree() {
    let question = "--as system:node:n1 --as-group system:nodes --verb get --resource secrets \
                    --name db -n prod -o json";
    let found = ask(question, &OBJECTS);
    assert_eq!(found.code, 0);
    let explanation: Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!(
        explanation,
        json!({
            "allowed": true,
            "decidedBy": "node",
            "trace": [
                {
                    "kind": "authorizer",
                    "fields": {"name": "kubernetes.io/system-privileged-group"},
                    "children": [{"kind": "verdict", "fields": {"decision": "noOpinion"}}],
                },
                {
                    "kind": "authorizer",
                    "fields": {"name": "node"},
                    "children": [
                        {"kind": "node", "fields": {"name": "n1"}},
                        {"kind": "path", "fields": {
                            "vertices": ["secret prod/db", "pod prod/web", "node n1"],
                        }},
                        {"kind": "verdict", "fields": {"decision": "allow"}},
                    ],
                },
            ],
            "notAsked": ["rbac"],
        })
    );
}

/// The answers are those of `eval`, whatever is asked.
#[test]
fn explanations_agree_with_answers() {
    let mut text = String::new();
    for user in ["ana", "bob", "zoe", "system:node:n1", "system:serviceaccount:prod:ci"] {
        for groups in [&["dev"][..], &["devs", "system:nodes"], &["system:masters"]] {
            for verb in ["get", "create"] {
                for resource in ["pods", "secrets", "configmaps"] {
                    for namespace in ["", "prod", "staging"] {
                        let attributes = json!({
                            "verb": verb, "resource": resource, "namespace": namespace,
                            "name": "db", "fieldSelector": {"rawSelector": "a b"},
                        });
                        let spec = json!({
                            "user": user, "groups": groups, "resourceAttributes": attributes,
                        });
                        text.push_str(&format!("{spec}\n"));
                    }
                }
            }
        }
    }
    for flags in [&OBJECTS[..], &GUARDED] {
        let answers = run_with_stdin(&[&["eval"], flags].concat(), text.as_bytes());
        let explained = [&["explain", "-o", "json"], flags].concat();
        let explained = run_with_stdin(&explained, text.as_bytes());
        let people = run_with_stdin(&[&["explain"], flags].concat(), text.as_bytes());
        assert_eq!(answers.code, explained.code);
        assert_eq!(answers.code, people.code);
        let headings = people.stdout.lines().filter(|line| {
            ["ALLOWED  ", "DENIED  ", "UNKNOWN  "].iter().any(|word| line.starts_with(word))
        });
        let headings: Vec<&str> = headings.collect();
        assert_eq!(headings.len(), answers.stdout.lines().count());
        for ((answer, explanation), heading) in
            answers.stdout.lines().zip(explained.stdout.lines()).zip(headings)
        {
            let answer: Value = serde_json::from_str(answer).unwrap();
            let mut explanation: Value = serde_json::from_str(explanation).unwrap();
            let is_open = explanation["open"] == true;
            let word = match (answer["allowed"] == true, is_open) {
                (true, _) => "ALLOWED",
                (false, true) => "UNKNOWN",
                (false, false) => "DENIED",
            };
            assert!(heading.starts_with(word), "{heading}");
            let members = explanation.as_object_mut().unwrap();
            for more in ["trace", "notAsked", "hints", "open"] {
                members.remove(more);
            }
            assert_eq!(answer, explanation);
        }
    }
}

#[test]
fn nothing_steers_the_terminal() {
    let line = "{\"user\":\"\\u001b[31m\",\"groups\":[\"a\\nb\"],\"nonResourceAttributes\":{\"path\":\"/\",\"verb\":\"get\"}}";
    let found = run_with_stdin(&["explain"], line.as_bytes());
    assert!(!found.stdout.contains('\u{1b}'), "{}", found.stdout);
    assert!(found.stdout.starts_with("DENIED  ␛[31m (a␊b) get /\n"), "{}", found.stdout);
}
