//! The authorization flags of the server. Tests of `authz-reload` check the options that no flag sets.

use serde_json::{Value, json};

use crate::guard::{Guard, allow, in_either_version};
use crate::program::{Run, command, finish, run, run_with_stdin};

const EXCLUSIVE: &str = "error: --authorization-config cannot be specified when \
    --authorization-mode or --authorization-webhook-* flags are defined\n";

const QUESTION: &str = r#"{"user":"ana","resourceAttributes":{"verb":"get","group":"apps","resource":"deployments","namespace":"prod"}}"#;

/// Starts a server with invalid flags, and returns its error. The server must not create its data
/// directory, so it cannot have listened.
#[track_caller]
pub(crate) fn refused_at_start(flags: &[&str], code: i32) -> String {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let place = ["serve", "--secure-port=0", "--data-dir", data.to_str().unwrap()];
    let found = run(&[&place[..], flags].concat());
    assert_eq!((found.code, found.stdout.as_str()), (code, ""), "{flags:?}: {}", found.stderr);
    assert!(!data.exists(), "{flags:?}");
    found.stderr
}

/// The authorizers that a chain of these flags has, by name, as `explain` shows them.
fn chain(flags: &[&str]) -> Vec<String> {
    let question = ["explain", "-o", "json", "--as", "ana", "--verb", "get", "--path", "/nowhere"];
    let found = run(&[&question[..], flags].concat());
    assert!(found.code <= 1, "{flags:?}: {}", found.stderr);
    let explanation: Value = serde_json::from_str(&found.stdout).unwrap();
    let asked = explanation["trace"].as_array().unwrap().iter();
    let asked = asked.map(|node| node["fields"]["name"].clone());
    let not_asked = explanation["notAsked"].as_array().cloned().unwrap_or_default();
    let names = asked.skip(1).chain(not_asked);
    names.map(|name| name.as_str().unwrap().to_owned()).collect()
}

/// Unlike kube-apiserver, which allows everything without flags, Portcullis then uses Node and RBAC.
#[test]
fn modes_make_the_chain() {
    assert_eq!(chain(&[]), ["node", "rbac"], "no flags");
    let both = ["--authorization-mode=AlwaysAllow,AlwaysDeny"];
    assert_eq!(chain(&both), ["alwaysallow", "alwaysdeny"], "two modes");
    let twice = ["--authorization-mode=Node", "--authorization-mode=RBAC"];
    assert_eq!(chain(&twice), ["node", "rbac"], "repeated flag");
}

#[test]
fn flags_that_contradict_each_other() {
    for (case, flags, want) in [
        (
            "unknown mode",
            &["--authorization-mode=DoesNotExist"][..],
            "error: authorization-mode \"DoesNotExist\" is not a valid mode\n",
        ),
        (
            "repeated mode",
            &["--authorization-mode=AlwaysAllow,AlwaysAllow"],
            "error: authorization-mode [\"AlwaysAllow\" \"AlwaysAllow\"] has mode specified more \
             than once\n",
        ),
        (
            "mode ABAC",
            &["--authorization-mode=ABAC"],
            "error: authorization-mode ABAC's authorization policy file not passed\n",
        ),
        (
            "policy file without mode ABAC",
            &["--authorization-policy-file=p"],
            "error: cannot specify --authorization-policy-file without mode ABAC\n",
        ),
        (
            "mode Webhook without a file",
            &["--authorization-mode=Webhook"],
            "error: authorization-mode Webhook's authorization config file not passed\n",
        ),
        (
            "webhook file without mode Webhook",
            &["--authorization-mode=AlwaysAllow", "--authorization-webhook-config-file=w"],
            "error: cannot specify --authorization-webhook-config-file without mode Webhook\n",
        ),
    ] {
        assert_eq!(refused_at_start(flags, 2), want, "{case}");
    }
    let all = refused_at_start(&["--authorization-mode=A,ABAC,Webhook"], 2);
    assert_eq!(all.lines().count(), 3, "all faults at once: {all}");
    let abac = ["--authorization-mode=ABAC", "--authorization-policy-file=offline/policies.jsonl"];
    assert_eq!(chain(&abac), ["abac"], "mode ABAC");
}

