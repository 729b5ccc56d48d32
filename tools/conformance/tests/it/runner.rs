//! The runner on the vectors of the repository, and on malformed vectors.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use conformance::{LEDGER, Options, REPOSITORY_VECTORS, Suite, SuiteReport, run};

/// Runs a folder and returns the reports with everything printed.
fn run_folder(vectors: &Path) -> (Vec<SuiteReport>, String) {
    let options = Options { vectors: vectors.to_owned(), suite: None, verbose: false };
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    let reports = run(&options, &mut out, &mut notes).unwrap();
    (reports, String::from_utf8(out).unwrap())
}

/// Runs the program in a process, as a user starts it.
fn program(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_conformance")).args(args).output().unwrap()
}

/// A folder with the first few vectors of a suite of the repository, the very first one changed.
fn with_first_line(suite: &str, change: impl Fn(&str) -> String) -> (tempfile::TempDir, String) {
    let recorded = Path::new(REPOSITORY_VECTORS).join(format!("{suite}.jsonl"));
    let text = fs::read_to_string(recorded).unwrap();
    let mut lines = text.lines();
    let first = lines.next().unwrap();
    let rest: Vec<&str> = lines.take(10).collect();
    let vector: serde_json::Value = serde_json::from_str(first).unwrap();
    let changed = change(first);
    assert_ne!(changed, first);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("{suite}.jsonl"));
    fs::write(path, format!("{changed}\n{}\n", rest.join("\n"))).unwrap();
    (folder, vector["id"].as_str().unwrap().to_owned())
}

#[test]
fn the_vectors_of_the_repository_agree() {
    let (reports, printed) = run_folder(Path::new(REPOSITORY_VECTORS));
    let suites: Vec<Suite> = reports.iter().map(SuiteReport::suite).collect();
    assert_eq!(suites, Suite::ALL, "every suite has vectors");
    for report in &reports {
        let name = report.suite().name();
        assert!(report.n_vectors() >= 50, "{name} lost its vectors");
        assert_eq!(report.n_failed(), 0, "\n{printed}");
        let n_agreed: u64 = LEDGER.iter().map(|rule| report.n_agreed_by(rule)).sum();
        // A tenth of the recorded policy files show input that Kubernetes accepts by mistake. The suite about
        // users is small, and two of its files have an empty column of groups.
        let one_in = match report.suite() {
            Suite::Abac => 10,
            Suite::UserInfo => 30,
            _ => 50,
        };
        assert!(n_agreed * one_in < report.n_vectors(), "the ledger excuses too much\n{printed}");
        // The wording of these texts is free, but a change that makes fewer of them identical should be noticed.
        let texts = report.texts();
        assert!(texts.identical * 100 >= texts.total * 99, "{name}: {texts:?}");
    }
}

#[test]
fn the_ledger_explains_few_vectors() {
    assert!(LEDGER.len() <= 11, "a long ledger is another specification");
    for rule in LEDGER {
        assert!(!rule.reason.is_empty(), "{} has no reason", rule.name);
    }
}

