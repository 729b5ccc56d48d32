//! The table of the comparison.

use std::fmt::Write;
use std::time::Duration;

use crate::floor::case::Case;
use crate::numbers::thousands;
use crate::server::report::{duration, megabytes};

/// One measurement of one case on one server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Measurement {
    pub(crate) per_second: f64,
    /// The CPU time of the server for each request.
    pub(crate) server_time: Duration,
}

/// The measurements of one case.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) case: Case,
    pub(crate) name: String,
    /// The measurements of each round, for each server.
    pub(crate) results: Vec<Vec<Measurement>>,
}

/// The measurements of all cases on all servers.
#[derive(Debug)]
pub(crate) struct Report {
    /// The names of the servers; the first is the floor and the second is ours.
    pub(crate) names: Vec<&'static str>,
    pub(crate) rows: Vec<Row>,
    pub(crate) n_bindings: usize,
    /// The resident memory of our server with so many more bindings, before any load.
    pub(crate) bindings_bytes: u64,
}

impl Row {
    /// The median CPU time of a server for each request.
    pub(crate) fn server_time(&self, idx: usize) -> Option<Duration> {
        let times = self.results.get(idx)?.iter().map(|result| result.server_time.as_secs_f64());
        median(times.collect()).map(Duration::from_secs_f64)
    }

    fn per_second(&self, idx: usize) -> Option<f64> {
        median(self.results.get(idx)?.iter().map(|result| result.per_second).collect())
    }

    /// The CPU time of the floor as a share of ours, in the median of the rounds. The measurements of a round
    /// follow each other, so other programs on the machine affect both.
    pub(crate) fn share_of_floor(&self) -> Option<f64> {
        let (floor, ours) = self.results.first().zip(self.results.get(1))?;
        let shares = floor.iter().zip(ours);
        let share = |(floor, ours): (&Measurement, &Measurement)| {
            floor.server_time.as_secs_f64() / ours.server_time.as_secs_f64()
        };
        median(shares.map(share).collect())
    }
}

impl Report {
    /// The tables as Markdown. Writing to a `String` never fails.
    pub(crate) fn render(&self) -> String {
        let n_rounds = self.rows.iter().flat_map(|row| &row.results).map(Vec::len).max();
        let mut text = format!(
            "The median of {} rounds; *CPU* is the processor time of the server for each request, *share* that of \
             the floor divided by ours.\n\n| request |",
            n_rounds.unwrap_or_default()
        );
        for name in &self.names {
            let _ = write!(text, " {name}, CPU | a second |");
        }
        text.push_str(" share |\n|---|");
        text.push_str(&"---|".repeat(self.names.len() * 2 + 1));
        text.push('\n');
        for row in &self.rows {
            let _ = write!(text, "| {} |", row.name);
            for idx in 0..self.names.len() {
                let cpu = row.server_time(idx).map(duration).unwrap_or_default();
                let rate = row.per_second(idx).map(|rate| thousands(rate as u64));
                let _ = write!(text, " {cpu} | {} |", rate.unwrap_or_default());
            }
            let share = row.share_of_floor().unwrap_or_default() * 100.0;
            let _ = writeln!(text, " {share:.0} % |");
        }
        let _ = writeln!(
            text,
            "\nResident memory with {} more bindings: {}.",
            thousands(self.n_bindings),
            megabytes(self.bindings_bytes)
        );
        text
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