#[test]
fn a_configuration_excludes_flags_even_with_their_defaults() {
    for (case, flag) in [
        ("mode beside a file", "--authorization-mode=RBAC"),
        ("webhook flag beside a file", "--authorization-webhook-version=v1beta1"),
        ("webhook flag beside a file", "--authorization-webhook-cache-authorized-ttl=5m0s"),
        ("webhook flag beside a file", "--authorization-webhook-cache-unauthorized-ttl=30s"),
        ("webhook flag beside a file", "--authorization-webhook-config-file=w"),
    ] {
        // The server does not read the file.
        let flags = ["--authorization-config=missing.yaml", flag];
        assert_eq!(refused_at_start(&flags, 2), EXCLUSIVE, "{case} {flag}");
    }
}

#[test]
fn policies_of_a_configuration_come_by_flag() {
    let config = "--authorization-config=offline/authorization.yaml";
    let policies = "--authorization-policy-file=offline/policies.jsonl";
    let names = chain(&[config, policies, "--no-webhooks"]);
    assert_eq!(names, ["guard.example.com", "node", "rbac", "abac"], "policies of a configuration");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("authorization.yaml");
    let text = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n\
                authorizers: [{type: ABAC, name: abac}]\n";
    std::fs::write(&file, text).unwrap();
    let config = format!("--authorization-config={}", file.display());
    let told = refused_at_start(&[&config], 3);
    let want = "error: type ABAC needs a policy file: set --authorization-policy-file\n";
    assert!(told.starts_with(want) && told.contains("yaml:3:22"), "ABAC without policies: {told}");
}

#[test]
fn underscores_are_an_old_spelling() {
    let old = ["--authorization_mode=AlwaysDeny", "--authorization_mode=AlwaysAllow"];
    let found =
        run(&[&["eval", "--as", "ana", "--verb", "get", "--path", "/x"], &old[..]].concat());
    assert_eq!(found.code, 0);
    assert_eq!(
        found.stderr,
        "warning: --authorization_mode is an old spelling; use --authorization-mode\n"
    );
    let told =
        refused_at_start(&["--authorization_webhook_version=v1", "--authorization_config=f"], 2);
    assert_eq!(told.matches("warning: ").count(), 2, "{told}");
    assert!(told.ends_with(EXCLUSIVE), "{told}");
    refused_at_start(&["--authorization-modes=RBAC"], 2);
}

/// Answers the question as often as there are lines, with mode Webhook and these flags.
fn ask_by_flags(guard: &Guard, flags: &[&str], n_lines: usize) -> Run {
    let mode = ["eval", "--authorization-mode=Webhook"];
    let mut command = command(&[&mode[..], flags].concat());
    // A path may be relative to the working directory.
    command.current_dir(guard.path(""));
    command.arg("--authorization-webhook-config-file=kubeconfig");
    finish(command, format!("{QUESTION}\n").repeat(n_lines).as_bytes())
}

#[test]
fn a_webhook_of_flags_is_sent_v1beta1() {
    let guard = Guard::start(in_either_version(true));
    let found = ask_by_flags(&guard, &[], 1);
    assert_eq!((found.code, found.stderr.as_str()), (0, ""), "relative path");
    let answer: Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!(answer["decidedBy"], "default");
    let bodies = guard.bodies();
    assert_eq!(bodies[0]["apiVersion"], "authorization.k8s.io/v1beta1", "review version");
    assert_eq!(bodies[0]["spec"]["user"], "ana");
    assert_eq!(bodies[0]["spec"]["resourceAttributes"]["group"], "apps", "review version");
    let v1 = ["--authorization-webhook-version=v1"];
    assert_eq!(ask_by_flags(&guard, &v1, 1).code, 0);
    assert_eq!(guard.bodies()[0]["apiVersion"], "authorization.k8s.io/v1");
}

#[test]
fn answers_are_kept_unless_the_time_is_zero() {
    let authorized = "--authorization-webhook-cache-authorized-ttl";
    let unauthorized = "--authorization-webhook-cache-unauthorized-ttl";
    for (is_allowed, code) in [(true, 0), (false, 1)] {
        let guard = Guard::start(in_either_version(is_allowed));
        let calls = |flags: &[&str]| {
            let found = ask_by_flags(&guard, flags, 3);
            assert_eq!(found.code, code, "{flags:?}");
            guard.requests().len()
        };
        let (own, other) =
            if code == 0 { (authorized, unauthorized) } else { (unauthorized, authorized) };
        assert_eq!(calls(&[]), 1);
        assert_eq!(calls(&[&format!("{own}=0")]), 3, "lifetime of zero");
        assert_eq!(calls(&[&format!("{own}=-1s")]), 3);
        assert_eq!(calls(&[&format!("{other}=0s")]), 1);
    }
}

