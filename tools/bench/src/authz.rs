//! `cargo xtask bench authz`: measures the authorizers with large policies, and compares them with a naive
//! implementation and with Kubernetes.

mod abac;
mod agreement;
mod chain;
mod comparison;
mod measure;
mod node;
mod random;
mod rbac;
mod report;
mod request_pool;
mod targets;
mod upstream;
mod vocabulary;

use std::path::Path;
use std::time::Instant;

use ::authz::{Decision, Verdict};

use measure::Effort;
use report::Report;
use upstream::Files;

use crate::arguments::Arguments;
use crate::{BenchResult, targets as promises};

/// The policy sizes and the effort of one run.
struct Plan {
    effort: Effort,
    rbac: &'static [usize],
    abac: &'static [usize],
    n_nodes: usize,
    /// The number of bindings of the chain, which is one of the sizes of RBAC.
    chain: usize,
    files: Files,
}

impl Plan {
    fn full() -> anyhow::Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/bench/authz");
        Ok(Self {
            effort: Effort::FULL,
            rbac: &[100, 1_000, 100_000, 10_000],
            abac: &[10, 1_000, 100_000],
            n_nodes: 5_000,
            chain: 10_000,
            files: Files::below(root)?,
        })
    }

    fn quick() -> Self {
        Self {
            effort: Effort::QUICK,
            rbac: &[100, 1_000],
            abac: &[10, 1_000],
            n_nodes: 40,
            chain: 1_000,
            files: Files::none(),
        }
    }

    fn run(self) -> anyhow::Result<Report> {
        let Self { effort, mut files, .. } = self;
        let mut report = Report::default();
        let mut progress = Progress { start: Instant::now() };
        for number in 0..effort.n_small_policies {
            report.small.add(abac::compare_small(number)?);
            report.small.add(rbac::compare_small(number)?);
        }
        progress.done("small policies");
        for n_lines in self.abac {
            let (rows, index) = abac::run(*n_lines, effort, &mut files)?;
            report.rows.extend(rows);
            report.indexes.push(index);
            progress.done(&format!("ABAC, {n_lines} lines"));
        }
        for n_bindings in self.rbac {
            let (rows, index) = rbac::run(*n_bindings, effort, &mut files)?;
            report.rows.extend(rows);
            report.indexes.push(index);
            progress.done(&format!("RBAC, {n_bindings} bindings"));
        }
        let nodes = node::Cluster::generate(self.n_nodes, &files)?;
        report.rows.push(chain::run(&nodes, self.chain, effort, &mut files)?);
        progress.done("chain");
        let (row, index) = nodes.run(effort, &mut files)?;
        report.rows.push(row);
        report.indexes.push(index);
        drop(nodes);
        progress.done(&format!("Node, {} nodes", self.n_nodes));
        match files.run()? {
            Ok(mut answers) => {
                for row in &mut report.rows {
                    row.upstream = answers.remove(&row.comparison.name());
                }
                progress.done("upstream");
            }
            Err(reason) => report.upstream_absence = Some(format!("{reason:#}")),
        }
        report.rows.sort_by_key(|row| (row.comparison.authorizer, row.comparison.size));
        report.indexes.sort_by_key(|row| (row.authorizer, row.size));
        Ok(report)
    }
}

/// Prints progress to standard error.
struct Progress {
    start: Instant,
}

impl Progress {
    fn done(&mut self, part: &str) {
        eprintln!("{part}: {:.1} s", self.start.elapsed().as_secs_f64());
        self.start = Instant::now();
    }
}

/// Whether the decision allows the request.
fn is_allowed(decision: &Decision) -> bool {
    decision.verdict == Verdict::Allow
}

/// Runs the benchmark.
///
/// # Errors
/// A policy does not compile, or the Go program of Kubernetes' authorizers starts and fails.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<BenchResult> {
    let plan = if arguments.is_quick { Plan::quick() } else { Plan::full()? };
    let report = plan.run()?;
    for line in &report.disagreements() {
        eprintln!("DISAGREEMENT: {line}");
    }
    let text = format!("{}\n{}", report.render(), promises::render(&targets::check(&report)));
    let n_wrong = report.reference_agreement().1
        + report.upstream_agreement().map_or(0, |(_, differing)| differing);
    Ok(BenchResult { text, n_wrong })
}
