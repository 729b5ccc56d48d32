//! Counts the results of all tests.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value as Json;

use super::case::Case;
use super::rules::{Kubernetes, RULES};

/// The counted results of all tests.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) files: BTreeMap<String, FileReport>,
    /// The number of results that each rule explains, in the order of the rules.
    pub(crate) n_explained: Vec<usize>,
    /// Results that are not those of Kubernetes.
    pub(crate) unlike_kubernetes: Vec<String>,
    /// Results that neither the CEL project expects nor a rule explains.
    pub(crate) unexplained: Vec<String>,
}

/// The counts of one file of the CEL project.
#[derive(Debug, Default)]
pub(crate) struct FileReport {
    /// The number of tests about protocol buffer messages of the CEL project. They are not among the lines.
    pub(crate) n_omitted: u64,
    pub(crate) n_passed: u64,
    pub(crate) n_explained: u64,
    pub(crate) n_unexplained: u64,
}

/// The reason why a line cannot be run. The number is that of the line, from 1.
#[derive(Debug)]
#[expect(
    dead_code,
    reason = "the fields are read by the derived Debug, which a failing test prints"
)]
pub(crate) enum LineError {
    /// The line is not JSON.
    Json { number: usize, error: serde_json::Error },
    /// The line does not describe a test.
    NotATest { number: usize },
}

impl Report {
    /// Runs all tests of a text of JSON lines; fails at the first line that is not a test.
    pub(crate) fn of(lines: &str) -> Result<Self, LineError> {
        let mut report = Self { n_explained: vec![0; RULES.len()], ..Self::default() };
        for (number, line) in lines.lines().enumerate() {
            let number = number + 1;
            let line: Json =
                serde_json::from_str(line).map_err(|error| LineError::Json { number, error })?;
            if let Some(omitted) = line.get("omitted").and_then(Json::as_u64) {
                let file = line.get("file").and_then(Json::as_str).unwrap_or_default();
                report.files.entry(file.to_owned()).or_default().n_omitted = omitted;
                continue;
            }
            let case = Case::decode(&line);
            report.add(&case.ok_or(LineError::NotATest { number })?);
        }
        Ok(report)
    }

    fn add(&mut self, case: &Case) {
        let answer = case.answer();
        let Case { file, section, name, expr, kubernetes, expect, .. } = case;
        let rule = RULES.iter().position(|rule| (rule.explains)(case, &answer));
        let may_differ = rule.is_some_and(|rule| RULES[rule].kubernetes == Kubernetes::Other);
        if !may_differ && !answer.agrees_with(kubernetes) {
            self.unlike_kubernetes.push(format!(
                "{file}/{section}/{name}: {expr}\n  Kubernetes {kubernetes:?}\n  got        {answer:?}"
            ));
        }
        let counts = self.files.entry(file.clone()).or_default();
        match rule {
            _ if expect.is_met_by(&answer) => counts.n_passed += 1,
            Some(rule) => {
                counts.n_explained += 1;
                self.n_explained[rule] += 1;
            }
            None => {
                counts.n_unexplained += 1;
                self.unexplained.push(format!(
                    "{file}/{section}/{name}: {expr}\n  want {expect:?}\n  got  {answer:?}"
                ));
            }
        }
    }

    /// The tables of `testdata/README.md`: by rule, and by file.
    pub(crate) fn tables(&self) -> String {
        let sum = |count: fn(&FileReport) -> u64| self.files.values().map(count).sum::<u64>();
        let (n_omitted, n_passed) = (sum(|file| file.n_omitted), sum(|file| file.n_passed));
        let n_explained = sum(|file| file.n_explained);
        let n_unexplained = sum(|file| file.n_unexplained);
        let n_run = n_passed + n_explained + n_unexplained;
        let mut text = format!(
            "{} tests, {n_omitted} left out, {n_run} run: {n_passed} as the CEL project expects, \
             {n_explained} explained by a rule, {n_unexplained} unexplained.\n\n",
            n_omitted + n_run
        );
        text += "| rule | tests | reason |\n|---|--:|---|\n";
        let _ = writeln!(
            text,
            "| test messages | {n_omitted} | Neither Kubernetes nor we have the descriptors of the \
             protocol buffer messages that the CEL project made for its tests. Left out. |"
        );
        for (rule, count) in RULES.iter().zip(&self.n_explained) {
            let _ = writeln!(text, "| {} | {count} | {} |", rule.name, rule.reason);
        }
        text += "\n| file | left out | as expected | explained |\n|---|--:|--:|--:|\n";
        for (name, file) in &self.files {
            let FileReport { n_omitted, n_passed, n_explained, .. } = file;
            let _ = writeln!(text, "| {name} | {n_omitted} | {n_passed} | {n_explained} |");
        }
        text
    }
}
