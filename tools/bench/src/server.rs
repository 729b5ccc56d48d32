//! `cargo xtask bench server`: measures the server under load from a client over TLS on the same machine.
//!
//! Two servers take turns: one with the default policy, and one with many more cluster role bindings.

pub(crate) mod case;
pub(crate) mod client;
pub(crate) mod load;
pub(crate) mod measured_server;
pub(crate) mod populate;
pub(crate) mod process;
pub(crate) mod program;
pub(crate) mod report;
mod targets;

use std::time::Duration;

use anyhow::Context;

use case::Case;
use load::Effort;
use measured_server::MeasuredServer;
use program::{PORTCULLIS, Profile};
use report::{Report, Row};

use crate::arguments::Arguments;
use crate::{BenchResult, targets as promises};

/// The settings of one run: full, or quick for a test.
struct Plan {
    profile: Profile,
    effort: Effort,
    /// The number of rounds in which everything is measured.
    n_rounds: usize,
    /// The number of bindings of the second server, in addition to the default policy.
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
        profile: Profile::Own,
        effort: Effort {
            n_connections: 4,
            warm_up: Duration::from_millis(20),
            // On a busy machine a tenth of this time can pass without an answer.
            window: Duration::from_millis(1_000),
        },
        n_rounds: 1,
        n_bindings: 20,
    };

    async fn run(&self, arguments: &Arguments) -> anyhow::Result<Report> {
        let program = match &arguments.program {
            Some(program) => program.clone(),
            None => program::find(PORTCULLIS, self.profile)?,
        };
        let n_connections = self.effort.n_connections;
        let mut servers = Vec::new();
        for n_bindings in [0, self.n_bindings] {
            servers.push(MeasuredServer::prepare(&program, n_bindings, n_connections).await?);
            eprintln!("prepared: {n_bindings} more bindings");
        }
        let mut rows = Vec::new();
        for (is_last, cases) in [(false, Case::READS), (true, Case::WRITES)] {
            let cases: Vec<Case> =
                cases.iter().filter(|own| own.name().contains(&arguments.only)).copied().collect();
            for round in 1..=self.n_rounds {
                servers.reverse();
                self.round(&cases, &mut servers, &mut rows).await?;
                eprintln!("round {round} of {}: {}", self.n_rounds, Case::names(&cases));
            }
            for measured_server in &mut servers {
                measured_server.record_memory(is_last)?;
            }
        }
        servers.sort_by_key(|measured_server| measured_server.n_bindings);
        rows.sort_by_key(|row| (row.case, row.n_bindings));
        Ok(Report {
            n_connections,
            rows,
            servers: servers.into_iter().map(MeasuredServer::stop).collect(),
        })
    }

    /// Measures some cases once on every server. The order of the servers alternates, so that neither has an
    /// advantage.
    async fn round(
        &self,
        cases: &[Case],
        servers: &mut [MeasuredServer],
        rows: &mut Vec<Row>,
    ) -> anyhow::Result<()> {
        for case in cases {
            for measured_server in &mut *servers {
                let result = load::run(measured_server, *case, self.effort).await;
                let result = result.with_context(|| case.name())?;
                let n_bindings = measured_server.n_bindings;
                let found =
                    rows.iter_mut().find(|row| (row.case, row.n_bindings) == (*case, n_bindings));
                match found {
                    None => rows.push(Row { case: *case, n_bindings, results: vec![result] }),
                    Some(row) => row.results.push(result),
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
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<BenchResult> {
    let plan = if arguments.is_quick { Plan::QUICK } else { Plan::FULL };
    let report = client_runtime()?.block_on(plan.run(arguments))?;
    let text = format!("{}\n{}", report.render(), promises::render(&targets::check(&report)));
    Ok(BenchResult { text, n_wrong: 0 })
}

/// The runtime of the client. It has one thread, so that it leaves the other processors to the server.
pub(crate) fn client_runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
