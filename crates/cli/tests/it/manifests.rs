//! `portcullis check` with manifests and policy files: detection of kinds, errors in one file, and errors
//! that only all files together show.

use std::path::Path;

use serde_json::Value;

use crate::program::{Run, run, run_with_stdin};

const ROLE: &str = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n\
                    metadata: {name: reader}\nrules:\n\
                    - {verbs: [get], apiGroups: [''], resources: [pods]}\n";

const BINDING: &str = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\n\
                       metadata: {name: readers}\nroleRef: {kind: ClusterRole, name: reader}\n\
                       subjects: [{kind: User, name: ana}]\n";

/// A folder with these files.
fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    folder
}

fn check(path: &Path, args: &[&str]) -> Run {
    run(&[&["check", path.to_str().unwrap()], args].concat())
}

fn check_bytes(name: &str, bytes: &[u8], args: &[&str]) -> Run {
    let folder = folder(&[(name, bytes)]);
    check(&folder.path().join(name), args)
}

/// Asserts that a file is refused with exactly one error, and nothing of it counts.
#[track_caller]
fn refused(name: &str, bytes: &[u8], args: &[&str], line: u64, message: &str) {
    let found = check_bytes(name, bytes, &[&["-o", "json"], args].concat());
    assert_eq!((found.code, found.stderr.as_str()), (1, ""), "{message}");
    let report: Value = serde_json::from_str(&found.stdout).unwrap();
    let errors = report["errors"].as_array().unwrap();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0]["message"], message);
    assert_eq!(errors[0]["line"], line, "{message}");
    let file = &report["files"][0];
    assert_eq!((&file["valid"], &file["kind"]), (&Value::Bool(false), &Value::Null));
    assert_eq!((&file["objects"], &file["policies"]), (&serde_json::json!({}), &Value::Null));
    let found = check_bytes(name, bytes, args);
    assert_eq!(found.code, 1);
    assert!(found.stdout.ends_with(": invalid: 1 error\n"), "{:.2000}", found.stdout);
    assert!(found.stdout.len() < 20_000, "{} bytes", found.stdout.len());
}

#[test]
fn one_bad_line_refuses_a_policy_file() {
    let lines = "{\"user\":\"ana\"}\n# comment\n{\"user\":\"bob\",}\n{\"user\":\"eve\"}\n";
    let message = "invalid character '}' looking for beginning of object key string";
    refused("policies.jsonl", lines.as_bytes(), &[], 3, message);
    let report = check_bytes("policies.jsonl", lines.as_bytes(), &["-o", "json"]);
    let report: Value = serde_json::from_str(&report.stdout).unwrap();
    let text = report["files"][0]["message"].as_str().unwrap();
    assert!(
        text.starts_with("error reading policy file ") && text.contains(", line 3: "),
        "{text}"
    );
}

#[test]
fn an_unknown_kind_of_subject_refuses_a_binding() {
    let text = format!("{ROLE}---\n{}", BINDING.replace("kind: User", "kind: Usr"));
    refused(
        "binding.yaml",
        text.as_bytes(),
        &[],
        11,
        "subjects[0].kind: Unsupported value: \"Usr\": supported values: \"ServiceAccount\", \
         \"User\", \"Group\"",
    );
}

#[test]
fn what_is_not_well_formed_is_refused() {
    let open = format!("{ROLE}- verbs: [get\n");
    let message = "yaml: line 6: did not find expected ',' or ']'";
    refused("role.yaml", open.as_bytes(), &[], 7, message);
    let json = "{\"apiVersion\": \"v1\", \"kind\": \"List\",\n\"items\": [{]}\n";
    let message = "invalid character ']' looking for beginning of object key string";
    refused("list.json", json.as_bytes(), &[], 2, message);
}

#[test]
fn a_file_without_objects_is_skipped_with_a_note() {
    for (text, flags) in [
        ("", &[][..]),
        ("# nothing\n---\n", &[]),
        ("", &["--kind", "manifest"]),
        ("image: {tag: v1}\nservice: {kind: LoadBalancer}\n", &[]),
        ("apiVersion: v2\nname: chart\nversion: 1.0.0\n", &[]),
        ("- a\n- b\n", &[]),
    ] {
        let found = check_bytes("values.yaml", text.as_bytes(), flags);
        assert_eq!((found.code, found.stderr.as_str()), (0, ""), "{text}");
        let note = "values.yaml: note: no Kubernetes object, skipped\n";
        assert!(found.stdout.ends_with(note), "{text}: {}", found.stdout);
        let found = check_bytes("values.yaml", text.as_bytes(), &[&["-o", "json"], flags].concat());
        let report: Value = serde_json::from_str(&found.stdout).unwrap();
        assert_eq!(report["files"][0]["note"], "no Kubernetes object, skipped", "{text}");
        assert_eq!(report["valid"], true, "{text}");
    }
    // An empty pipe is the sign of a program that has failed.
    assert_eq!(run_with_stdin(&["check", "-"], b"").code, 1);
    // A policy file without policies grants nothing, and nothing is wrong with that.
    let found = check_bytes("empty.jsonl", b"", &["--kind", "abac-policy"]);
    assert_eq!(found.code, 0);
    assert!(found.stdout.ends_with("empty.jsonl: valid: 0 policies\n"), "{}", found.stdout);
}

#[test]
fn a_folder_without_manifests_can_not_be_checked() {
    let folder = folder(&[("notes.txt", b"apiVersion: v1\n"), (".hidden.yaml", b"")]);
    let found = check(folder.path(), &[]);
    assert_eq!((found.code, found.stdout.as_str()), (3, ""));
    let name = folder.path().display();
    let message =
        format!("error: {name}: there is no file in this directory (*.yaml, *.yml, *.json)\n");
    assert_eq!(found.stderr, message);
}

