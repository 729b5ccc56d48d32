//! The tables that go into docs/performance.md.

use std::fmt::Write;

use crate::contest::Contest;
use crate::measure::Outcome;
use crate::upstream::VERSION;

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
            "| question | ours p50 | ours p99 | allocations | upstream p50 | upstream p99 | \
             allocations | upstream / ours |\n|---|---|---|---|---|---|---|---|\n",
        );
        for row in self.rows.iter().filter(|row| row.contest != Contest::Storm) {
            let time = |side: Option<Outcome>, part: fn(Outcome) -> f64| {
                side.map_or("-".to_owned(), |outcome| duration(part(outcome)))
            };
            let allocations = |side: Option<Outcome>| match side {
                Some(outcome) if row.contest.is_cached() => outcome.n_allocations.to_string(),
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

/// Nanoseconds in the unit that reads best, with three digits.
pub(crate) fn duration(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 999.5 => return format!("{ns:.0} ns"),
        ns if ns < 999.5e3 => (ns / 1e3, "µs"),
        ns if ns < 999.5e6 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    match value {
        value if value < 9.995 => format!("{value:.2} {unit}"),
        value if value < 99.95 => format!("{value:.1} {unit}"),
        value => format!("{value:.0} {unit}"),
    }
}

fn ratio(ratio: Option<f64>) -> String {
    match ratio {
        None => "-".to_owned(),
        Some(ratio) if ratio < 9.95 => format!("{ratio:.1}"),
        Some(ratio) => thousands(ratio.round() as u64),
    }
}

/// A number with a comma before every third digit from its end.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_with_few_digits() {
        for (ns, want) in [
            (0.0, "0 ns"),
            (999.4, "999 ns"),
            (999.6, "1.00 µs"),
            (12_345.0, "12.3 µs"),
            (123_456.0, "123 µs"),
            (1.5e6, "1.50 ms"),
            (2e9, "2.00 s"),
        ] {
            assert_eq!(duration(ns), want);
        }
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([None, Some(1.25), Some(1234.5)].map(ratio), ["-", "1.2", "1,235"]);
    }
}
