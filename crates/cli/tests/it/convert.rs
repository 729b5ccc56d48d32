//! Tests of `portcullis convert`.

use crate::expected::assert_is;
use crate::program::{TESTDATA, command, finish, run, run_with_stdin};

const WEBHOOK: [&str; 3] = [
    "convert",
    "--authorization-mode=Webhook,RBAC",
    "--authorization-webhook-config-file=/etc/portcullis/guard.kubeconfig",
];

#[test]
fn flags_become_a_file() {
    let found = run(&WEBHOOK);
    assert_eq!(found.code, 0);
    assert_is(&format!("{TESTDATA}/convert.yaml"), &found.stdout);
    assert_is(&format!("{TESTDATA}/convert.notes.txt"), &found.stderr);
    let checked = run_with_stdin(
        &["check", "--strict", "--assume-files-exist", "-"],
        found.stdout.as_bytes(),
    );
    assert_eq!(checked.code, 0, "{}", checked.stdout);
}

#[test]
fn differences_are_printed_to_standard_error() {
    for (flags, want) in [
        (&["convert"][..], "No flag names the authorizers"),
        (
            &["convert", "--authorization-mode=ABAC", "--authorization-policy-file=p.jsonl"],
            "Keep --authorization-policy-file=p.jsonl",
        ),
        (&["convert", "--authorization-mode=AlwaysAllow"], "add --anonymous-auth=false"),
        (&[&WEBHOOK[..], &["--authorization-webhook-cache-authorized-ttl=0"]].concat(), "TTL"),
        (&WEBHOOK, "cannot be read (open /etc/portcullis/guard.kubeconfig: no such file"),
    ] {
        let found = run(flags);
        assert_eq!(found.code, 0, "{flags:?}: {}", found.stderr);
        assert!(found.stdout.starts_with("apiVersion: apiserver.config.k8s.io/v1\n"));
        assert!(found.stderr.contains(want), "{flags:?}: {}", found.stderr);
        assert!(found.stderr.lines().all(|line| line.starts_with("note: ")), "{}", found.stderr);
    }
    let off = ["convert", "--authorization-mode=AlwaysAllow", "--anonymous-auth=false"];
    assert!(!run(&off).stderr.contains("--anonymous-auth"));
}

#[test]
fn the_file_may_be_written_at_once() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("guard.kubeconfig"), "").unwrap();
    let mut command = command(&[
        "convert",
        "--authorization-mode=Webhook",
        "--authorization-webhook-config-file=guard.kubeconfig",
        "--output-file",
        "authorization.yaml",
    ]);
    command.current_dir(folder.path());
    let found = finish(command, b"");
    assert_eq!((found.code, found.stdout.as_str()), (0, ""), "{}", found.stderr);
    let text = std::fs::read_to_string(folder.path().join("authorization.yaml")).unwrap();
    // What was relative is not, for a file may not say it so.
    let absolute = folder.path().canonicalize().unwrap().join("guard.kubeconfig");
    let want = format!("kubeConfigFile: {}\n", absolute.display());
    assert!(text.contains(&want), "{text}");
    let found = run(&["convert", "--output-file", "/nowhere/at/all.yaml"]);
    assert_eq!((found.code, found.stdout.as_str()), (3, ""));
    assert!(found.stderr.starts_with("error: cannot write `/nowhere/at/all.yaml`: "));
}

/// Cases of the self-hosting proposal: several hooks in one file become several authorizers.
#[test]
fn a_file_of_hooks_becomes_several_authorizers() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hooks.yaml");
    let hooks = "apiVersion: kubeapiserverauthorization.config.k8s.io/v1alpha1
kind: ExternalAuthorizationHookConfiguration
externalAuthorizationHooks:
- name: first
  clientConfig: {url: 'https://a.example.com/'}
- name: second
  clientConfig: {url: 'https://b.example.com/'}
";
    std::fs::write(&file, hooks).unwrap();
    let flag = format!("--authorization-webhook-config-file={}", file.display());
    let found = run(&["convert", "--authorization-mode=Webhook", &flag]);
    assert_eq!(found.code, 0, "{}", found.stderr);
    for name in ["name: first\n", "name: second\n"] {
        assert!(found.stdout.contains(name), "{}", found.stdout);
    }
    assert!(found.stderr.contains("split it into"), "{}", found.stderr);
    std::fs::write(&file, hooks.replace("https", "http")).unwrap();
    let found = run(&["convert", "--authorization-mode=Webhook", &flag]);
    assert_eq!((found.code, found.stdout.as_str()), (3, ""));
    assert!(found.stderr.contains("hooks.yaml:5:"), "{}", found.stderr);
}

#[test]
fn what_no_server_starts_with_is_not_converted() {
    for (flags, want) in [
        (&["--authorization-mode=X"][..], "error: authorization-mode \"X\" is not a valid mode\n"),
        (&["--authorization-config=f"], "error: `f` is already a configuration file\n"),
        (&["--authorization-mode=Webhook"], "authorization config file not passed\n"),
        (
            &[WEBHOOK[1], WEBHOOK[2], "--authorization-webhook-version=v2"],
            "error: unsupported webhook authorizer version \"v2\"",
        ),
    ] {
        let found = run(&[&["convert"], flags].concat());
        assert_eq!((found.code, found.stdout.as_str()), (2, ""), "{flags:?}");
        assert!(found.stderr.contains(want), "{flags:?}: {}", found.stderr);
    }
}

#[test]
fn the_format_is_chosen_as_everywhere() {
    let yaml = run(&["convert", "--authorization-mode=Node,RBAC"]);
    for format in ["yaml", "human"] {
        let found = run(&["convert", "--authorization-mode=Node,RBAC", "-o", format]);
        assert_eq!((found.code, &found.stdout), (0, &yaml.stdout), "{format}");
    }
    let found = run(&["convert", "--authorization-mode=Node,RBAC", "-o", "json"]);
    let value: serde_json::Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!(value["kind"], "AuthorizationConfiguration");
    assert_eq!(run(&["convert", "-o", "authorization.yaml"]).code, 2);
}

#[test]
fn help_has_examples() {
    let found = run(&["convert", "--help"]);
    assert_eq!(found.code, 0);
    assert_is(&format!("{TESTDATA}/help-convert.txt"), &found.stdout);
}