#[test]
fn a_binary_file_is_refused() {
    let elf = b"\x7fELF\x02\x01\x01\0\0\0\0\0";
    let message = "yaml: control characters are not allowed";
    refused("program.yaml", elf, &[], 1, message);
    refused("program.yaml", elf, &["--kind", "manifest"], 1, message);
    let message = "the line is not UTF-8";
    refused("program.jsonl", b"\xff\xfa\0", &["--kind", "abac-policy"], 1, message);
    let text = [ROLE.as_bytes(), b"# \xff\n"].concat();
    refused("latin1.yaml", &text, &[], 6, "yaml: invalid UTF-8");
}

#[test]
fn a_huge_file_is_refused() {
    // Larger than a configuration may be, and nothing tells what it is.
    let huge = "# comment\n".repeat(1 << 17);
    let huge_list = format!("a:\n{}", "- b\n".repeat(1 << 19));
    refused("huge.yaml", huge_list.as_bytes(), &[], 1, "file is larger than 1048576 bytes");
    // A manifest of this size is not too large, only empty.
    let manifest = ["--kind", "manifest"];
    let found = check_bytes("huge.yaml", huge.as_bytes(), &manifest);
    assert_eq!(found.code, 0);
}

#[test]
fn deep_nesting_is_refused() {
    let deep = format!("{ROLE}aggregationRule: {}", "[".repeat(100_000));
    let message = "yaml: line 6: exceeded max depth of 64";
    refused("deep.yaml", deep.as_bytes(), &[], 6, message);
    let json = format!("{{\"apiVersion\": \"v1\", \"items\": {}", "[".repeat(100_000));
    refused("deep.json", json.as_bytes(), &[], 1, "exceeded max depth of 64");
}

#[test]
fn files_are_checked_together() {
    let (role, binding) = (ROLE.as_bytes(), BINDING.as_bytes());
    let both = folder(&[("a/role.yaml", role), ("b.yml", binding), ("c.txt", b"{")]);
    let found = check(both.path(), &["--strict"]);
    assert_eq!(found.code, 0, "{}", found.stdout);
    assert!(found.stdout.ends_with("2 files: 2 valid\n"), "{}", found.stdout);

    // Without the role, the binding grants nothing.
    let found = check(&both.path().join("b.yml"), &["--strict"]);
    assert_eq!(found.code, 1);
    let message = "error[missing-role]: there is no ClusterRole `reader`";
    assert!(found.stdout.starts_with(message), "{}", found.stdout);
    // Where the role cannot be read, nobody knows whether it is missing.
    let broken = folder(&[("a.yaml", b"apiVersion: v1\nkind: ["), ("b.yaml", binding)]);
    let found = check(broken.path(), &["--strict"]);
    assert!(!found.stdout.contains("missing-role"), "{}", found.stdout);

    // The default roles exist unless told otherwise.
    let to_view = BINDING.replace("name: reader}", "name: view}");
    let found = check_bytes("b.yaml", to_view.as_bytes(), &["--strict"]);
    assert_eq!(found.code, 0, "{}", found.stdout);
    let found =
        check_bytes("b.yaml", to_view.as_bytes(), &["--strict", "--bootstrap-policy=false"]);
    assert_eq!(found.code, 1, "{}", found.stdout);
}

#[test]
fn the_same_object_in_two_files_is_refused() {
    let other = ROLE.replace("[get]", "[list]");
    let twice = folder(&[("a.yaml", ROLE.as_bytes()), ("b.yaml", other.as_bytes())]);
    let found = check(twice.path(), &[]);
    assert_eq!(found.code, 1);
    let first = twice.path().join("a.yaml");
    let message = format!(
        "error: metadata.name: Duplicate value: \"reader\": this ClusterRole is first defined at \
         {}:1:1\n",
        first.display()
    );
    assert!(found.stdout.contains(&message), "{}", found.stdout);
    assert!(found.stdout.ends_with("2 files: 1 valid, 1 invalid\n"), "{}", found.stdout);
    // The same file twice is one file.
    let path = first.to_str().unwrap();
    let found = run(&["check", path, path]);
    assert_eq!(found.stdout, format!("{path}: valid: 1 ClusterRole\n"));
}

#[test]
fn the_content_tells_what_a_file_is() {
    let found = run_with_stdin(&["check", "-"], BINDING.replace("reader}", "view}").as_bytes());
    assert_eq!(found.stdout, "<stdin>: valid: 1 ClusterRoleBinding\n");
    let found = run_with_stdin(&["check", "-"], b"{\"user\":\"ana\"}\n");
    assert!(found.stdout.ends_with("<stdin>: valid, 1 warning: 1 policy\n"), "{}", found.stdout);
    let others = b"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n";
    let found = run_with_stdin(&["check", "-"], others);
    assert_eq!(
        (found.code, found.stdout.as_str()),
        (0, "<stdin>: valid: no checked objects, 1 other object\n")
    );
    // Whoever says what a file is gets the loader of that kind.
    let found = run_with_stdin(&["check", "--kind", "abac-policy", "-"], BINDING.as_bytes());
    assert!(found.stdout.starts_with("error: invalid character 'a' "), "{}", found.stdout);
    let found = run_with_stdin(&["check", "--kind", "MANIFEST", "-"], b"{\"user\":\"ana\"}\n");
    assert_eq!(found.stdout, "<stdin>: note: no Kubernetes object, skipped\n");
    let found = run(&["check", "--kind", "role", "valid.yaml"]);
    assert_eq!(found.code, 2);
}