#[test]
fn there_are_two_versions() {
    let guard = Guard::start(vec![allow()]);
    let file = format!("--authorization-webhook-config-file={}", guard.kubeconfig());
    let flags = ["--authorization-mode=Webhook", &file, "--authorization-webhook-version=v2"];
    let want = "error: unsupported webhook authorizer version \"v2\", supported versions are \
                \"v1\", \"v1beta1\"\n";
    assert_eq!(refused_at_start(&flags, 2), want, "unknown version");
    let question = ["eval", "--as", "ana", "--verb", "get", "--path", "/x"];
    let found = run(&[&question[..], &flags].concat());
    assert_eq!((found.code, found.stderr.as_str()), (2, want));
}

#[test]
fn the_gate_of_the_feature() {
    let gate = "--feature-gates=StructuredAuthorizationConfiguration=false";
    assert_eq!(
        refused_at_start(&[gate, "--authorization-config=missing.yaml"], 2),
        "error: --authorization-config cannot be used without enabling \
         StructuredAuthorizationConfiguration feature flag\n",
        "disabled feature gate"
    );
    assert_eq!(chain(&[gate, "--authorization-mode=RBAC"]), ["rbac"], "disabled feature gate");
    for (gates, want) in [
        ("Foo=true", "unrecognized feature gate: Foo"),
        ("StructuredAuthorizationConfiguration", "missing bool value"),
        ("StructuredAuthorizationConfiguration=maybe", "strconv.ParseBool"),
    ] {
        let told = refused_at_start(&[&format!("--feature-gates={gates}")], 2);
        assert!(told.contains(want), "{gates}: {told}");
    }
}

/// `convert` prints the custom values. A test of `authz-reload` checks that the chain has them.
#[test]
fn custom_values_are_translated() {
    let guard = Guard::start(vec![allow()]);
    let file = format!("--authorization-webhook-config-file={}", guard.kubeconfig());
    let found = run(&[
        "convert",
        "--authorization-mode=Webhook",
        &file,
        "--authorization-webhook-version=v1",
        "--authorization-webhook-cache-authorized-ttl=1m",
        "--authorization-webhook-cache-unauthorized-ttl=2s",
    ]);
    assert_eq!(found.code, 0, "{}", found.stderr);
    for line in [
        "- type: Webhook\n",
        "  name: default\n",
        "    timeout: 30s\n",
        "    authorizedTTL: 1m0s\n",
        "    unauthorizedTTL: 2s\n",
        "    subjectAccessReviewVersion: v1\n",
        "    failurePolicy: NoOpinion\n",
    ] {
        assert!(found.stdout.contains(line), "custom values: {line}: {}", found.stdout);
    }
    assert!(!found.stdout.contains("matchConditions"), "custom values: {}", found.stdout);
    // What it writes is a configuration by which the same answers are given.
    let checked = run_with_stdin(&["check", "--strict", "-"], found.stdout.as_bytes());
    assert_eq!(checked.code, 0, "{}", checked.stdout);
    let config = guard.write("authorization.yaml", &found.stdout);
    let answered =
        run_with_stdin(&["eval", "--authorization-config", &config], QUESTION.as_bytes());
    let answer: Value = serde_json::from_str(&answered.stdout).unwrap();
    let want = json!({
        "allowed": true, "reason": "the guard knows you", "decidedBy": "default",
    });
    assert_eq!(answer, want);
}

/// The flags of dynamic admission are refused before anything is made.
#[test]
fn flags_of_admission_that_make_no_sense() {
    for (flags, code, want) in [
        (
            &["--admission-sync-poll-interval=10s"][..],
            2,
            "error: --admission-sync-poll-interval must not be longer than \
             --admission-sync-max-staleness",
        ),
        (&["--admission-sync-mode=push"], 2, "invalid value 'push' for '--admission-sync-mode"),
        (
            &["--admission-webhook-client-timeout=1m"],
            2,
            "for '--admission-webhook-client-timeout <DURATION>': must not be longer than 30s",
        ),
        (&["--admission-webhook-kubeconfig=missing"], 3, "open missing: no such file or directory"),
        (&["--admission-webhook-kubeconfig=valid.yaml"], 3, "valid.yaml:"),
    ] {
        let told = refused_at_start(flags, code);
        assert!(told.contains(want), "{flags:?}: {told}");
    }
}