/// The runner can fail: a vector with a changed expectation is reported as one failure, with its id.
#[test]
fn a_changed_expectation_is_reported_with_its_id() {
    for (suite, from, to) in [
        ("abac", "\"decision\":\"noOpinion\"", "\"decision\":\"deny\""),
        (
            "access-review",
            ",\"readOnly\":false,\"namespace\":\"",
            ",\"readOnly\":false,\"namespace\":\"x",
        ),
        ("admission-dispatch", "\"phase\":\"validating\"", "\"phase\":\"mutating\""),
        ("admission-webhook-config", "\"result\":\"valid\"", "\"result\":\"invalid\""),
        ("chain", "\"decision\":\"allow\"", "\"decision\":\"deny\""),
        ("config-load", "\"result\":\"valid\"", "\"result\":\"nameError\""),
        ("forbidden-response", "\"kind\":\"Status\"", "\"kind\":\"State\""),
        ("impersonation", "\"result\":\"passthrough\"", "\"result\":\"rejected\""),
        ("match-conditions", "\"result\":\"match\"", "\"result\":\"noMatch\""),
        ("rbac", "\"decision\":\"noOpinion\"", "\"decision\":\"deny\""),
        ("rbac-bootstrap", "\"decision\":\"noOpinion\"", "\"decision\":\"deny\""),
        ("request-attributes", "\"verb\":\"create\"", "\"verb\":\"update\""),
        ("user-info", "\"X-Remote-Group\"]}}", "\"X-Remote-Gruppe\"]}}"),
    ] {
        let (folder, id) = with_first_line(suite, |line| line.replace(from, to));
        let output = program(&["--vectors", folder.path().to_str().unwrap()]);
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{printed}");
        assert!(printed.contains(" passed, 1 failed, "), "{printed}");
        assert!(printed.contains(&format!("  failed {id} (")), "{printed}");
        assert!(printed.contains("want \"") && printed.contains("got \""), "{printed}");
    }
}

#[test]
fn unusable_input_exits_with_two_and_says_why() {
    let empty = tempfile::tempdir().unwrap();
    let strange = tempfile::tempdir().unwrap();
    fs::write(strange.path().join("chess.jsonl"), "{}\n").unwrap();
    let (broken, _) = with_first_line("config-load", |_| "{\"id\":".to_owned());
    let (lacking, _) = with_first_line("config-load", |line| line.replace("\"text\":", "\"txt\":"));
    let text = |folder: &tempfile::TempDir| folder.path().to_str().unwrap().to_owned();
    for (args, message) in [
        (
            vec!["--suite".to_owned(), "chess".to_owned()],
            "unknown suite `chess`, known: abac, access-review, ",
        ),
        (vec!["--vectors".to_owned(), text(&empty)], "no vectors (*.jsonl) in"),
        (vec!["--vectors".to_owned(), format!("{}/missing", text(&empty))], "cannot read"),
        (vec!["--vectors".to_owned(), text(&strange)], "no suite in"),
        (vec!["--vectors".to_owned(), text(&broken)], "config-load.jsonl:1: not a JSON object"),
        (vec!["--vectors".to_owned(), text(&lacking)], "config-load.jsonl:1: `text` is missing"),
        (vec!["--nonsense".to_owned()], "unexpected argument"),
        (vec!["--server=https://h".to_owned()], "--token <TOKEN>"),
        (vec!["--suite=http".to_owned()], "give --program FILE or --server URL"),
        (
            vec!["--server=https://h".to_owned(), "--token=t".to_owned()],
            "go with --suite http-NAME or --suite http",
        ),
        (
            vec!["--suite=http-chess".to_owned(), "--program=none".to_owned()],
            "no vectors of suite `http-chess`",
        ),
        (
            vec!["--suite=http-patch".to_owned(), "--program=no-such-program".to_owned()],
            "cannot start the server: `no-such-program`",
        ),
        (
            vec!["--suite=http".to_owned(), "--server=ftp://h".to_owned(), "--token=t".to_owned()],
            "want https://HOST:PORT",
        ),
    ] {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let output = program(&args);
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {printed}");
        assert!(printed.contains(message), "{args:?}: {printed}");
    }
}

#[test]
fn unimplemented_suites_are_reported_without_failing() {
    let folder = tempfile::tempdir().unwrap();
    let recorded = Path::new(REPOSITORY_VECTORS).join("request-attributes.jsonl");
    fs::copy(recorded, folder.path().join("request-attributes.jsonl")).unwrap();
    fs::write(folder.path().join("chess.jsonl"), "{}\n").unwrap();
    let output = program(&["--vectors", folder.path().to_str().unwrap(), "-v"]);
    let notes = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{notes}");
    assert_eq!(notes, "chess: not implemented yet\n");
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.starts_with("request-attributes: "), "{printed}");
    assert!(printed.contains("  passed req-") && printed.contains("  texts identical: "));
}
