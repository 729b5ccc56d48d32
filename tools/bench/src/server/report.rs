//! The tables that go into docs/performance.md.

use crate::numbers::thousands;
use std::fmt::Write;
use std::time::Duration;

use crate::server::case::Case;
use crate::server::load::LoadResult;
use crate::server::measured_server::ServerMeasurements;

/// The measurements of one kind of request on one server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) case: Case,
    pub(crate) n_bindings: usize,
    /// One measurement of each round.
    pub(crate) results: Vec<LoadResult>,
}

impl Row {
    /// The best value of each number. Other programs on the machine make a round worse, never better.
    pub(crate) fn best(&self) -> Option<LoadResult> {
        self.results.iter().copied().reduce(LoadResult::best)
    }

    /// The median over the rounds of the requests per second, as a multiple of those of another row. The two
    /// measurements of a round follow each other, so other programs on the machine affect both.
    pub(crate) fn ratio(&self, other: &Self) -> Option<f64> {
        let pairs = self.results.iter().zip(&other.results);
        let mut ratios: Vec<f64> =
            pairs.map(|(own, other)| own.per_second / other.per_second).collect();
        ratios.sort_by(f64::total_cmp);
        ratios.get(ratios.len() / 2).copied()
    }
}

/// All measurements of the benchmark.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) n_connections: usize,
    pub(crate) rows: Vec<Row>,
    /// The measurements of each server; the first one has the default policy.
    pub(crate) servers: Vec<ServerMeasurements>,
}

impl Report {
    /// The tables as Markdown. Writing to a `String` never fails.
    pub(crate) fn render(&self) -> String {
        let mut text = format!(
            "{} connections, the best of {} rounds; *CPU* is the processor time of the server for \
             each request.\n\n\
             | request | more bindings | a second | p50 | p99 | CPU |\n|---|---|---|---|---|---|\n",
            self.n_connections,
            self.rows.iter().map(|row| row.results.len()).max().unwrap_or_default(),
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
        for life in &self.servers {
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

/// Formats a duration with three digits in the most readable unit.
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

/// Formats bytes in millions.
pub(crate) fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_compared_in_pairs() {
        let result = |per_second: f64, millis: u64| {
            let time = Duration::from_millis(millis);
            LoadResult { per_second, p50: time, p99: time, server_time: time }
        };
        let row = |results| Row { case: Case::Get, n_bindings: 0, results };
        let one = row(vec![result(100.0, 5), result(10.0, 1), result(200.0, 9)]);
        let other = row(vec![result(50.0, 1), result(10.0, 1), result(200.0, 1)]);
        assert_eq!(one.best(), Some(result(200.0, 1)));
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
