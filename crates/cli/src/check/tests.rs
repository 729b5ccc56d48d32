//! All outputs on all sorts of input: none fails, and each stays within its limits.

use config::authorization_config::{LoadOptions, assume_regular_file};
use proptest::prelude::*;
use serde_json::Value;

use super::check_inputs::{CheckOptions, check_inputs};
use super::finding::CheckedFile;
use super::read_input::CheckInput;
use super::{human_output, json_output, sarif_output};

const SAMPLE: &str = include_str!("../../testdata/expressions.yaml");
const CONFIGURATIONS: &str = include_str!("../../testdata/admission/faulty.yaml");

fn check_bytes(bytes: &[u8]) -> CheckedFile {
    let options = CheckOptions {
        load_options: LoadOptions { stat_file: &assume_regular_file, ..LoadOptions::default() },
        checks_referenced_files: false,
        kind: None,
        has_bootstrap_policy: true,
        warnings_are_errors: false,
        namespace: None,
    };
    let input = CheckInput::Stdin { name: "in\u{1b}put.yaml".to_owned() };
    let mut checked = check_inputs(&[input], &mut &bytes[..], &options, None);
    assert_eq!(checked.len(), 1);
    checked.remove(0)
}

fn human_output(checked: &[CheckedFile], colour: bool) -> String {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    human_output::write_human_report(&mut out, &mut err, checked, colour).unwrap();
    out.append(&mut err);
    String::from_utf8(out).unwrap()
}

fn json_output(checked: &[CheckedFile]) -> Value {
    let mut out = Vec::new();
    json_output::write_json_report(&mut out, checked).unwrap();
    serde_json::from_slice(&out).unwrap()
}

fn sarif_output(checked: &[CheckedFile]) -> Value {
    let mut out = Vec::new();
    sarif_output::write_sarif_report(&mut out, checked).unwrap();
    serde_json::from_slice(&out).unwrap()
}

/// A file with as many faulty authorizers.
fn faulty(n: usize) -> CheckedFile {
    let header = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n";
    check_bytes(format!("{header}authorizers:\n{}", "- {}\n".repeat(n)).as_bytes())
}

/// Asserts what holds for every input.
fn assert_sound(bytes: &[u8]) {
    let checked = [check_bytes(bytes)];
    let shown = human_output(&checked, false);
    let steers = |c: char| c.is_control() && c != '\n';
    assert!(!shown.contains(steers), "{shown:?}");
    human_output(&checked, true);

    let report = json_output(&checked);
    let n_errors = report["errors"].as_array().unwrap().len();
    assert_eq!(report["valid"], n_errors == 0);
    for error in report["errors"].as_array().unwrap() {
        let position = |line: &str, column: &str| (error[line].as_u64(), error[column].as_u64());
        assert!(position("line", "column") >= (Some(1), Some(1)), "{error}");
        assert!(position("endLine", "endColumn") >= position("line", "column"), "{error}");
    }

    let run = &sarif_output(&checked)["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let results = run["results"].as_array().unwrap();
    let n_warnings = report["warnings"].as_array().unwrap().len();
    assert_eq!(results.len(), n_errors + n_warnings);
    for result in results {
        let idx = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[idx]["id"], result["ruleId"]);
    }
}

#[test]
fn hostile_input_is_shown_harmlessly() {
    for bytes in [
        &b""[..],
        b"\n",
        b"\xff\xfe\x00",
        b"\x00\x01\x02\x1b[31m",
        b"\x7fELF\x02\x01\x01",
        b"\r\r\n\r",
        b"a: \xc2\x9b31m\n\tb: !x",
        b"\xef\xbb\xbf{",
        b"{\"kind\": \"\\u001b[31m\", \"apiVersion\": \"\\r\\nx/y\"}",
        "kind: \u{202e}x\u{200b}\napiVersion: 日本/語\n日本: 語\n".as_bytes(),
    ] {
        assert_sound(bytes);
    }
    assert_sound(&[b'{'; 100_000]);
    assert_sound("ä".repeat(100_000).as_bytes());
}

fn assert_sound_when_damaged(sample: &str, at: usize, n_removed: usize, inserted: &str) {
    let (before, after) = sample.split_at(at);
    let after = after.get(n_removed..).unwrap_or_default();
    assert_sound(format!("{before}{inserted}{after}").as_bytes());
}

