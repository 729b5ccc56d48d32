//! The phases of a long chore, with the time that each one takes.

use std::fmt;
use std::time::{Duration, Instant};

/// The time limit for all phases, above which a warning is printed: nobody waits longer for a check before a
/// commit.
const TOTAL_MAX: Duration = Duration::from_secs(45 * 60);

/// The phases that have run so far, in order.
#[derive(Debug, Default)]
pub(crate) struct Phases {
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    name: &'static str,
    duration: Duration,
}

impl Phases {
    /// Runs one phase and records its duration, whether it succeeds or fails.
    pub(crate) fn run<T>(
        &mut self,
        name: &'static str,
        phase: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        eprintln!("== {name}");
        let start = Instant::now();
        let result = phase();
        self.rows.push(Row { name, duration: start.elapsed() });
        result
    }

    fn total(&self) -> Duration {
        self.rows.iter().map(|row| row.duration).sum()
    }

    /// The warning for a run that takes longer than [`TOTAL_MAX`].
    fn warning(&self) -> Option<String> {
        (self.total() > TOTAL_MAX).then(|| {
            let rule = "!".repeat(72);
            format!(
                "{rule}\nwarning: the checks took {} minutes, more than {}.\n\
                 Make the slowest phase faster, or the machine less busy.\n{rule}",
                minutes(self.total()),
                minutes(TOTAL_MAX),
            )
        })
    }

    /// Prints the table of phases, and a warning if they took too long.
    pub(crate) fn print(&self) {
        println!("\n{self}");
        if let Some(warning) = self.warning() {
            println!("{warning}");
        }
    }
}

impl fmt::Display for Phases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<28} {:>8}", "phase", "minutes")?;
        for Row { name, duration } in &self.rows {
            writeln!(f, "{name:<28} {:>8}", minutes(*duration))?;
        }
        writeln!(f, "{:<28} {:>8}", "total", minutes(self.total()))
    }
}

fn minutes(duration: Duration) -> String {
    format!("{:.1}", duration.as_secs_f64() / 60.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    fn of_minutes(rows: &[(&'static str, f64)]) -> Phases {
        let row = |&(name, minutes): &(&'static str, f64)| Row {
            name,
            duration: Duration::from_secs_f64(minutes * 60.0),
        };
        Phases { rows: rows.iter().map(row).collect() }
    }

    #[test]
    fn the_table_has_a_row_for_each_phase_and_a_total() {
        let phases = of_minutes(&[("tidy", 0.26), ("clippy", 4.0)]);
        let want = "\
phase                         minutes
tidy                              0.3
clippy                            4.0
total                             4.3
";
        assert_eq!(phases.to_string(), want);
    }

    #[test]
    fn only_a_long_run_prints_a_warning() {
        assert_eq!(of_minutes(&[("a", 30.0), ("b", 15.0)]).warning(), None);
        let warning = of_minutes(&[("a", 30.0), ("b", 15.5)]).warning().unwrap();
        assert!(warning.contains("took 45.5 minutes, more than 45.0"), "{warning}");
    }

    #[test]
    fn a_phase_that_fails_is_recorded_and_its_error_returned() {
        let mut phases = Phases::default();
        assert_eq!(phases.run("good", || Ok(7)).unwrap(), 7);
        let error = phases.run("bad", || -> anyhow::Result<()> { bail!("broken") }).unwrap_err();
        assert_eq!(error.to_string(), "broken");
        let recorded: Vec<_> = phases.rows.iter().map(|row| row.name).collect();
        assert_eq!(recorded, ["good", "bad"]);
    }
}
