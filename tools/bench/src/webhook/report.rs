//! The tables that go into docs/performance.md.

use crate::numbers::{duration, ratio, thousands};
use std::fmt::Write;

use crate::webhook::measure::Measurement;
use crate::webhook::scenario::Scenario;
use crate::webhook::upstream::VERSION;

/// One scenario, with the best values of its rounds.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) scenario: Scenario,
    pub(crate) our_side: Option<Measurement>,
    pub(crate) upstream: Option<Measurement>,
}

impl Row {
    /// Keeps the best values of the earlier rounds and this one.
    pub(crate) fn keep(kept: &mut Option<Measurement>, round: Measurement) {
        *kept = Some(kept.map_or(round, |kept| kept.best(round)));
    }

    /// The median of upstream as a multiple of ours.
    pub(crate) fn ratio(&self) -> Option<f64> {
        Some(self.upstream?.p50_ns / self.our_side?.p50_ns.max(1.0))
    }
}

/// All measurements of the benchmark.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) rows: Vec<Row>,
    /// Why upstream was not run.
    pub(crate) upstream_absence: Option<String>,
}

impl Report {
    pub(crate) fn row(&self, scenario: Scenario) -> Option<&Row> {
        self.rows.iter().find(|row| row.scenario == scenario)
    }

    /// The number of wrong answers.
    pub(crate) fn n_wrong(&self) -> usize {
        let outcomes = self.rows.iter().flat_map(|row| [row.our_side, row.upstream]).flatten();
        outcomes.map(|measurement| measurement.n_wrong).sum()
    }

    /// The tables as Markdown. Writing to a `String` never fails.
    pub(crate) fn render(&self) -> String {
        let mut text = match &self.upstream_absence {
            None => format!("Upstream: {VERSION}.\n\n"),
            Some(reason) => format!("Upstream is not measured: {reason}.\n\n"),
        };
        text.push_str(
            "| question | ours p50 | ours p99 | bytes allocated | upstream p50 | upstream p99 | \
             allocations | upstream / ours |\n|---|---|---|---|---|---|---|---|\n",
        );
        for row in self.rows.iter().filter(|row| row.scenario != Scenario::Storm) {
            let time = |side: Option<Measurement>, part: fn(Measurement) -> f64| {
                side.map_or("-".to_owned(), |measurement| duration(part(measurement)))
            };
            let allocations = |side: Option<Measurement>| match side {
                Some(measurement) if row.scenario.is_cached() => measurement.allocated.to_string(),
                _ => "-".to_owned(),
            };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} | {} |",
                row.scenario.name(),
                time(row.our_side, |measurement| measurement.p50_ns),
                time(row.our_side, |measurement| measurement.p99_ns),
                allocations(row.our_side),
                time(row.upstream, |measurement| measurement.p50_ns),
                time(row.upstream, |measurement| measurement.p99_ns),
                allocations(row.upstream),
                ratio(row.ratio()),
            );
        }
        text.push_str(
            "\n| the same question at once | calls | all answered after |\n|---|---|---|\n",
        );
        let storm = self.row(Scenario::Storm);
        for (side, measurement) in [
            ("ours", storm.and_then(|row| row.our_side)),
            ("upstream", storm.and_then(|row| row.upstream)),
        ] {
            let Some(measurement) = measurement else { continue };
            let _ = writeln!(
                text,
                "| {side} | {} | {} |",
                thousands(measurement.n_calls),
                duration(measurement.total_ns),
            );
        }
        text
    }
}
