//! Compares the output of the program with files in `testdata`.

use crate::expected::assert_is;
use crate::program::{TESTDATA, run};

/// Compares the standard output of a run with the content of a file.
fn check(expected: &str, args: &[&str]) {
    let run = run(args);
    assert_eq!(run.stderr, "", "{args:?}");
    assert_is(&format!("{TESTDATA}/{expected}"), &run.stdout);
}

#[test]
fn for_people() {
    for sample in
        ["valid", "misspelled", "values", "expressions", "warnings", "server", "unknown-kind"]
    {
        let (expected, file) = (format!("{sample}.human.txt"), format!("{sample}.yaml"));
        check(&expected, &["check", "--assume-files-exist", &file]);
    }
}

#[test]
fn for_programs() {
    for sample in ["valid", "misspelled", "expressions", "warnings"] {
        let (expected, file) = (format!("{sample}.json"), format!("{sample}.yaml"));
        check(&expected, &["check", "--assume-files-exist", "-o", "json", &file]);
    }
}

#[test]
fn for_code_scanning() {
    for sample in ["valid", "misspelled", "expressions", "warnings"] {
        let (expected, file) = (format!("{sample}.sarif"), format!("{sample}.yaml"));
        check(&expected, &["check", "--assume-files-exist", "-o", "sarif", &file]);
    }
}

/// Manifests and policy files, each for people, for programs and for code scanning.
#[test]
fn other_kinds_of_files() {
    for (sample, file) in [
        ("manifests", "manifests"),
        ("binding", "binding.yaml"),
        ("suspicious", "suspicious.yaml"),
        ("admission/faulty", "admission/faulty.yaml"),
        ("admission/order", "admission/order.yaml"),
        ("admission/odd", "admission/odd.yaml"),
        ("policies", "policies.jsonl"),
        ("policies-faulty", "policies-faulty.jsonl"),
        ("policies-warnings", "policies-warnings.jsonl"),
    ] {
        check(&format!("{sample}.human.txt"), &["check", file]);
        check(&format!("{sample}.report.json"), &["check", "-o", "json", file]);
        check(&format!("{sample}.sarif"), &["check", "-o", "sarif", file]);
    }
}

#[test]
fn several_files() {
    let files = ["valid.yaml", "warnings.yaml", "server.yaml"];
    for (format, expected) in
        [("human", "several.human.txt"), ("json", "several.json"), ("sarif", "several.sarif")]
    {
        let flags = ["check", "--assume-files-exist", "--strict", "-o", format];
        check(expected, &[&flags[..], &files].concat());
    }
}

#[test]
fn help() {
    check("help.txt", &["--help"]);
    check("help-check.txt", &["check", "--help"]);
    check("help-schema.txt", &["schema", "--help"]);
    check("help-completion.txt", &["completion", "--help"]);
}
