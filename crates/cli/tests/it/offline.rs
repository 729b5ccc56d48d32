//! The flags, file errors and streams of all commands that answer questions from files.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::Stdio;

use crate::program::{Run, command, run, run_with_stdin};

/// The flags that name the sample objects.
const OBJECTS: [&str; 2] = ["--objects", "offline/manifests"];

/// A question that the objects answer with yes, by flags.
const YES: [&str; 10] =
    ["--as", "ana", "--as-group", "dev", "--verb", "get", "--resource", "pods", "-n", "prod"];

/// The commands with arguments that suffice.
const COMMANDS: [&[&str]; 4] = [
    &["eval", "--as", "ana", "--verb", "get", "--path", "/healthz"],
    &["explain", "--as", "ana", "--verb", "get", "--path", "/healthz"],
    &["who-can", "get", "/healthz"],
    &["rules", "--as", "ana"],
];

fn with(command: &[&str], more: &[&str]) -> Run {
    run(&[command, more].concat())
}

#[track_caller]
fn assert_usage(args: &[&str], want: &str) {
    let found = run(args);
    assert_eq!((found.code, found.stdout.as_str()), (2, ""), "{args:?}");
    assert!(found.stderr.contains(want), "{args:?}: {}", found.stderr);
}

#[test]
fn every_command_answers() {
    for command in COMMANDS {
        let found = run(command);
        assert_eq!((found.code, found.stderr.as_str()), (0, ""), "{command:?}");
        assert_ne!(found.stdout, "", "{command:?}");
    }
}

#[test]
fn flags_are_those_of_the_server() {
    for command in COMMANDS {
        let usage = |more: &[&str], want: &str| assert_usage(&[command, more].concat(), want);
        usage(&["--authorization-mode=X"], "error: authorization-mode \"X\" is not a valid mode\n");
        usage(
            &["--authorization-mode=RBAC,RBAC"],
            "error: authorization-mode [\"RBAC\" \"RBAC\"] has mode specified more than once\n",
        );
        usage(
            &["--authorization-mode=ABAC"],
            "error: authorization-mode ABAC's authorization policy file not passed\n",
        );
        usage(
            &["--authorization-policy-file=p"],
            "error: cannot specify --authorization-policy-file without mode ABAC\n",
        );
        usage(
            &["--authorization-mode=Webhook"],
            "error: authorization-mode Webhook's authorization config file not passed\n",
        );
        // The file is not even looked at.
        usage(
            &["--authorization-config=missing.yaml", "--authorization-mode=RBAC"],
            "error: --authorization-config cannot be specified when --authorization-mode or \
             --authorization-webhook-* flags are defined\n",
        );
        usage(&["--authorization-modes=RBAC"], "unexpected argument '--authorization-modes'");
        usage(&["--objects", "-", "-"], "standard input can be read once");
        usage(&["--bootstrap-policy=maybe"], "invalid value 'maybe'");
        usage(&["--webhook=x"], "write NAME=allow, NAME=deny, NAME=no-opinion or NAME=error");
        usage(&["--webhook=x=allow"], "error: --webhook: no webhook is named `x`\n");
        let found = with(command, &["--authorization_mode=AlwaysAllow"]);
        assert_eq!(found.code, 0, "{command:?}");
        let want = "warning: --authorization_mode is an old spelling; use --authorization-mode\n";
        assert_eq!(found.stderr, want, "{command:?}");
    }
}

