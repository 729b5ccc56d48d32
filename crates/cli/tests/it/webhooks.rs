//! `eval` and `explain` with webhooks: real calls and assumed answers.

use fake_http::{Answer, Leaf};
use serde_json::{Value, json};

use crate::expected::assert_is;
use crate::guard::{Guard, allow, deny, hang, no_opinion};
use crate::program::{Run, TESTDATA, run, run_with_stdin};

const QUESTION: [&str; 10] =
    ["--as", "ana", "--as-group", "dev", "--verb", "get", "--resource", "pods", "-n", "prod"];

fn ask(command: &str, config: &str, more: &[&str]) -> Run {
    run(&[&[command], &QUESTION[..], &["--authorization-config", config], more].concat())
}

fn answer(found: &Run) -> Value {
    serde_json::from_str(&found.stdout).unwrap()
}

#[test]
fn a_webhook_is_called_and_decides() {
    for (reply, code, want) in [
        (
            allow(),
            0,
            json!({
                "allowed": true, "reason": "the guard knows you", "decidedBy": "guard.example.com",
            }),
        ),
        (
            deny(),
            1,
            json!({
                "allowed": false, "denied": true, "reason": "not on my watch",
                "decidedBy": "guard.example.com",
            }),
        ),
        (no_opinion(), 1, json!({"allowed": false})),
    ] {
        let guard = Guard::start(vec![reply]);
        let found = ask("eval", &guard.configuration("Deny", &[]), &[]);
        assert_eq!((found.code, found.stderr.as_str()), (code, ""), "{}", found.stdout);
        assert_eq!(answer(&found), want);
        let requests = guard.requests();
        assert_eq!(requests.len(), 1);
        assert_eq!(requests[0].method, "POST");
        assert_eq!(requests[0].target, "/authorize?timeout=1s");
        let body: Value = serde_json::from_slice(&requests[0].body).unwrap();
        assert_eq!(body["spec"]["user"], "ana");
        assert_eq!(body["spec"]["groups"], json!(["dev", "system:authenticated"]));
    }
}

#[test]
fn match_conditions_come_before_the_call() {
    let guard = Guard::start(vec![deny()]);
    let only_staging = "matchConditions: [{expression: \"request.resourceAttributes.namespace == \
                        'staging'\"}]";
    let config = guard.configuration("Deny", &[only_staging]);
    assert_eq!(answer(&ask("eval", &config, &[])), json!({"allowed": false}));
    assert_eq!(guard.requests(), [], "nobody was called");
    let found = ask("explain", &config, &[]);
    let want = "not called, because a match condition is false\n";
    assert!(found.stdout.contains(want), "{}", found.stdout);
}

/// As in the server, an answer is kept for as long as the configuration says.
#[test]
fn the_same_question_is_put_once() {
    let guard = Guard::start(vec![allow()]);
    let config = guard.configuration("Deny", &[]);
    let question = json!({"user": "ana", "nonResourceAttributes": {"path": "/x", "verb": "get"}});
    let lines = format!("{question}\n").repeat(3);
    let found = run_with_stdin(&["eval", "--authorization-config", &config], lines.as_bytes());
    assert_eq!((found.code, found.stdout.lines().count()), (0, 3));
    assert_eq!(guard.requests().len(), 1);
    let config = guard.configuration("Deny", &["cacheAuthorizedRequests: false"]);
    let found = run_with_stdin(&["explain", "--authorization-config", &config], lines.as_bytes());
    assert_eq!(found.code, 0);
    assert_eq!(guard.requests().len(), 3);
}

/// A peer that hangs, one whose certificate is for somebody else, one whose certificate is over, and
/// one that answers nonsense: the failure policy decides, and the error says why.
#[test]
fn where_a_call_fails_the_failure_policy_decides() {
    let bad = [
        (Guard::start(vec![hang()]), "context deadline exceeded"),
        (
            Guard::with_certificate(vec![allow()], &Leaf::server(&["elsewhere.example.com"])),
            "x509: ",
        ),
        (Guard::with_certificate(vec![allow()], &Leaf::loopback().expired()), "x509: "),
        (Guard::start(vec![Answer::json("nonsense")]), ""),
        (Guard::start(vec![allow().status(403)]), ""),
    ];
    for (guard, why) in bad {
        for (policy, decided_by) in [("Deny", Some("guard.example.com")), ("NoOpinion", None)] {
            let found = ask("eval", &guard.configuration(policy, &[]), &[]);
            assert_eq!(found.code, 1, "{policy} {why}: {}", found.stdout);
            let answer = answer(&found);
            assert_eq!(answer.get("decidedBy").and_then(Value::as_str), decided_by, "{answer}");
            let error = answer["evaluationError"].as_str().unwrap();
            assert!(error.contains(why), "{why}: {error}");
        }
        assert!(guard.requests().iter().all(|request| request.method == "POST"));
    }
}

