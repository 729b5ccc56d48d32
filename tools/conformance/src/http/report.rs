//! The report of the scenarios of one suite.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::replay::ScenarioOutcome;
use crate::report::print_difference;

/// The number of differences that are printed for one step.
const DIFFERENCES_SHOWN_MAX: usize = 6;

/// The outcomes of one suite, in the order of its file.
#[derive(Debug)]
pub struct HttpReport {
    suite: String,
    outcomes: Vec<ScenarioOutcome>,
}

/// Counts of scenarios and requests.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Totals {
    n_scenarios: usize,
    n_scenarios_passed: usize,
    n_requests: usize,
    n_requests_passed: usize,
}

impl Totals {
    fn add(&mut self, outcome: &ScenarioOutcome) {
        self.n_scenarios += 1;
        self.n_scenarios_passed += usize::from(outcome.is_passed());
        self.n_requests += outcome.n_requests;
        self.n_requests_passed += outcome.n_requests_passed;
    }

    fn print(&self, out: &mut dyn Write, indent: &str, name: &str) -> io::Result<()> {
        writeln!(
            out,
            "{indent}{name}: {} of {} scenarios passed, {} of {} requests",
            self.n_scenarios_passed, self.n_scenarios, self.n_requests_passed, self.n_requests
        )
    }
}

impl HttpReport {
    /// A report of outcomes in the order of the file.
    pub fn new(suite: String, outcomes: Vec<ScenarioOutcome>) -> Self {
        Self { suite, outcomes }
    }

    /// The ids of the scenarios that passed, or of those that failed.
    pub fn ids(&self, is_passed: bool) -> impl Iterator<Item = &str> {
        let chosen = self.outcomes.iter().filter(move |outcome| outcome.is_passed() == is_passed);
        chosen.map(|outcome| outcome.id.as_str())
    }

    /// Prints a line for the suite and one for each feature; if verbose, also the first difference of each scenario.
    ///
    /// # Errors
    /// The report cannot be written.
    pub fn print(&self, out: &mut dyn Write, is_verbose: bool) -> io::Result<()> {
        let mut all = Totals::default();
        let mut features: BTreeMap<&str, Totals> = BTreeMap::new();
        for outcome in &self.outcomes {
            all.add(outcome);
            features.entry(&outcome.feature).or_default().add(outcome);
        }
        all.print(out, "", &self.suite)?;
        for (feature, totals) in features {
            totals.print(out, "  ", feature)?;
        }
        if is_verbose {
            self.outcomes.iter().try_for_each(|outcome| print_outcome(out, outcome))?;
        }
        Ok(())
    }

    /// Prints the first answer that differs of each scenario that failed.
    ///
    /// # Errors
    /// The report cannot be written.
    pub fn print_failures(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut failed = self.outcomes.iter().filter(|outcome| !outcome.is_passed());
        failed.try_for_each(|outcome| print_outcome(out, outcome))
    }

    /// Prints the total of several suites.
    ///
    /// # Errors
    /// The report cannot be written.
    pub fn print_total(reports: &[Self], out: &mut dyn Write) -> io::Result<()> {
        let mut all = Totals::default();
        reports.iter().flat_map(|report| &report.outcomes).for_each(|outcome| all.add(outcome));
        all.print(out, "", "total")
    }
}

fn print_outcome(out: &mut dyn Write, outcome: &ScenarioOutcome) -> io::Result<()> {
    let ScenarioOutcome { id, feature, .. } = outcome;
    let Some(first) = &outcome.first_difference else {
        return writeln!(out, "  passed {id}");
    };
    writeln!(out, "  failed {id} ({feature}), step {}: {}", first.step, first.request)?;
    for difference in first.differences.iter().take(DIFFERENCES_SHOWN_MAX) {
        print_difference(out, difference)?;
    }
    match first.differences.len().checked_sub(DIFFERENCES_SHOWN_MAX) {
        None | Some(0) => Ok(()),
        Some(n_more) => writeln!(out, "    and {n_more} more differences"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::replay::StepDifference;
    use super::*;
    use crate::compare::Difference;

    #[test]
    fn suites_and_features_are_counted_and_failures_shown_if_asked() {
        let difference = Difference { path: "code".to_owned(), want: 201.into(), got: 404.into() };
        let first = StepDifference {
            step: 2,
            request: "POST /p".to_owned(),
            differences: vec![difference],
        };
        let outcome = |id: &str, feature: &str, first_difference| ScenarioOutcome {
            id: id.to_owned(),
            feature: feature.to_owned(),
            n_requests: 3,
            n_requests_passed: 2,
            first_difference,
        };
        let outcomes = vec![outcome("a", "g", None), outcome("b", "f", Some(first))];
        let report = HttpReport::new("http-x".to_owned(), outcomes);
        let printed = |is_verbose| {
            let mut out = Vec::new();
            report.print(&mut out, is_verbose).unwrap();
            String::from_utf8(out).unwrap()
        };
        let counts = "http-x: 1 of 2 scenarios passed, 4 of 6 requests\n  \
                      f: 0 of 1 scenarios passed, 2 of 3 requests\n  \
                      g: 1 of 1 scenarios passed, 2 of 3 requests\n";
        assert_eq!(printed(false), counts);
        let failures = "  passed a\n  failed b (f), step 2: POST /p\n    \
                        code: want 201\n           got 404\n";
        assert_eq!(printed(true), format!("{counts}{failures}"));
    }
}
