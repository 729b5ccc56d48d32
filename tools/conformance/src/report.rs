//! The report of a run.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::Value;

use crate::compare::{Difference, TextCounts};
use crate::judge::{Judgement, VectorOutcome};
use crate::ledger::Rule;
use crate::suites::Suite;
use crate::vectors::Vector;

/// The number of differences that are printed for one vector; more of them seldom help.
const DIFFERENCES_SHOWN_MAX: usize = 6;
/// The number of characters that are printed of one value.
const VALUE_CHARS_MAX: usize = 300;
/// The number of equal characters that are printed before the first difference of two texts.
const COMMON_CHARS_KEPT: usize = 24;

/// The outcomes of one suite.
#[derive(Debug)]
pub struct SuiteReport {
    suite: Suite,
    n_passed: u64,
    n_agreed: u64,
    n_failed: u64,
    texts: TextCounts,
    /// The number of vectors that each rule of the ledger explains.
    rules: BTreeMap<&'static str, u64>,
    failures: Vec<(String, String, Vec<Difference>)>,
    /// Every vector in order, with its outcome and whether the free wording of a text differs.
    all: Vec<(String, &'static str, bool)>,
}

impl SuiteReport {
    /// A report without outcomes.
    pub fn new(suite: Suite) -> Self {
        Self {
            suite,
            n_passed: 0,
            n_agreed: 0,
            n_failed: 0,
            texts: TextCounts::default(),
            rules: BTreeMap::new(),
            failures: Vec::new(),
            all: Vec::new(),
        }
    }

    /// The suite of the report.
    pub fn suite(&self) -> Suite {
        self.suite
    }

    /// The number of vectors whose answer differs in a way that no rule explains.
    pub fn n_failed(&self) -> u64 {
        self.n_failed
    }

    /// The number of vectors in the report.
    pub fn n_vectors(&self) -> u64 {
        self.n_passed + self.n_agreed + self.n_failed
    }

    /// The counts of texts with a free part.
    pub fn texts(&self) -> TextCounts {
        self.texts
    }

    /// The number of vectors that a rule of the ledger explained.
    pub fn n_agreed_by(&self, rule: &Rule) -> u64 {
        self.rules.get(rule.name).copied().unwrap_or(0)
    }

    /// Adds the judgement of one vector.
    pub fn add(&mut self, vector: &Vector, judgement: Judgement) {
        let TextCounts { identical, total } = judgement.texts;
        self.texts.identical += identical;
        self.texts.total += total;
        let word = match judgement.outcome {
            VectorOutcome::Passed => {
                self.n_passed += 1;
                "passed"
            }
            VectorOutcome::Agreed(rules) => {
                self.n_agreed += 1;
                for rule in rules {
                    *self.rules.entry(rule).or_default() += 1;
                }
                "agreed"
            }
            VectorOutcome::Failed(differences) => {
                self.n_failed += 1;
                self.failures.push((vector.id.clone(), vector.feature.clone(), differences));
                "failed"
            }
        };
        self.all.push((vector.id.clone(), word, identical < total));
    }

    /// Prints the line of the suite and its failures; if verbose, every vector.
    pub fn print(&self, out: &mut dyn Write, verbose: bool) -> io::Result<()> {
        writeln!(
            out,
            "{}: {} passed, {} failed, {} agreed",
            self.suite.name(),
            self.n_passed,
            self.n_failed,
            self.n_agreed
        )?;
        for (id, feature, differences) in &self.failures {
            writeln!(out, "  failed {id} ({feature})")?;
            for difference in differences.iter().take(DIFFERENCES_SHOWN_MAX) {
                print_difference(out, difference)?;
            }
            if let Some(n_more) = differences.len().checked_sub(DIFFERENCES_SHOWN_MAX + 1) {
                writeln!(out, "    and {} more differences", n_more + 1)?;
            }
        }
        if verbose {
            for (id, word, reads_otherwise) in &self.all {
                let note = if *reads_otherwise { " (other wording)" } else { "" };
                writeln!(out, "  {word} {id}{note}")?;
            }
            writeln!(out, "  texts identical: {} of {}", self.texts.identical, self.texts.total)?;
        }
        Ok(())
    }
}

/// Prints how many vectors needed each rule. A rule that no vector needs is a candidate for removal.
pub fn print_ledger(
    out: &mut dyn Write,
    ledger: &[Rule],
    reports: &[SuiteReport],
) -> io::Result<()> {
    for rule in ledger {
        let Some(report) = reports.iter().find(|report| report.suite == rule.suite) else {
            continue;
        };
        match report.n_agreed_by(rule) {
            0 => writeln!(out, "ledger: {}: unused by these vectors", rule.name)?,
            n => writeln!(out, "ledger: {}: {n} agreed: {}", rule.name, rule.reason)?,
        }
    }
    Ok(())
}

pub(crate) fn print_difference(out: &mut dyn Write, difference: &Difference) -> io::Result<()> {
    let Difference { path, want, got } = difference;
    let n_common = match (want, got) {
        (Value::String(want), Value::String(got)) => {
            want.chars().zip(got.chars()).take_while(|(a, b)| a == b).count()
        }
        _ => 0,
    };
    let n_elided = n_common.saturating_sub(COMMON_CHARS_KEPT);
    let path = if path.is_empty() { "answer" } else { path };
    writeln!(out, "    {path}: want {}", shown(want, n_elided))?;
    writeln!(out, "    {:1$}   got {2}", "", path.chars().count(), shown(got, n_elided))
}

/// Formats a value as one line of JSON. It leaves out the first `n_elided` characters of a text, and cuts a long
/// value.
fn shown(value: &Value, n_elided: usize) -> String {
    let json = match value {
        Value::Null => return "nothing".to_owned(),
        Value::String(text) if n_elided > 0 => {
            let rest: String = text.chars().skip(n_elided).collect();
            format!("…{}", Value::String(rest))
        }
        _ => value.to_string(),
    };
    match json.char_indices().nth(VALUE_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &json[..at]),
        None => json,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn printed(want: Value, got: Value) -> String {
        let mut out = Vec::new();
        let path = "a.b".to_owned();
        print_difference(&mut out, &Difference { path, want, got }).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn differences_are_printed_on_aligned_lines() {
        let text = printed(json!({"x": 1}), Value::Null);
        assert_eq!(text, "    a.b: want {\"x\":1}\n          got nothing\n");
    }

    #[test]
    fn common_prefixes_and_long_values_are_truncated() {
        let same = "s".repeat(100);
        let text = printed(json!(format!("{same}1")), json!(format!("{same}2")));
        let kept = "s".repeat(COMMON_CHARS_KEPT);
        assert_eq!(text, format!("    a.b: want …\"{kept}1\"\n          got …\"{kept}2\"\n"));
        assert_eq!(shown(&json!("é".repeat(1000)), 0).chars().count(), VALUE_CHARS_MAX + 1);
    }
}