#[test]
fn wrong_files_are_told_and_nothing_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("role.yaml"), ROLE.replace("verbs", "verbz")).unwrap();
    fs::write(path("config.yaml"), "kind: x").unwrap();
    fs::write(path("policy.jsonl"), "{\"user\":\"ana\"}\n{\"user\":5}\n").unwrap();
    let (role, config, policy) = (path("role.yaml"), path("config.yaml"), path("policy.jsonl"));
    let missing = path("missing");
    for command in COMMANDS {
        let refused = |more: &[&str], want: &[&str]| {
            let found = with(command, more);
            assert_eq!((found.code, found.stdout.as_str()), (3, ""), "{command:?} {more:?}");
            for want in want {
                assert!(found.stderr.contains(want), "{command:?} {more:?}: {}", found.stderr);
            }
        };
        refused(&["--objects", &role], &["verbz", "role.yaml:"]);
        refused(&["--objects", &missing], &["missing: no such file or directory\n"]);
        refused(&["--authorization-config", &config], &["error: ", "config.yaml:1:"]);
        refused(&["--authorization-config", &missing], &["missing: no such file or directory\n"]);
        let abac = ["--authorization-mode=ABAC", "--authorization-policy-file"];
        refused(&[&abac[..], &[&policy]].concat(), &["policy.jsonl:2:9"]);
        refused(&[&abac[..], &[&missing]].concat(), &["missing: no such file or directory\n"]);
        // Everything that is wrong at once.
        let all = ["--authorization-config", &config, "--objects", &role, &missing];
        refused(&all, &["config.yaml:1:", "verbz", "missing: no such file"]);
        // A configuration with ABAC needs a policy file.
        let webhook = "--webhook=guard.example.com=allow";
        let config = ["--authorization-config", "offline/authorization.yaml", webhook];
        refused(&config, &["error: authorizer ABAC needs --authorization-policy-file\n"]);
    }
}

#[cfg(unix)]
#[test]
fn a_folder_on_standard_input_is_no_input() {
    for (args, want) in [
        (&["eval"][..], "error: read <stdin>: is a directory\n"),
        (&["rules", "--as", "ana", "--objects", "-"], "error: read <stdin>: is a directory\n"),
    ] {
        let mut command = command(args);
        command.stdin(fs::File::open("/").unwrap()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{args:?}");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), want, "{args:?}");
    }
}

const ROLE: &str = "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: metrics}
rules: [{verbs: [get], nonResourceURLs: [/metrics]}]
";

const BINDING: &str = "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: metrics}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: metrics}
subjects: [{kind: User, name: ana, apiGroup: rbac.authorization.k8s.io}]
";

#[test]
fn objects_come_from_files_folders_and_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let both = format!("{ROLE}---\n{BINDING}");
    let ask = |objects: &[&str], stdin: &str| {
        let ask = ["eval", "--as", "ana", "--verb", "get", "--path", "/metrics", "--objects"];
        run_with_stdin(&[&ask[..], objects].concat(), stdin.as_bytes()).code
    };
    fs::create_dir_all(root.join("deep/er")).unwrap();
    let write = |name: &str, text: &str| {
        let path = root.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let role = write("deep/er/role.yml", ROLE);
    let binding = write("binding.yaml", BINDING);
    assert_eq!(ask(&[&role], ""), 1, "a role without a binding");
    assert_eq!(ask(&[&role, &binding], ""), 0, "two files");
    assert_eq!(ask(&[root.to_str().unwrap()], ""), 0, "a folder and what is below");
    assert_eq!(ask(&["-"], &both), 0, "standard input");
    assert_eq!(ask(&["-", &role], BINDING), 0, "both");
    assert_eq!(ask(&[&role, "--objects", &binding], ""), 0, "the flag twice");
    assert_eq!(ask(&["-"], ""), 3, "what writes to the pipe has failed");
    assert_eq!(ask(&[&role, &binding, root.to_str().unwrap()], ""), 0, "a file is read once");
    // In a folder only what is named like a manifest counts.
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("notes.txt"), "verbz: ").unwrap();
    fs::write(other.path().join("binding.yaml"), BINDING).unwrap();
    assert_eq!(ask(&[&role, other.path().to_str().unwrap()], ""), 0);
    // Two objects of one name are an error, unless they have the same content.
    assert_eq!(ask(&[&role, &binding, other.path().to_str().unwrap()], ""), 0);
    let contradicting = BINDING.replace("name: ana", "name: eve");
    fs::write(other.path().join("binding.yaml"), contradicting).unwrap();
    assert_eq!(ask(&[&role, &binding, other.path().to_str().unwrap()], ""), 3);
}

