//! `cargo xtask bench webhook`: the webhook authorizer, beside Kubernetes' own.
//!
//! ```text
//! webhook-bench [--quick] [--write FILE]
//! webhook-bench serve FOLDER
//! ```
//!
//! Both ask the same questions of the same service, which is this program once more (`serve`). What
//! is printed is Markdown; `--write` puts it into a document too. The exit code is 1 if an answer is
//! wrong; promises that are not kept are printed.

mod contest;
mod measure;
mod ours;
mod question;
mod report;
mod service;
mod site;
mod targets;
mod upstream;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};

use contest::{Contest, Effort};
use ours::Ours;
use report::{Report, Row};
use site::Site;
use upstream::Upstream;

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

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.as_slice() {
        [serve, folder] if serve == "serve" => {
            service::run(Path::new(folder)).map(|()| ExitCode::SUCCESS)
        }
        _ => Arguments::parse(arguments.into_iter()).and_then(|arguments| run(&arguments)),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("bench webhook: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let report = measure(arguments.is_quick)?;
    let text = format!("{}\n{}", report.render(), targets::render(&targets::check(&report)));
    print!("{text}");
    if let Some(path) = &arguments.document {
        let shown = path.display();
        let old = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
        let new = bench_report::refresh(&old, "webhook", &text)?;
        std::fs::write(path, new).with_context(|| format!("cannot write {shown}"))?;
    }
    let n_wrong = report.n_wrong();
    if n_wrong > 0 {
        eprintln!("bench webhook: {n_wrong} answers are wrong");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs every contest some rounds. Within a round one side follows the other, so that what else goes
/// on on the machine concerns both; of the rounds the best counts.
fn measure(is_quick: bool) -> anyhow::Result<Report> {
    let effort = if is_quick { Effort::QUICK } else { Effort::FULL };
    let mut site = Site::start()?;
    let ours = Ours::new()?;
    let (upstream, absence) = match Upstream::build(site.folder(), is_quick) {
        Ok(upstream) => (Some(upstream), None),
        Err(reason) => (None, Some(reason)),
    };
    let mut rows = Vec::new();
    for contest in Contest::ALL {
        let mut row = Row { contest, ours: None, upstream: None };
        for round in 0..effort.n_rounds {
            let asked = effort.asked(contest, round);
            let mine = site.counted(|site| ours.run(site, &asked))?;
            Row::keep(&mut row.ours, mine);
            if let Some(upstream) = &upstream {
                let theirs = site.counted(|site| upstream.run(site, &asked))?;
                Row::keep(&mut row.upstream, theirs);
            }
        }
        eprintln!("{}", contest.name());
        rows.push(row);
    }
    Ok(Report { rows, upstream_absence: absence })
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
