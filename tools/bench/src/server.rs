//! `cargo xtask bench server`: the server under load from a client over TLS on the same machine.
//!
//! Two servers run side by side, one with the default policy and one with many more cluster role
//! bindings, and take turns.

pub(crate) mod case;
pub(crate) mod client;
pub(crate) mod load;
pub(crate) mod populate;
pub(crate) mod process;
pub(crate) mod program;
mod report;
pub(crate) mod site;
mod targets;

use std::time::Duration;

use anyhow::Context;

use case::Case;
use load::Effort;
use program::Profile;
use report::{Report, Row};
use site::Site;

use crate::arguments::Arguments;
use crate::{Measured, targets as promises};

/// What is measured.
struct Plan {
    profile: Profile,
    effort: Effort,
    /// How often everything is measured.
    n_rounds: usize,
    /// Bindings of the second server, beside those of the default policy.
    n_bindings: usize,
}

impl Plan {
    const FULL: Self = Self {
        profile: Profile::Release,
        effort: Effort {
            n_connections: 32,
            warm_up: Duration::from_millis(100),
            window: Duration::from_millis(400),
        },
        n_rounds: 25,
        n_bindings: 10_000,
    };

    const QUICK: Self = Self {
        profile: Profile::Dev,
        effort: Effort {
            n_connections: 4,
            warm_up: Duration::from_millis(20),
            // On a busy machine a tenth of that may pass without an answer.
            window: Duration::from_millis(1_000),
        },
        n_rounds: 1,
        n_bindings: 20,
    };

    async fn run(&self, arguments: &Arguments) -> anyhow::Result<Report> {
        let program = match &arguments.program {
            Some(program) => program.clone(),
            None => program::find(self.profile)?,
        };
        let n_connections = self.effort.n_connections;
        let mut sites = Vec::new();
        for n_bindings in [0, self.n_bindings] {
            sites.push(Site::prepare(&program, n_bindings, n_connections).await?);
            eprintln!("prepared: {n_bindings} more bindings");
        }
        let mut rows = Vec::new();
        for (is_last, cases) in [(false, Case::READS), (true, Case::WRITES)] {
            let cases: Vec<Case> =
                cases.iter().filter(|own| own.name().contains(&arguments.only)).copied().collect();
            for round in 1..=self.n_rounds {
                sites.reverse();
                self.round(&cases, &mut sites, &mut rows).await?;
                eprintln!("round {round} of {}: {}", self.n_rounds, Case::names(&cases));
            }
            for site in &mut sites {
                site.note_memory(is_last)?;
            }
        }
        sites.sort_by_key(|site| site.n_bindings);
        rows.sort_by_key(|row| (row.case, row.n_bindings));
        Ok(Report { n_connections, rows, sites: sites.into_iter().map(Site::stop).collect() })
    }

    /// Measures some cases once on every server. Which server is first changes from round to round,
    /// so that neither gains by it.
    async fn round(
        &self,
        cases: &[Case],
        sites: &mut [Site],
        rows: &mut Vec<Row>,
    ) -> anyhow::Result<()> {
        for case in cases {
            for site in &mut *sites {
                let outcome = load::run(site, *case, self.effort).await;
                let outcome = outcome.with_context(|| case.name())?;
                let n_bindings = site.n_bindings;
                let found =
                    rows.iter_mut().find(|row| (row.case, row.n_bindings) == (*case, n_bindings));
                match found {
                    None => rows.push(Row { case: *case, n_bindings, outcomes: vec![outcome] }),
                    Some(row) => row.outcomes.push(outcome),
                }
            }
        }
        Ok(())
    }
}

/// Runs the benchmark.
///
/// # Errors
/// A server does not start, or an answer is wrong.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Measured> {
    let plan = if arguments.is_quick { Plan::QUICK } else { Plan::FULL };
    let report = client_runtime()?.block_on(plan.run(arguments))?;
    let text = format!("{}\n{}", report.render(), promises::render(&targets::check(&report)));
    Ok(Measured { text, n_wrong: 0 })
}

/// The runtime of the client. It has one thread: the server does not get the time that the client takes.
pub(crate) fn client_runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