#[test]
fn the_default_policy_can_be_left_out() {
    let ask = ["eval", "--as", "ana", "--verb", "get", "--path", "/healthz"];
    assert_eq!(run(&ask).code, 0);
    assert_eq!(with(&ask, &["--bootstrap-policy"]).code, 0);
    assert_eq!(with(&ask, &["--bootstrap-policy=true"]).code, 0);
    assert_eq!(with(&ask, &["--bootstrap-policy=false"]).code, 1);
}

#[test]
fn the_default_authorizers_are_node_and_rbac() {
    let found = with(&["explain"], &[&YES[..], &OBJECTS].concat());
    assert_eq!(found.code, 0);
    let names = ["superuser: ", "node: ", "rbac: "];
    let outermost: Vec<&str> = found.stdout.lines().filter(|line| line.contains("─ ")).collect();
    let outermost: Vec<&&str> =
        outermost.iter().filter(|line| !line.starts_with([' ', '│'])).collect();
    assert_eq!(outermost.len(), names.len(), "{}", found.stdout);
    for (line, name) in outermost.iter().zip(names) {
        assert!(line.contains(name), "{line}");
    }
}

#[test]
fn a_reader_may_go_away() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("questions");
    let question = r#"{"user":"u","nonResourceAttributes":{"path":"/x","verb":"get"}}"#;
    // More answers than fit into a pipe, so that the program must notice.
    fs::write(&file, format!("{question}\n").repeat(50_000)).unwrap();
    let file = file.to_str().unwrap();
    for args in [&["eval", file][..], &["explain", file], &["explain", "-o", "json", file]] {
        let mut child =
            command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = [0];
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut first).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.stderr, b"", "{args:?}");
        assert_eq!(output.status.code(), Some(1), "{args:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_can_not_be_written_is_no_success() {
    for args in COMMANDS {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = command(args).stdout(full).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{args:?}");
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.starts_with("error: cannot write the result: "), "{args:?}: {message}");
    }
}

/// A client that sends one question at a time gets each answer before it sends the next question.
#[test]
fn answers_do_not_wait_for_the_next_question() {
    for args in [&["eval"][..], &["explain", "-o", "json"]] {
        let mut child = command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        for (path, want) in [("/healthz", true), ("/secret", false), ("/version", true)] {
            let question = format!(
                r#"{{"user":"u","groups":["system:authenticated"],"nonResourceAttributes":{{"path":"{path}","verb":"get"}}}}"#
            );
            writeln!(stdin, "{question}").unwrap();
            // Half of the next line does not hold back the answer to this one.
            write!(stdin, " ").unwrap();
            stdin.flush().unwrap();
            let mut answer = String::new();
            stdout.read_line(&mut answer).unwrap();
            assert!(answer.starts_with(&format!("{{\"allowed\":{want}")), "{answer}");
        }
        drop(stdin);
        assert_eq!(child.wait().unwrap().code(), Some(1));
    }
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let found = run(&["completion", shell]);
        assert_eq!(found.code, 0);
        for word in ["who-can", "authorization-config", "bootstrap-policy", "as-group"] {
            assert!(found.stdout.contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn help_is_complete() {
    for name in ["eval", "explain", "who-can", "rules"] {
        let found = run(&[name, "--help"]);
        assert_eq!((found.code, found.stderr.as_str()), (0, ""), "{name}");
        for part in ["Exit codes: ", "Examples:\n", "--authorization-config", "Node,RBAC"] {
            assert!(found.stdout.contains(part), "{name}: {part}");
        }
        let expected = format!("{}/help-{name}.txt", crate::program::TESTDATA);
        crate::expected::assert_is(&expected, &found.stdout);
    }
}

#[test]
fn samples_exist() {
    assert!(Path::new(crate::program::TESTDATA).join(OBJECTS[1]).is_dir());
}
