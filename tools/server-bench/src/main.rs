//! `cargo xtask bench server`: the server under load from a client over TLS on the same machine.
//!
//! ```text
//! server-bench [--quick] [--only TEXT] [--program FILE] [--write FILE]
//! ```
//!
//! With `admission` as its first argument it is `cargo xtask bench admission`, see there.
//!
//! Two servers run side by side, one with the default policy and one with many more cluster role
//! bindings, and take turns. What is printed is Markdown; `--write` puts it into a document too. The
//! exit code is 1 if an answer is wrong; promises that are not kept are printed.

mod admission;
mod case;
mod client;
mod load;
mod populate;
mod process;
mod program;
mod report;
mod site;
mod targets;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};

use case::Case;
use load::Effort;
use program::Profile;
use report::{Report, Row};
use site::Site;

const KNOWN: &str = "--quick, --only TEXT, --program FILE, --write FILE";

/// What is measured.
struct Plan {
    profile: Profile,
    effort: Effort,
    /// How often everything is measured.
    n_rounds: usize,
    /// Bindings of the second server, beside those of the default policy.
    n_bindings: usize,
}

/// What the command line asks for.
#[derive(Debug, Default, PartialEq)]
struct Arguments {
    is_quick: bool,
    /// Part of the names of what is measured, to look closer at it.
    only: String,
    /// The server, if it is not to be built.
    program: Option<PathBuf>,
    document: Option<PathBuf>,
}

impl Arguments {
    fn parse(mut arguments: impl Iterator<Item = String>) -> anyhow::Result<Self> {
        let mut parsed = Self::default();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--quick" => parsed.is_quick = true,
                "--only" => parsed.only = arguments.next().context("`--only` takes a text")?,
                "--program" => {
                    let path = arguments.next().context("`--program` takes a file")?;
                    parsed.program = Some(path.into());
                }
                "--write" => {
                    let path = arguments.next().context("`--write` takes a file")?;
                    parsed.document = Some(path.into());
                }
                other => bail!("unknown argument `{other}`, known: {KNOWN}"),
            }
        }
        Ok(parsed)
    }
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
            window: Duration::from_millis(100),
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

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench server: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1).peekable();
    let is_admission = words.next_if(|word| word == "admission").is_some();
    let arguments = Arguments::parse(words)?;
    // One thread: whatever the client takes, the server does not have.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (name, text) = match is_admission {
        true => ("admission", runtime.block_on(admission::run(&arguments))?),
        false => {
            let plan = if arguments.is_quick { Plan::QUICK } else { Plan::FULL };
            let report = runtime.block_on(plan.run(&arguments))?;
            let targets = targets::render(&targets::check(&report));
            ("server", format!("{}\n{targets}", report.render()))
        }
    };
    print!("{text}");
    if let Some(path) = &arguments.document {
        let shown = path.display();
        let old = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
        let new = bench_report::refresh(&old, name, &text)?;
        std::fs::write(path, new).with_context(|| format!("cannot write {shown}"))?;
    }
    Ok(())
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
        let want = Arguments {
            is_quick: true,
            only: "GET".to_owned(),
            program: Some("p".into()),
            document: Some("a.md".into()),
        };
        assert_eq!(parse("--write a.md --program p --quick --only GET").unwrap(), want);
        assert!(
            parse("--write").is_err() && parse("--program").is_err() && parse("--only").is_err()
        );
        assert!(parse("--fast").is_err());
    }
}