#[test]
fn a_webhook_that_is_not_there_fails_like_any_other() {
    let guard = Guard::start(vec![allow()]);
    let config = guard.configuration("Deny", &[]);
    let nobody = guard.write("ca.crt", &std::fs::read_to_string(guard.path("ca.crt")).unwrap());
    let url = format!("https://{}/", fake_http::NOBODY);
    guard.write("kubeconfig", &crate::guard::kubeconfig_of(&url, &nobody));
    let found = ask("eval", &config, &[]);
    assert_eq!(found.code, 1);
    let error = answer(&found)["evaluationError"].as_str().unwrap().to_owned();
    assert!(error.contains("connection refused"), "{error}");
    assert_eq!(guard.requests(), []);
}

#[test]
fn explanations_show_the_call() {
    let condition = "matchConditions: [{expression: \"'dev' in request.groups\"}]";
    for (reply, expected, code) in [
        (allow(), "called-allow", 0),
        (deny(), "called-deny", 1),
        (allow().status(500), "called-error", 1),
    ] {
        let guard = Guard::start(vec![reply]);
        let found = ask("explain", &guard.configuration("Deny", &[condition]), &[]);
        assert_eq!((found.code, found.stderr.as_str()), (code, ""), "{}", found.stdout);
        let shown = masked(&found.stdout, &guard);
        assert_is(&format!("{TESTDATA}/offline/{expected}.txt"), &shown);
        let found = ask("explain", &guard.configuration("Deny", &[condition]), &["-o", "json"]);
        let explanation = answer(&found);
        let trace = explanation["trace"].as_array().unwrap();
        let guard = trace.iter().find(|node| node["fields"]["name"] == "guard.example.com");
        let events = guard.unwrap()["children"].as_array().unwrap();
        let event = events.iter().find(|event| event["kind"] == "webhook").unwrap();
        assert_eq!(event["fields"]["cache"], "miss");
        assert!(event["fields"]["tookMicros"].is_i64(), "{event}");
    }
}

/// Replaces the durations and the address of the webhook, which differ from run to run.
fn masked(text: &str, guard: &Guard) -> String {
    let mut shown = String::new();
    for line in text.replace(&guard.url(), "https://guard/authorize").lines() {
        match line.split_once(", took ") {
            Some((before, after)) => {
                let rest = after.split_once(',').map(|(_, rest)| format!(",{rest}"));
                shown.push_str(&format!("{before}, took TIME{}\n", rest.unwrap_or_default()));
            }
            None => shown.push_str(&format!("{line}\n")),
        }
    }
    shown
}

#[test]
fn something_may_stand_in_for_a_webhook() {
    let guard = Guard::start(vec![deny()]);
    for (policy, stands_in, code) in [
        ("Deny", "--webhook=guard.example.com=allow", 0),
        ("NoOpinion", "--webhook=guard.example.com=deny", 1),
        ("Deny", "--webhook=guard.example.com=no-opinion", 1),
        ("Deny", "--webhook=guard.example.com=error", 1),
        ("NoOpinion", "--webhook=guard.example.com=error", 1),
        ("Deny", "--no-webhooks", 4),
        ("NoOpinion", "--no-webhooks", 4),
    ] {
        let config = guard.configuration(policy, &[]);
        // How it is reached does not matter then.
        std::fs::remove_file(guard.kubeconfig()).unwrap();
        for command in ["eval", "explain"] {
            let found = ask(command, &config, &[stands_in]);
            let shown = (policy, stands_in, &found.stdout, &found.stderr);
            assert_eq!(found.code, code, "{shown:?}");
        }
        let answer = answer(&ask("eval", &config, &[stands_in]));
        let has_decided = policy == "Deny" || !stands_in.ends_with("error");
        let has_decided = has_decided && !stands_in.ends_with("no-opinion");
        assert_eq!(answer.get("decidedBy").is_some(), has_decided, "{policy} {stands_in}");
        guard.write("kubeconfig", "");
    }
    assert_eq!(guard.requests(), [], "nobody was called");
}

#[test]
fn only_a_webhook_that_exists_can_be_stood_in_for() {
    let guard = Guard::start(vec![deny()]);
    let config = guard.configuration("Deny", &[]);
    let found = ask("eval", &config, &["--webhook=guard.example.con=allow"]);
    assert_eq!((found.code, found.stdout.as_str()), (2, ""));
    assert_eq!(
        found.stderr,
        "error: --webhook: no webhook is named `guard.example.con`, did you mean \
         `guard.example.com`?\n"
    );
}

