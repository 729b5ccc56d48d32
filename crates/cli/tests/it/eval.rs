//! Tests of `portcullis eval`.

use std::fmt::Write;
use std::fs;

use serde_json::{Value, json};

use crate::program::{Run, run, run_with_stdin};

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

/// Answers a question by flags.
fn ask(question: &str, more: &[&str]) -> Run {
    let question: Vec<&str> = question.split(' ').collect();
    run(&[&["eval"], &question[..], more].concat())
}

fn answer(found: &Run) -> Value {
    serde_json::from_str(&found.stdout).unwrap()
}

#[test]
fn a_file_of_questions_has_a_line_for_each() {
    let found = run(&[&["eval", "offline/questions.jsonl"][..], &OBJECTS].concat());
    assert_eq!((found.code, found.stderr.as_str()), (1, ""));
    assert_eq!(
        found.stdout,
        concat!(
            r#"{"allowed":true,"reason":"RBAC: allowed by RoleBinding \"readers/prod\" of ClusterRole \"view\" to Group \"dev\"","decidedBy":"rbac"}"#,
            "\n",
            "{\"allowed\":false}\n",
            r#"{"allowed":true,"decidedBy":"node"}"#,
            "\n",
            r#"{"allowed":false,"reason":"rbac: RBAC: clusterrole.rbac.authorization.k8s.io \"gone\" not found","evaluationError":"spec.resourceAttributes.fieldSelector ignored due to parse error"}"#,
            "\n",
            r#"{"allowed":true,"decidedBy":"kubernetes.io/system-privileged-group"}"#,
            "\n",
        )
    );
}

#[test]
fn every_exit_code_has_its_cause() {
    let yes = "--as ana --as-group dev --verb get --resource pods -n prod";
    assert_eq!(ask(yes, &OBJECTS).code, 0);
    assert_eq!(ask("--as ana --verb get --resource pods -n prod", &OBJECTS).code, 1);
    assert_eq!(ask("--as ana --verb get", &OBJECTS).code, 2);
    assert_eq!(run_with_stdin(&["eval"], b"{").code, 3);
    assert_eq!(run(&["eval", "missing.jsonl"]).code, 3);
    assert_eq!(ask(yes, &GUARDED).code, 4);
}

#[test]
fn the_worst_of_several_counts() {
    let line = |user: &str, group: &str, namespace: &str| {
        json!({
            "user": user, "groups": [group],
            "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": namespace},
        })
        .to_string()
    };
    let (yes, no) = (line("zoe", "x", "dev"), line("ana", "x", "dev"));
    let (open, bad) = (line("ana", "dev", "prod"), "{}".to_owned());
    for (lines, want, n_answers) in [
        (vec![&yes, &yes], 0, 2),
        (vec![&yes, &no, &yes], 1, 3),
        (vec![&open, &no, &yes], 4, 3),
        (vec![&bad, &open, &no, &yes], 3, 3),
        (vec![&yes, &bad], 3, 1),
        (vec![], 3, 0),
    ] {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let found = run_with_stdin(&[&["eval"], &GUARDED[..]].concat(), text.as_bytes());
        assert_eq!((found.code, found.stdout.lines().count()), (want, n_answers), "{text}");
    }
}

#[test]
fn a_bad_line_is_told_with_its_place_and_does_not_stop_the_others() {
    let good = r#"{"user":"u","groups":["system:masters"],"nonResourceAttributes":{"path":"/x","verb":"get"}}"#;
    let long = format!("{{\"user\":\"{}\"}}", "a".repeat(1 << 20));
    let text = [
        good,
        r#"{"user":"u","resourceAttributes":{"namespce":"prod"}}"#,
        "  ",
        "not json",
        r#"{"user":"u"}"#,
        &long,
        good,
    ]
    .join("\n");
    let mut bytes = text.into_bytes();
    bytes.extend(b"\n{\"user\":\"\xff\"}\r\n\r\n");
    bytes.extend(good.as_bytes());
    let found = run_with_stdin(&["eval", "-"], &bytes);
    assert_eq!(found.code, 3);
    assert_eq!(found.stdout.lines().count(), 3);
    assert_eq!(
        found.stderr,
        "<stdin>:2:35: unknown field \"resourceAttributes.namespce\" (did you mean `namespace`?)\n\
         <stdin>:4:2: invalid character 'o' in literal null (expecting 'u')\n\
         <stdin>:5:1: spec: Invalid value: null: exactly one of nonResourceAttributes or \
         resourceAttributes must be specified\n\
         <stdin>:6:1: the line is longer than 1048576 bytes\n\
         <stdin>:8:10: the line is not UTF-8\n"
    );
}

