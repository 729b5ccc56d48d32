//! The tables that go into docs/performance.md.

use crate::numbers::thousands;
use std::fmt::Write;
use std::time::Duration;

use crate::server::case::Case;
use crate::server::load::Outcome;
use crate::server::site::Life;

/// One kind of request on one server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) case: Case,
    pub(crate) n_bindings: usize,
    /// One of each round.
    pub(crate) outcomes: Vec<Outcome>,
}

impl Row {
    /// The best of each number. Other programs on the machine make a round worse, never better.
    pub(crate) fn best(&self) -> Option<Outcome> {
        self.outcomes.iter().copied().reduce(Outcome::best)
    }

    /// How many times as many requests a second as another row, in the median of the rounds. The two
    /// of a round were measured one after the other, so that what else goes on concerns both.
    pub(crate) fn ratio(&self, other: &Self) -> Option<f64> {
        let pairs = self.outcomes.iter().zip(&other.outcomes);
        let mut ratios: Vec<f64> =
            pairs.map(|(own, other)| own.per_second / other.per_second).collect();
        ratios.sort_by(f64::total_cmp);
        ratios.get(ratios.len() / 2).copied()
    }
}

/// All that was measured.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) n_connections: usize,
    pub(crate) rows: Vec<Row>,
    /// Each server: the first has the default policy.
    pub(crate) sites: Vec<Life>,
}

impl Report {
    /// The tables, as Markdown. Writing to a string can not fail.
    pub(crate) fn render(&self) -> String {
        let mut text = format!(
            "{} connections, the best of {} rounds; *CPU* is the processor time of the server for \
             each request.\n\n\
             | request | more bindings | a second | p50 | p99 | CPU |\n|---|---|---|---|---|---|\n",
            self.n_connections,
            self.rows.iter().map(|row| row.outcomes.len()).max().unwrap_or_default(),
        );
        for (row, own) in self.rows.iter().filter_map(|row| Some((row, row.best()?))) {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} |",
                row.case.name(),
                thousands(row.n_bindings as u64),
                thousands(own.per_second as u64),
                duration(own.p50),
                duration(own.p99),
                duration(own.server_time),
            );
        }
        text.push_str(
            "\n| more bindings | ready, new store | ready, kept store | memory at start | \
             objects created | started again | after the reads | after the writes |\n\
             |---|---|---|---|---|---|---|---|\n",
        );
        for life in &self.sites {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} | {} ({} objects) |",
                thousands(life.n_bindings as u64),
                duration(life.ready_new),
                duration(life.ready_kept),
                megabytes(life.start_bytes),
                megabytes(life.populated_bytes),
                megabytes(life.restarted_bytes),
                megabytes(life.read_bytes),
                megabytes(life.written_bytes),
                thousands(life.n_written),
            );
        }
        text
    }
}

/// A duration in the unit that reads best, with three digits.
pub(crate) fn duration(duration: Duration) -> String {
    let ns = duration.as_secs_f64() * 1e9;
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

/// Bytes in millions.
pub(crate) fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_compared_in_pairs() {
        let outcome = |per_second: f64, millis: u64| {
            let time = Duration::from_millis(millis);
            Outcome { per_second, p50: time, p99: time, server_time: time }
        };
        let row = |outcomes| Row { case: Case::Get, n_bindings: 0, outcomes };
        let one = row(vec![outcome(100.0, 5), outcome(10.0, 1), outcome(200.0, 9)]);
        let other = row(vec![outcome(50.0, 1), outcome(10.0, 1), outcome(200.0, 1)]);
        assert_eq!(one.best(), Some(outcome(200.0, 1)));
        assert_eq!(one.ratio(&other), Some(1.0));
        assert_eq!((row(vec![]).best(), row(vec![]).ratio(&one)), (None, None));
    }

    #[test]
    fn numbers_are_shown_with_few_digits() {
        for (nanos, want) in [
            (999, "999 ns"),
            (1_234, "1.23 µs"),
            (12_345, "12.3 µs"),
            (1_500_000, "1.50 ms"),
            (2_000_000_000, "2.00 s"),
        ] {
            assert_eq!(duration(Duration::from_nanos(nanos)), want);
        }
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(megabytes(1_250_000), "1.2 MB");
    }
}
