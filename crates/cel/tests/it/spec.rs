//! The CEL project's conformance tests, with the results of Kubernetes.
//!
//! Every result must be that of Kubernetes: type, value, cost, and the message of an error. If it
//! is not the one that the CEL project expects, a rule gives the reason. `testdata/README.md`
//! describes the data and has the numbers.

mod case;
mod report;
mod rules;

use std::path::Path;
use std::sync::LazyLock;

use report::{LineError, Report};
use rules::RULES;

const LINES: &str = include_str!("../../testdata/cel-spec.jsonl");

/// The markers around the part of the README that the test writes.
const BEGIN: &str = "<!-- The test `spec` writes from here. -->\n";
const END: &str = "<!-- To here. -->\n";

static REPORT: LazyLock<Result<Report, LineError>> = LazyLock::new(|| Report::of(LINES));

#[test]
fn results_match_kubernetes() {
    let differences = &REPORT.as_ref().unwrap().unlike_kubernetes;
    assert!(
        differences.is_empty(),
        "{}\n{} differences",
        differences.join("\n"),
        differences.len()
    );
}

#[test]
fn results_match_the_cel_project_or_a_rule_explains_them() {
    let report = REPORT.as_ref().unwrap();
    println!("{}", report.tables());
    let differences = &report.unexplained;
    assert!(
        differences.is_empty(),
        "{}\n{} differences",
        differences.join("\n"),
        differences.len()
    );
}

#[test]
fn every_rule_explains_a_result() {
    let counts = RULES.iter().zip(&REPORT.as_ref().unwrap().n_explained);
    let idle: Vec<&str> = counts.filter(|(_, n)| **n == 0).map(|(rule, _)| rule.name).collect();
    assert!(idle.is_empty(), "rules without a test: {}", idle.join(", "));
}

#[test]
fn readme_tables_are_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/README.md");
    let readme = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = readme.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let current = format!("{before}{BEGIN}\n{}\n{END}{after}", REPORT.as_ref().unwrap().tables());
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, current).unwrap();
    } else {
        assert!(readme == current, "the README is outdated: UPDATE_EXPECT=1 cargo test -p cel");
    }
}

#[test]
fn wrong_results_are_reported() {
    let line = |expect: &str, kubernetes: &str| {
        let place = r#""file":"f","section":"s","name":"n","expr":"1 + 1""#;
        format!(r#"{{{place},"expect":{expect},"kubernetes":{kubernetes}}}"#)
    };
    let (two, three) = (r#"{"int":"2"}"#, r#"{"int":"3"}"#);
    let expect = |value: &str| format!(r#"{{"value":{value}}}"#);
    let answer =
        |value: &str, cost: u64| format!(r#"{{"type":"int","value":{value},"cost":{cost}}}"#);

    // (expected by the CEL project, result of Kubernetes, whether our result agrees with each)
    let cases = [
        (expect(two), answer(two, 1), (true, true)),
        (expect(three), answer(two, 1), (false, true)),
        (r#"{"error":["overflow"]}"#.to_owned(), answer(two, 1), (false, true)),
        (r#"{"value":{"int":"2"},"type":"uint"}"#.to_owned(), answer(two, 1), (false, true)),
        (expect(two), answer(three, 1), (true, false)),
        (expect(two), answer(two, 2), (true, false)),
        (expect(two), r#"{"stage":"compile","error":"x"}"#.to_owned(), (true, false)),
    ];
    for (expect, answer, agrees) in cases {
        let report = Report::of(&line(&expect, &answer)).unwrap();
        let got = (report.unexplained.is_empty(), report.unlike_kubernetes.is_empty());
        assert_eq!(got, agrees, "{expect} {answer}");
    }
    assert!(Report::of(r#"{"file":"f","expr":1}"#).is_err());
}
