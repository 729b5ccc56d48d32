//! `portcullis check` checks the connection files of webhooks.

use serde_json::Value;

use crate::guard::{Guard, allow, kubeconfig_of};
use crate::program::{run, run_with_stdin};

fn report(args: &[&str]) -> (i32, Value) {
    let found = run(&[&["check", "-o", "json"], args].concat());
    (found.code, serde_json::from_str(&found.stdout).unwrap())
}

/// The report mentions a referenced file only if it has findings.
#[test]
fn files_that_a_configuration_names_are_checked_with_it() {
    let guard = Guard::start(vec![allow()]);
    let config = guard.configuration("Deny", &[]);
    let (code, found) = report(&["--strict", &config]);
    assert_eq!((code, found["files"].as_array().map(Vec::len)), (0, Some(1)), "{found}");
    for (kubeconfig, is_error, want) in [
        ("clusters: 5", true, "kubeconfig"),
        ("", true, "no configuration has been provided"),
        (&kubeconfig_of(&guard.url(), "gone.crt"), true, "gone.crt"),
        (&kubeconfig_of("http://127.0.0.1:1/", "ca.crt"), false, "http"),
    ] {
        let path = guard.write("kubeconfig", kubeconfig);
        let (code, found) = report(&[&config]);
        assert_eq!(code, i32::from(is_error), "{want}: {found}");
        let findings = if is_error { &found["errors"] } else { &found["warnings"] };
        assert_eq!(findings[0]["file"], path, "{found}");
        assert!(findings[0]["line"].is_u64(), "{found}");
        assert!(findings.to_string().contains(want), "{want}: {findings}");
        assert_eq!(found["files"][0]["valid"], true, "the configuration itself is");
        // Where the files are elsewhere, nobody looks for them.
        assert_eq!(report(&["--assume-files-exist", &config]).0, 0);
    }
    // A file that is named and given is one.
    guard.write("kubeconfig", &kubeconfig_of(&guard.url(), "ca.crt"));
    let (code, found) = report(&["--strict", &config, &guard.kubeconfig()]);
    assert_eq!((code, found["files"].as_array().map(Vec::len)), (0, Some(2)), "{found}");
    assert_eq!(found["files"][1]["kind"], "kubeconfig");
    assert!(guard.requests().is_empty(), "nobody is called");
}

const HOOKS: &str = "apiVersion: kubeapiserverauthorization.config.k8s.io/v1alpha1
kind: ExternalAuthorizationHookConfiguration
externalAuthorizationHooks:
- name: first
  clientConfig: {url: 'https://a.example.com/'}
- name: second
  clientConfig: {service: {namespace: guards, name: second}}
";

#[test]
fn a_file_of_hooks_can_be_checked_by_itself() {
    let guard = Guard::start(vec![allow()]);
    let hooks = guard.write("hooks.yaml", HOOKS);
    let found = run(&["check", "--strict", &hooks]);
    assert_eq!((found.code, found.stderr.as_str()), (0, ""), "{}", found.stdout);
    assert_eq!(
        found.stdout,
        format!(
            "{hooks}: valid (ExternalAuthorizationHookConfiguration: 2 hooks: first, second)\n"
        )
    );
    assert_eq!(run_with_stdin(&["check", "-"], HOOKS.as_bytes()).code, 0);
    let bad = HOOKS.replace("name: second\n", "nmae: second\n");
    let found = run_with_stdin(&["check", "-"], bad.as_bytes());
    assert_eq!(found.code, 1);
    for part in ["<stdin>:6:3", "nmae", "did you mean `name`?"] {
        assert!(found.stdout.contains(part), "{part}: {}", found.stdout);
    }
    let missing = HOOKS.replace("{url: ", "{serverCaFile: gone.crt, url: ");
    let missing = guard.write("missing.yaml", &missing);
    let (code, found) = report(&[&missing]);
    assert_eq!(code, 1);
    assert!(found["errors"].to_string().contains("gone.crt"), "{found}");
    assert_eq!(report(&["--assume-files-exist", &missing]).0, 0);
}

/// The connection file that a configuration names must contain exactly one hook.
#[test]
fn a_configuration_names_files_of_one_hook() {
    let guard = Guard::start(vec![allow()]);
    let config = guard.configuration("Deny", &[]);
    guard.write("kubeconfig", HOOKS);
    let (code, found) = report(&[&config]);
    assert_eq!(code, 1);
    let want = "expected exactly one external authorization hook, got 2";
    assert!(found["errors"][0]["message"].as_str().unwrap().contains(want), "{found}");
    let (first, _) = HOOKS.split_once("- name: second").unwrap();
    guard.write("kubeconfig", first);
    assert_eq!(report(&["--strict", &config]).0, 0);
}
