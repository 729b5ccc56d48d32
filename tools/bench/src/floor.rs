//! `cargo xtask bench floor`: compares the server with a floor, and with a running kube-apiserver if there is one.
//!
//! The floor is a process with the same TLS, HTTP and allocator that answers the same bytes without any work. The
//! servers take turns in each round, so that the load of the machine meets all of them. The number that other
//! programs disturb least is the CPU time of the server for each request.

mod case;
mod column;
mod fan_out;
mod listening_process;
mod report;
mod targets;

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use anyhow::Context;

use case::Case;
use column::Column;
use report::{Measurement, Report, Row};

use crate::arguments::Arguments;
use crate::server::client_runtime;
use crate::server::load::{self, Effort};
use crate::server::measured_server::MeasuredServer;
use crate::server::program::{self, FLOOR, PORTCULLIS, Profile};
use crate::{BenchResult, targets as promises};

/// The settings of one run: full, or quick for a test.
struct Plan {
    profile: Profile,
    /// The load of one measurement. Lists have fewer connections.
    effort: Effort,
    n_rounds: usize,
    /// The number of cluster role bindings in addition to the default policy.
    n_bindings: usize,
    /// The number of config maps in the large namespace.
    n_large: u64,
    /// The watches of each of the ten connections, and the objects that are created while they are open.
    n_watches_each: usize,
    n_events: usize,
}

impl Plan {
    const FULL: Self = Self {
        profile: Profile::Release,
        effort: Effort {
            n_connections: 32,
            warm_up: Duration::from_millis(150),
            window: Duration::from_millis(600),
        },
        n_rounds: 9,
        n_bindings: 10_000,
        n_large: 10_000,
        n_watches_each: 100,
        n_events: 200,
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
        n_large: 600,
        n_watches_each: 3,
        n_events: 5,
    };

    async fn run(&self, arguments: &Arguments) -> anyhow::Result<Report> {
        let program = match &arguments.program {
            Some(program) => program.clone(),
            None => program::find(PORTCULLIS, self.profile)?,
        };
        let server =
            MeasuredServer::prepare(&program, self.n_bindings, self.effort.n_connections).await?;
        eprintln!("prepared: {} more bindings", self.n_bindings);
        let bindings_bytes = server.process.resident_bytes()?;
        let mut columns = vec![Column::ours(&server)];
        if let Some(url) = &arguments.peer {
            columns.push(Column::peer(url, &arguments.peer_token)?);
        }
        for column in &mut columns {
            column.service_account_token =
                column.populate(self.n_large).await.context(column.name)?;
            eprintln!("populated: {}", column.name);
        }
        let floor_program = program::find(FLOOR, self.profile)?;
        let ours = columns.first().context("there is no server")?;
        let floor = Column::floor(&floor_program, ours).await?;
        columns.insert(0, floor);
        let rows = self.measure(arguments, &columns).await?;
        let names = columns.iter().map(|column| column.name).collect();
        drop(columns);
        server.stop();
        Ok(Report { names, rows, n_bindings: self.n_bindings, bindings_bytes })
    }

    async fn measure(&self, arguments: &Arguments, columns: &[Column]) -> anyhow::Result<Vec<Row>> {
        let cases: Vec<Case> = (Case::ALL.iter())
            .filter(|case| case.name(self.n_large).contains(&arguments.only))
            .copied()
            .collect();
        let new_row = |case: &Case| Row {
            case: *case,
            name: case.name(self.n_large),
            results: vec![Vec::new(); columns.len()],
        };
        let mut rows: Vec<Row> = cases.iter().map(new_row).collect();
        for round in 0..self.n_rounds {
            for row in &mut rows {
                for idx in 0..columns.len() {
                    // The order alternates, so that no server has an advantage.
                    let idx = if round % 2 == 0 { idx } else { columns.len() - 1 - idx };
                    let Some((column, results)) = columns.get(idx).zip(row.results.get_mut(idx))
                    else {
                        continue;
                    };
                    let measured = self.measure_once(row.case, column, round).await;
                    results
                        .push(measured.with_context(|| format!("{}: {}", column.name, row.name))?);
                }
            }
            eprintln!("round {} of {}", round + 1, self.n_rounds);
        }
        Ok(rows)
    }

    async fn measure_once(
        &self,
        case: Case,
        column: &Column,
        round: usize,
    ) -> anyhow::Result<Measurement> {
        if case == Case::Watch {
            return fan_out::measure(column, round, self.n_watches_each, self.n_events).await;
        }
        let effort = match case.is_list() {
            // A list takes long, above all on a busy machine.
            true => Effort { n_connections: 4, window: self.effort.window * 3, ..self.effort },
            false => self.effort,
        };
        let next = Rc::new(Cell::new(0));
        let requests = case.requests(column);
        let result = load::send(&column.client, column.pid, &requests, &next, effort).await?;
        Ok(Measurement { per_second: result.per_second, server_time: result.server_time })
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