#[test]
fn several_files_and_standard_input_are_read_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, user: &str| {
        let path = folder.path().join(name);
        let line = json!({
            "user": user, "groups": ["system:authenticated"],
            "nonResourceAttributes": {"path": "/healthz", "verb": "get"},
        });
        fs::write(&path, line.to_string()).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (a, b) = (file("a", "a"), file("b", ""));
    let stdin = br#"{"user":"x","nonResourceAttributes":{"path":"/healthz","verb":"get"}}"#;
    let found = run_with_stdin(&["eval", &a, "missing", "-", &b], stdin);
    assert_eq!(found.code, 3);
    let allowed: Vec<bool> = found
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["allowed"] == true)
        .collect();
    assert_eq!(allowed, [true, false, true]);
    assert_eq!(found.stderr, "error: open missing: no such file or directory\n");
}

#[test]
fn questions_by_flags_are_complete_or_refused() {
    for (question, want) in [
        ("--verb get --resource pods", "a question needs --as or --as-group"),
        ("--as ana --verb get", "a question by flags needs --resource or --path"),
        ("--as ana", "which needs VERB"),
        ("--as-group dev", "which needs VERB"),
        ("--no-implicit-groups", "which needs VERB"),
        ("--as ana --resource pods", "--verb"),
        ("--as ana --path /x", "--verb"),
        ("--as ana --verb get --path /x --resource pods", "cannot be used with"),
        ("--as ana --verb get --path /x -n prod", "cannot be used with"),
        ("--as ana --verb get --path /x --name n", "cannot be used with"),
        ("--as ana --verb get --resource pods/", "something is missing after the last"),
        ("offline/questions.jsonl --as ana --verb get --path /x", "cannot be used with"),
        ("- -", "standard input can be read once"),
        ("--objects -", "cannot both come from standard input"),
        ("- --objects -", "cannot both come from standard input"),
    ] {
        let found = ask(question, &[]);
        assert_eq!((found.code, found.stdout.as_str()), (2, ""), "{question}");
        assert!(found.stderr.contains(want), "{question}: {}", found.stderr);
    }
    // With questions from a file, objects may be on standard input.
    let args = ["eval", "offline/questions.jsonl", "--objects", "-"];
    let role = br#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"a"}}"#;
    assert_eq!(run_with_stdin(&args, role).code, 1);
}

/// A review lists all groups itself; a question by flags gets the groups that a server adds to an authenticated user.
#[test]
fn a_question_by_flags_has_the_groups_of_a_real_request() {
    let healthz = |who: &str| ask(&format!("{who} --verb get --path /healthz"), &[]).code;
    assert_eq!(healthz("--as ana"), 0);
    assert_eq!(healthz("--as ana --no-implicit-groups"), 1);
    assert_eq!(healthz("--as system:anonymous"), 0, "everybody may, logged in or not");
    assert_eq!(healthz("--as system:anonymous --no-implicit-groups"), 1);
    let line = br#"{"user":"ana","nonResourceAttributes":{"path":"/healthz","verb":"get"}}"#;
    assert_eq!(run_with_stdin(&["eval"], line).code, 1);
    let account = "--as system:serviceaccount:kube-system:x --verb get --resource";
    let discovery =
        format!("{account} serviceaccounts.issuer --allow-unknown --no-implicit-groups");
    assert_eq!(ask(&discovery, &[]).code, 1);
}

#[test]
fn parts_of_a_resource_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policies");
    let policy = |spec: Value| {
        let version = "abac.authorization.kubernetes.io/v1beta1";
        json!({"apiVersion": version, "kind": "Policy", "spec": spec}).to_string()
    };
    let spec =
        json!({"user": "ana", "apiGroup": "apps", "resource": "deployments", "namespace": "prod"});
    fs::write(&path, policy(spec)).unwrap();
    let abac = ["--authorization-mode=ABAC", "--authorization-policy-file", path.to_str().unwrap()];
    for (question, want) in [
        ("--resource deployments.apps -n prod", 0),
        ("--resource deployments.apps/scale -n prod --name web", 0),
        ("--resource deployments -n prod", 0),
        ("--resource deploy -n prod", 0),
        ("--resource replicasets -n prod", 1),
        ("--resource deployments.apps -n dev", 1),
        ("--resource deployments.apps", 1),
    ] {
        let found = ask(&format!("--as ana --verb get {question}"), &abac);
        assert_eq!(found.code, want, "{question}");
    }
}