/// The commands read the connection files of webhooks before they answer a question.
#[test]
fn a_webhook_that_can_not_be_reached_by_its_files_is_no_webhook() {
    let guard = Guard::start(vec![allow()]);
    let config = guard.configuration("NoOpinion", &[]);
    for (kubeconfig, want) in [
        (Some("clusters: 5"), "kubeconfig:1:11"),
        (Some(""), "no configuration has been provided"),
        (Some(&crate::guard::kubeconfig_of("https://x/", "gone.crt")[..]), "gone.crt"),
        (None, "no such file or directory"),
    ] {
        match kubeconfig {
            Some(text) => drop(guard.write("kubeconfig", text)),
            None => std::fs::remove_file(guard.kubeconfig()).unwrap(),
        }
        for command in ["eval", "explain"] {
            let found = ask(command, &config, &[]);
            assert_eq!((found.code, found.stdout.as_str()), (3, ""), "{want}");
            assert!(found.stderr.contains(want), "{want}: {}", found.stderr);
        }
        // Lists are made without calling anybody.
        let who = run(&["who-can", "get", "pods", "--authorization-config", &config]);
        assert_eq!(who.code, 4, "{want}: {}", who.stderr);
        let rules = run(&["rules", "--as", "ana", "--authorization-config", &config]);
        assert_eq!(rules.code, 0, "{want}: {}", rules.stderr);
    }
    assert_eq!(guard.requests(), []);
}

#[test]
fn lists_say_what_a_webhook_does_not() {
    let guard = Guard::start(vec![allow()]);
    let config = guard.configuration("NoOpinion", &[]);
    let who = run(&["who-can", "get", "pods", "--authorization-config", &config]);
    assert_eq!(who.code, 4);
    let want = "note: guard.example.com: webhook authorizer cannot enumerate subjects\n";
    assert!(who.stderr.contains(want), "{}", who.stderr);
    let rules = run(&["rules", "--as", "ana", "--authorization-config", &config]);
    let want = "warning: webhook authorizer does not support user rule resolution\n";
    assert!(rules.stderr.contains(want), "{}", rules.stderr);
    let assumed = ["--authorization-config", &config, "--webhook=guard.example.com=no-opinion"];
    let who = run(&[&["who-can", "get", "pods"], &assumed[..]].concat());
    assert_eq!((who.code, who.stderr.as_str()), (0, ""));
    assert_eq!(guard.requests(), []);
}

/// Each webhook of a file of hooks has its own name, and one may be stood in for.
#[test]
fn hooks_of_one_file_are_told_apart() {
    let guard = Guard::start(vec![no_opinion(), allow()]);
    let hook = |name: &str| {
        json!({
            "name": name,
            "clientConfig": {"url": guard.url(), "serverCaFile": guard.path("ca.crt")},
        })
    };
    let hooks = json!({
        "apiVersion": "kubeapiserverauthorization.config.k8s.io/v1alpha1",
        "kind": "ExternalAuthorizationHookConfiguration",
        "externalAuthorizationHooks": [hook("first"), hook("second")],
    });
    let file = guard.write("hooks.json", &hooks.to_string());
    let flags = [
        "--authorization-mode=Webhook,RBAC",
        "--authorization-webhook-version=v1",
        "--authorization-webhook-config-file",
        &file,
    ];
    let asked = |more: &[&str]| run(&[&["eval"], &QUESTION[..], &flags, more].concat());
    let found = asked(&[]);
    assert_eq!(found.code, 0, "{}", found.stderr);
    assert_eq!(answer(&found)["decidedBy"], "second");
    assert_eq!(guard.requests().len(), 2);
    let found = asked(&["--webhook=first=deny"]);
    assert_eq!((found.code, &answer(&found)["decidedBy"]), (1, &json!("first")));
    assert_eq!(guard.requests().len(), 0);
    let found = asked(&["--webhook=default=deny"]);
    assert_eq!(found.code, 2, "{}", found.stderr);
}

/// Where the services of a cluster are, only its server knows: a call fails, and says so.
#[test]
fn a_service_of_the_cluster_is_out_of_reach() {
    let guard = Guard::start(vec![allow()]);
    let hooks = json!({
        "apiVersion": "kubeapiserverauthorization.config.k8s.io/v1alpha1",
        "kind": "ExternalAuthorizationHookConfiguration",
        "externalAuthorizationHooks": [{
            "name": "inside",
            "clientConfig": {"service": {"namespace": "guards", "name": "second"}},
        }],
    });
    let config = guard.configuration("Deny", &[]);
    guard.write("kubeconfig", &hooks.to_string());
    let found = ask("eval", &config, &[]);
    assert_eq!(found.code, 1, "{}", found.stderr);
    let error = answer(&found)["evaluationError"].as_str().unwrap().to_owned();
    let want = "service guards/second is known to the server of its cluster only";
    assert!(error.contains(want), "{error}");
    assert_eq!(ask("eval", &config, &["--webhook=guard.example.com=allow"]).code, 0);
}
