//! `cargo xtask bench authz`: the authorizers with large policies, beside a naive implementation and
//! beside Kubernetes' own.
//!
//! ```text
//! authz-bench [--quick] [--write FILE]
//! ```
//!
//! Data and questions come from fixed seeds. What is printed is Markdown; `--write` puts it into a
//! document too. The exit code is 1 if answers differ; promises that are not kept are printed.

mod abac;
mod agreement;
mod chain;
mod contest;
mod measure;
mod node;
mod question;
mod random;
mod rbac;
mod report;
mod targets;
mod upstream;
mod vocabulary;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, bail};
use authz::{Decision, Verdict};
use cap::Cap;
use mimalloc::MiMalloc;

use measure::Effort;
use report::Report;
use upstream::Files;

/// The allocator of `portcullis`, counted: where objects lie decides how long an answer waits for them.
#[global_allocator]
static MEMORY: Cap<MiMalloc> = Cap::new(MiMalloc, usize::MAX);

/// What is measured.
struct Plan {
    effort: Effort,
    rbac: &'static [usize],
    abac: &'static [usize],
    n_nodes: usize,
    /// Bindings of the chain; one of the sizes of RBAC.
    chain: usize,
    files: Files,
}

/// What the command line asks for.
#[derive(Debug, Default, PartialEq)]
struct Arguments {
    is_quick: bool,
    document: Option<PathBuf>,
}

impl Arguments {
    fn parse(mut arguments: impl Iterator<Item = String>) -> anyhow::Result<Self> {
        let mut parsed = Self::default();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--quick" => parsed.is_quick = true,
                "--write" => {
                    let path = arguments.next().context("`--write` takes a file")?;
                    parsed.document = Some(path.into());
                }
                other => bail!("unknown argument `{other}`, known: --quick, --write FILE"),
            }
        }
        Ok(parsed)
    }
}

impl Plan {
    fn full() -> anyhow::Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/authz-bench");
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
                    row.upstream = answers.remove(&row.contest.name());
                }
                progress.done("upstream");
            }
            Err(reason) => report.upstream_absence = Some(reason),
        }
        report.rows.sort_by_key(|row| (row.contest.authorizer, row.contest.size));
        report.indexes.sort_by_key(|row| (row.authorizer, row.size));
        Ok(report)
    }
}

/// Tells whoever waits how far the benchmark is.
struct Progress {
    start: Instant,
}

impl Progress {
    fn done(&mut self, part: &str) {
        eprintln!("{part}: {:.1} s", self.start.elapsed().as_secs_f64());
        self.start = Instant::now();
    }
}

/// Whether the decision allows.
fn is_allowed(decision: &Decision) -> bool {
    decision.verdict == Verdict::Allow
}

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("bench authz: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse(std::env::args().skip(1))?;
    let plan = if arguments.is_quick { Plan::quick() } else { Plan::full()? };
    let report = plan.run()?;
    let text = format!("{}\n{}", report.render(), targets::render(&targets::check(&report)));
    print!("{text}");
    if let Some(path) = &arguments.document {
        let shown = path.display();
        let old = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
        let new = bench_report::refresh(&old, "authz", &text)?;
        std::fs::write(path, new).with_context(|| format!("cannot write {shown}"))?;
    }
    let disagreements = report.disagreements();
    for line in &disagreements {
        eprintln!("DISAGREEMENT: {line}");
    }
    let n_differing = report.oracle_agreement().1
        + report.upstream_agreement().map_or(0, |(_, differing)| differing);
    if n_differing > 0 {
        eprintln!("bench authz: {n_differing} answers differ");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> anyhow::Result<Arguments> {
        Arguments::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn arguments() {
        assert_eq!(parse("").unwrap(), Arguments::default());
        let want = Arguments { is_quick: true, document: Some("a.md".into()) };
        assert_eq!(parse("--write a.md --quick").unwrap(), want);
        assert!(parse("--write").is_err());
        assert!(parse("--fast").is_err());
    }
}
