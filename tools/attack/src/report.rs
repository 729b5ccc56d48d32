//! The table of the attacks, and the verdicts.

use std::time::Duration;

use crate::attacks::Row;
use crate::runner::{MEMORY_KEPT_MAX, RowResult, Run};

/// The most memory that an attack may take.
const MEMORY_GROWTH_MAX: u64 = 200_000_000;
/// Under attack, the 99th percentile may be this multiple of the undisturbed one, or this long.
const SLOWDOWN_MAX: u32 = 5;
const P99_MAX: Duration = Duration::from_millis(50);
/// The number of decisions that differ of which the text is shown.
const N_EXAMPLES: usize = 3;

/// The results of all rows.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) rows: Vec<RowReport>,
}

/// The result of one row.
#[derive(Debug)]
pub(crate) struct RowReport {
    name: &'static str,
    title: &'static str,
    /// The cells between the title and the verdict.
    cells: String,
    /// Why the row did not hold; empty if it did.
    faults: Vec<String>,
    examples: Vec<String>,
}

impl Report {
    /// Whether every row held.
    pub(crate) fn has_held(&self) -> bool {
        self.rows.iter().all(|row| row.faults.is_empty())
    }

    /// The table as Markdown.
    pub(crate) fn render(&self) -> String {
        let mut text = String::from(
            "| attack | memory before, at most, after | innocents undisturbed: p50, p99 | under attack: p50, p99 | \
             decisions that differed | verdict |\n|---|---|---|---|---|---|\n",
        );
        for row in &self.rows {
            text.push_str(&row.line());
            text.push('\n');
        }
        let examples: Vec<&String> = self.rows.iter().flat_map(|row| &row.examples).collect();
        if !examples.is_empty() {
            text.push_str("\nSome of the decisions that differed:\n\n");
            for example in examples {
                text.push_str(&format!("- {example}\n"));
            }
        }
        text
    }
}

impl RowReport {
    /// Judges the result of a row.
    pub(crate) fn new(row: &Row, result: anyhow::Result<RowResult>) -> Self {
        let (cells, faults, examples) = match result {
            Err(error) => ("| | | |".to_owned(), vec![format!("not run: {error:#}")], Vec::new()),
            Ok(RowResult::Tests(n_passed)) => {
                (format!("| tests: {n_passed} passed | | | 0 |"), Vec::new(), Vec::new())
            }
            Ok(RowResult::Runs(runs)) => {
                let examples = runs.iter().flat_map(|run| &run.differences).take(N_EXAMPLES);
                let examples = examples.map(|text| format!("{}: {text}", row.name)).collect();
                (cells(&runs), faults(&runs), examples)
            }
        };
        Self { name: row.name, title: row.title, cells, faults, examples }
    }

    /// The row of the table.
    pub(crate) fn line(&self) -> String {
        let verdict = match self.faults.as_slice() {
            [] => "held".to_owned(),
            faults => format!("**failed**: {}", faults.join(", ")).replace('\n', " "),
        };
        format!("| {}: {} {} {verdict} |", self.name, self.title, self.cells)
    }
}

/// The median of a measurement over the runs.
fn median<T: Ord + Copy + Default>(runs: &[Run], value: fn(&Run) -> T) -> T {
    let mut values: Vec<T> = runs.iter().map(value).collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn cells(runs: &[Run]) -> String {
    let most = runs.iter().map(|run| run.bytes_most).max().unwrap_or_default();
    let n_differences: usize = runs.iter().map(|run| run.differences.len()).sum();
    format!(
        "| {}, {}, {} MB | {}, {} | {}, {} | {n_differences} |",
        megabytes(median(runs, |run| run.bytes_before)),
        megabytes(most),
        megabytes(median(runs, |run| run.bytes_after)),
        milliseconds(median(runs, |run| run.idle_p50)),
        milliseconds(median(runs, |run| run.idle_p99)),
        milliseconds(median(runs, |run| run.attack_p50)),
        milliseconds(median(runs, |run| run.attack_p99)),
    )
}

/// Why a row did not hold.
fn faults(runs: &[Run]) -> Vec<String> {
    let mut faults = Vec::new();
    let p99_max = (median(runs, |run| run.idle_p99) * SLOWDOWN_MAX).max(P99_MAX);
    if runs.iter().any(|run| !run.differences.is_empty()) {
        faults.push("decisions differ".to_owned());
    }
    if median(runs, |run| run.attack_p99) > p99_max {
        faults.push(format!("p99 over {}", milliseconds(p99_max)));
    }
    if runs.iter().any(|run| run.bytes_most > run.bytes_before + MEMORY_GROWTH_MAX) {
        faults.push(format!("more than {} MB more memory", megabytes(MEMORY_GROWTH_MAX)));
    }
    if runs.iter().any(|run| run.bytes_after > run.bytes_before + MEMORY_KEPT_MAX) {
        faults.push("memory does not come back".to_owned());
    }
    if runs.iter().any(|run| run.needs_restart) {
        faults.push("needs a restart".to_owned());
    }
    faults
}

fn megabytes(bytes: u64) -> String {
    format!("{:.0}", bytes as f64 / 1e6)
}

fn milliseconds(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change = fn(&mut Run);

    fn run(change: Change) -> Run {
        let mut run = Run {
            bytes_before: 100_000_000,
            bytes_most: 300_000_000,
            bytes_after: 200_000_000,
            idle_p99: Duration::from_millis(2),
            attack_p99: Duration::from_millis(50),
            ..Run::default()
        };
        change(&mut run);
        run
    }

    #[test]
    fn each_condition_can_fail() {
        let table: [(Change, &str); 6] = [
            (|_| {}, ""),
            (|run| run.differences.push("x".to_owned()), "decisions differ"),
            (|run| run.attack_p99 = Duration::from_millis(51), "p99 over 50.0 ms"),
            (|run| run.bytes_most += 1, "more than 200 MB more memory"),
            (|run| run.bytes_after += 1, "memory does not come back"),
            (|run| run.needs_restart = true, "needs a restart"),
        ];
        for (change, fault) in table {
            assert_eq!(faults(&[run(change)]).join(""), fault);
        }
    }

    #[test]
    fn a_slow_machine_is_given_more_time() {
        let slow = |run: &mut Run| {
            run.idle_p99 = Duration::from_millis(20);
            run.attack_p99 = Duration::from_millis(100);
        };
        assert_eq!(faults(&[run(slow)]), [""; 0]);
    }

    #[test]
    fn latencies_are_the_median_of_the_runs() {
        let slow: fn(&mut Run) = |run| run.attack_p99 = Duration::from_secs(9);
        assert_eq!(faults(&[run(slow), run(|_| {}), run(|_| {})]), [""; 0]);
        assert_eq!(faults(&[run(slow), run(slow), run(|_| {})]).len(), 1);
    }
}