proptest! {
    #[test]
    fn any_bytes_are_sound(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        assert_sound(&bytes);
    }

    #[test]
    fn any_damage_to_a_sample_is_sound(
        at in 0..SAMPLE.len(),
        n_removed in 0_usize..40,
        inserted in "[ \t\r\n'\"!&*{}\\[\\]:,#|>-]{0,6}|\\PC{0,6}|.{0,3}",
    ) {
        assert_sound_when_damaged(SAMPLE, at, n_removed, &inserted);
    }

    #[test]
    fn any_damage_to_a_configuration_of_admission_is_sound(
        at in 0..CONFIGURATIONS.len(),
        n_removed in 0_usize..80,
        inserted in "[ \t\r\n'\"!&*{}\\[\\]:,#|>-]{0,6}|\\PC{0,6}|.{0,3}",
    ) {
        assert_sound_when_damaged(CONFIGURATIONS, at, n_removed, &inserted);
    }
}

#[test]
fn people_see_a_limited_number_of_findings() {
    let all = human_output(&[faulty(100)], false);
    assert_eq!(all.matches("error: ").count(), 100);
    assert!(!all.contains("not shown"));
    let some = human_output(&[faulty(103)], false);
    assert_eq!(some.matches("error: ").count(), 100);
    assert!(some.contains("3 more not shown; `-o json` lists them all\n"), "{some}");
    assert!(some.ends_with(": invalid: 103 errors\n"), "{some}");
}

#[test]
fn code_scanning_gets_a_limited_number_of_results() {
    for (n, n_results, n_notifications) in [(5000, 5000, 0), (5001, 5000, 1)] {
        let log = sarif_output(&[faulty(n)]);
        let run = &log["runs"][0];
        assert_eq!(run["results"].as_array().unwrap().len(), n_results);
        let invocation = &run["invocations"][0];
        assert_eq!(invocation["executionSuccessful"], true);
        let notifications = invocation["toolExecutionNotifications"].as_array().unwrap();
        assert_eq!(notifications.len(), n_notifications);
    }
}

#[test]
fn programs_get_everything() {
    assert_eq!(json_output(&[faulty(5001)])["errors"].as_array().unwrap().len(), 5001);
}

#[test]
fn a_message_that_quotes_the_whole_file_is_cut() {
    let version = "apiserver.config.k8s.io/v1";
    let text = format!("{{\"apiVersion\": \"{version}\", \"a\": \"{}\"}}", "x".repeat(10_000));
    let long = [check_bytes(text.as_bytes())];
    let title = human_output(&long, false).lines().next().unwrap().to_owned();
    assert!(title.starts_with("error: Object 'Kind' is missing in '{\"apiVersion\": "), "{title}");
    assert!(title.ends_with("xxx\"}'"), "{title}");
    assert_eq!(title.chars().count(), "error: ".len() + 2001);
    assert!(json_output(&long)["errors"][0]["message"].as_str().unwrap().len() > 10_000);
}

#[test]
fn a_summary_names_some_authorizers() {
    let webhook = "  webhook:\n    timeout: 1s\n    failurePolicy: Deny\n    \
        subjectAccessReviewVersion: v1\n    connectionInfo: {type: KubeConfigFile, \
        kubeConfigFile: /k}\n";
    let entries = |n: usize| {
        let entries = (0..n).map(|n| format!("- type: Webhook\n  name: w{n}\n{webhook}"));
        let header = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n";
        let text = format!("{header}authorizers:\n{}", entries.collect::<String>());
        human_output(&[check_bytes(text.as_bytes())], false)
    };
    assert!(entries(1).contains(": 1 authorizer: w0)"), "{}", entries(1));
    assert!(entries(20).ends_with(", w18, w19)\n"), "{}", entries(20));
    assert!(entries(23).ends_with(", w18, w19 and 3 more)\n"), "{}", entries(23));
}

#[test]
fn colour_is_only_there_when_asked_for() {
    let checked = [check_bytes(SAMPLE.as_bytes())];
    let plain = human_output(&checked, false);
    let coloured = human_output(&checked, true);
    assert!(!plain.contains('\u{1b}'));
    assert!(coloured.contains("\u{1b}[1m\u{1b}[91merror"), "{coloured:?}");
}
