//! The tables that go into docs/performance.md.

use crate::numbers::{duration, ratio, thousands};
use std::fmt::Write;

use crate::webhook::contest::Contest;
use crate::webhook::measure::Outcome;
use crate::webhook::upstream::VERSION;

/// One contest, the best of its rounds.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) contest: Contest,
    pub(crate) ours: Option<Outcome>,
    pub(crate) upstream: Option<Outcome>,
}

impl Row {
    /// Keeps the best of what there is and one round more.
    pub(crate) fn keep(kept: &mut Option<Outcome>, round: Outcome) {
        *kept = Some(kept.map_or(round, |kept| kept.best(round)));
    }

    /// How many times as long upstream takes, in the median.
    pub(crate) fn ratio(&self) -> Option<f64> {
        Some(self.upstream?.p50_ns / self.ours?.p50_ns.max(1.0))
    }
}

/// All that was measured.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) rows: Vec<Row>,
    /// Why upstream was not measured.
    pub(crate) upstream_absence: Option<String>,
}

impl Report {
    pub(crate) fn row(&self, contest: Contest) -> Option<&Row> {
        self.rows.iter().find(|row| row.contest == contest)
    }

    /// Answers that are not what they should be.
    pub(crate) fn n_wrong(&self) -> usize {
        let outcomes = self.rows.iter().flat_map(|row| [row.ours, row.upstream]).flatten();
        outcomes.map(|outcome| outcome.n_wrong).sum()
    }

    /// The tables, as Markdown. Writing to a string can not fail.
    pub(crate) fn render(&self) -> String {
        let mut text = match &self.upstream_absence {
            None => format!("Upstream: {VERSION}.\n\n"),
            Some(reason) => format!("Upstream is not measured: {reason}.\n\n"),
        };
        text.push_str(
            "| question | ours p50 | ours p99 | bytes allocated | upstream p50 | upstream p99 | \
             allocations | upstream / ours |\n|---|---|---|---|---|---|---|---|\n",
        );
        for row in self.rows.iter().filter(|row| row.contest != Contest::Storm) {
            let time = |side: Option<Outcome>, part: fn(Outcome) -> f64| {
                side.map_or("-".to_owned(), |outcome| duration(part(outcome)))
            };
            let allocations = |side: Option<Outcome>| match side {
                Some(outcome) if row.contest.is_cached() => outcome.allocated.to_string(),
                _ => "-".to_owned(),
            };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} | {} |",
                row.contest.name(),
                time(row.ours, |outcome| outcome.p50_ns),
                time(row.ours, |outcome| outcome.p99_ns),
                allocations(row.ours),
                time(row.upstream, |outcome| outcome.p50_ns),
                time(row.upstream, |outcome| outcome.p99_ns),
                allocations(row.upstream),
                ratio(row.ratio()),
            );
        }
        text.push_str(
            "\n| the same question at once | calls | all answered after |\n|---|---|---|\n",
        );
        let storm = self.row(Contest::Storm);
        for (side, outcome) in [
            ("ours", storm.and_then(|row| row.ours)),
            ("upstream", storm.and_then(|row| row.upstream)),
        ] {
            let Some(outcome) = outcome else { continue };
            let _ = writeln!(
                text,
                "| {side} | {} | {} |",
                thousands(outcome.n_calls),
                duration(outcome.total_ns),
            );
        }
        text
    }
}
