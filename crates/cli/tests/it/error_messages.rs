//! The program prints every cause of an error once.

use std::fs;
use std::net::TcpListener;

use crate::program::{Run, run};

/// Parts of a message that are shorter may repeat by chance, such as a line number.
const PART_CHARS_MIN: usize = 8;

/// Asserts that no part between two colons occurs twice in a line.
#[track_caller]
fn assert_no_repetition(run: &Run) {
    assert!(run.stderr.contains("error: "), "{run:?}");
    for line in run.stderr.lines() {
        let mut parts: Vec<&str> =
            line.split(": ").filter(|part| part.chars().count() >= PART_CHARS_MIN).collect();
        let n_parts = parts.len();
        parts.sort_unstable();
        parts.dedup();
        assert_eq!(parts.len(), n_parts, "a cause is printed twice: {line}");
    }
}

#[test]
fn a_failed_start_prints_each_cause_once() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let bad = folder.path().join("bad");
    fs::write(&bad, "nonsense").unwrap();
    let bad = bad.to_str().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for flags in [
        &["--secure-port", &port][..],
        &["--token-auth-file=/nowhere"],
        &["--token-auth-file", bad],
        &["--client-ca-file=/nowhere"],
        &["--client-ca-file", bad],
        &["--requestheader-client-ca-file", bad],
        &["--service-account-signing-key-file=/nowhere"],
        &["--service-account-signing-key-file", bad],
        &["--service-account-key-file", bad],
        &["--tls-cert-file=/nowhere", "--tls-private-key-file=/nowhere"],
        &["--tls-cert-file", bad, "--tls-private-key-file", bad],
        &["--audit-policy-file", bad, "--audit-log-path=-"],
        &["--audit-policy-file=/nowhere", "--audit-log-path=-"],
        &["--authorization-config=/nowhere"],
        &["--authorization-config", bad],
        &["--authorization-mode=ABAC", "--authorization-policy-file", bad],
        &["--authorization-mode=Webhook", "--authorization-webhook-config-file", bad],
        &["--admission-webhook-kubeconfig", bad],
        &["--store=etcd"],
        &["--data-dir", bad],
    ] {
        // A flag that is given may not be repeated.
        let defaults = [("--secure-port", "0"), ("--data-dir", data.to_str().unwrap())];
        let defaults = defaults.into_iter().filter(|(flag, _)| !flags.contains(flag));
        let defaults: Vec<&str> = defaults.flat_map(|(flag, value)| [flag, value]).collect();
        let found = run(&[&["serve"], &defaults[..], flags].concat());
        assert_ne!(found.code, 0, "{flags:?}");
        assert_no_repetition(&found);
    }
}

#[test]
fn offline_commands_print_each_cause_once() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("missing/authorization.yaml");
    let question = ["eval", "--as", "ana", "--verb", "get", "--path", "/x"];
    for args in [
        &["check", "missing.yaml"][..],
        &["convert", "--authorization-mode=RBAC", "--output-file", output.to_str().unwrap()],
        &["convert", "--authorization-config=f"],
        &[&question[..], &["--objects", "missing"]].concat(),
        &[&question[..], &["--authorization-config=missing.yaml"]].concat(),
        &["eval", "missing.jsonl"],
        &["explain", "--admission", "missing.yaml", "--as", "ana"],
        &["rules", "--as", "ana", "--objects", "missing"],
        &["who-can", "get", "pods", "--objects", "missing"],
    ] {
        let found = run(args);
        assert_ne!(found.code, 0, "{args:?}");
        assert_no_repetition(&found);
    }
}