#[test]
fn a_webhook_that_would_be_asked_leaves_the_answer_open() {
    let prod = "--as ana --as-group dev --verb get --resource pods -n prod";
    let found = ask(prod, &GUARDED);
    assert_eq!((found.code, found.stderr.as_str()), (4, ""));
    let error =
        "webhook \"guard.example.com\" would decide, but the command does not call webhooks";
    assert_eq!(
        answer(&found),
        json!({"allowed": false, "evaluationError": error, "decidedBy": "guard.example.com"})
    );
    // What its conditions exclude goes on to the next authorizers.
    assert_eq!(ask("--as ana --verb get --resource pods -n dev", &GUARDED).code, 1);
    assert_eq!(ask("--as zoe --verb get --resource pods -n dev", &GUARDED).code, 0);
    // A condition that fails counts by the failure policy.
    let found = ask("--as ana --as-group system:masters --verb get --path /x", &GUARDED);
    assert_eq!(found.code, 0, "superusers come first");
    let found = ask("--as ana --verb get --path /healthz", &GUARDED);
    assert_eq!(found.code, 0, "false comes before an error");
    for (assumed, want) in [("allow", 0), ("deny", 1), ("no-opinion", 0)] {
        let flag = format!("--webhook=guard.example.com={assumed}");
        let found = ask(prod, &[&GUARDED[..], &[&flag]].concat());
        assert_eq!(found.code, want, "{assumed}");
        let denied = answer(&found).get("denied").cloned();
        assert_eq!(denied, (assumed == "deny").then_some(Value::Bool(true)), "{assumed}");
    }
    let found = ask(prod, &[&GUARDED[..], &["--webhook=guard=allow"]].concat());
    assert_eq!(found.code, 2, "{}", found.stderr);
}

#[test]
fn a_condition_that_fails_counts_by_the_failure_policy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("authorization.yaml");
    let sample = fs::read_to_string(
        std::path::Path::new(crate::program::TESTDATA).join("offline/authorization.yaml"),
    )
    .unwrap();
    let without_guard = sample.replace("    - expression: has(request.resourceAttributes)\n", "");
    assert_ne!(without_guard, sample);
    for (policy, code, denied) in [("Deny", 1, Some(Value::Bool(true))), ("NoOpinion", 0, None)] {
        let text =
            without_guard.replace("failurePolicy: Deny", &format!("failurePolicy: {policy}"));
        fs::write(&path, text).unwrap();
        let flags = [
            "--authorization-config",
            path.to_str().unwrap(),
            "--authorization-policy-file",
            "offline/policies.jsonl",
            "--no-webhooks",
        ];
        let found = ask("--as ana --verb get --path /healthz", &flags);
        assert_eq!(found.code, code, "{policy}: {}", found.stdout);
        assert_eq!(answer(&found).get("denied").cloned(), denied, "{policy}");
        if policy == "Deny" {
            let error = answer(&found)["evaluationError"].as_str().unwrap().to_owned();
            assert!(error.contains("no such key: resourceAttributes"), "{error}");
        }
    }
}

#[test]
fn a_webhook_of_flags_is_asked_about_everything() {
    let flags = [
        "--authorization-mode=Webhook,AlwaysAllow",
        "--authorization-webhook-config-file=unread",
        "--no-webhooks",
    ];
    let found = ask("--as ana --verb get --path /x", &flags);
    assert_eq!(found.code, 4);
    assert_eq!(answer(&found)["decidedBy"], "default");
    let assumed = [&flags[..], &["--webhook=default=no-opinion"]].concat();
    assert_eq!(ask("--as ana --verb get --path /x", &assumed).code, 0);
}

#[test]
fn modes_decide_in_their_order() {
    let question = "--as ana --verb get --path /x";
    for (modes, want) in [
        ("AlwaysAllow", 0),
        ("AlwaysDeny", 1),
        ("AlwaysDeny,AlwaysAllow", 0),
        ("Node,RBAC,AlwaysDeny", 1),
    ] {
        let found = ask(question, &[&format!("--authorization-mode={modes}")]);
        assert_eq!(found.code, want, "{modes}");
    }
    let found = ask(question, &["--authorization-mode=AlwaysDeny"]);
    assert_eq!(answer(&found)["reason"], "alwaysdeny: Everything is forbidden.");
}

/// Memory does not grow with the input, and time only with its length.
#[test]
fn many_questions_are_no_trouble() {
    let mut text = String::new();
    for n in 0..50_000 {
        let group = if n % 2 == 0 { "dev" } else { "x" };
        writeln!(
            text,
            r#"{{"user":"u{n}","groups":["{group}"],"resourceAttributes":{{"verb":"get","resource":"pods","namespace":"prod"}}}}"#
        )
        .unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("questions");
    fs::write(&file, text).unwrap();
    let found = run(&["eval", file.to_str().unwrap(), OBJECTS[0], OBJECTS[1]]);
    assert_eq!((found.code, found.stderr.as_str()), (1, ""));
    assert_eq!(found.stdout.lines().count(), 50_000);
    let n_allowed = found.stdout.matches("\"allowed\":true").count();
    assert_eq!(n_allowed, 25_000);
}
