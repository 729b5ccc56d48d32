//! Runs the suites of a folder.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::http::{ALL_SUITES, SUITE_PREFIX};
use crate::judge::judge;
use crate::ledger::LEDGER;
use crate::report::{SuiteReport, print_ledger};
use crate::suites::Suite;
use crate::vectors::{Vectors, VectorsError, suites_in};

/// The selection of suites to run, and the amount of output.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folder with the `NAME.jsonl` files.
    pub vectors: PathBuf,
    /// The only suite to run; `None` runs all.
    pub suite: Option<String>,
    /// Whether to list every vector and to count the identical texts.
    pub verbose: bool,
}

/// The reason why the suites cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The vectors are unusable.
    #[error(transparent)]
    Vectors(#[from] VectorsError),
    /// There is no suite of this name.
    #[error("unknown suite `{name}`, known: {}", known_names())]
    UnknownSuite {
        /// The name that the caller gave.
        name: String,
    },
    /// The folder has no vectors of the requested suite.
    #[error("no vectors of suite `{name}` in `{}`", folder.display())]
    NoVectors {
        /// The name of the suite.
        name: &'static str,
        /// The folder that was searched.
        folder: PathBuf,
    },
    /// No suite of the folder is implemented.
    #[error("no suite in `{}` is implemented yet", folder.display())]
    NoImplementedSuite {
        /// The folder that was searched.
        folder: PathBuf,
    },
    /// The report cannot be written.
    #[error("cannot write the report")]
    Report(#[from] io::Error),
}

/// Runs every implemented suite of the folder, or the one asked for, and prints the report.
///
/// Suites of the folder that are not implemented are written to `notes`; they are no failure.
pub fn run(
    options: &Options,
    out: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<Vec<SuiteReport>, RunError> {
    let mut reports = Vec::new();
    for (suite, path) in chosen_suites(options, notes)? {
        let report = run_suite(suite, &path)?;
        report.print(out, options.verbose)?;
        reports.push(report);
    }
    print_ledger(out, LEDGER, &reports)?;
    Ok(reports)
}

fn chosen_suites(
    options: &Options,
    notes: &mut dyn Write,
) -> Result<Vec<(Suite, PathBuf)>, RunError> {
    let folder = &options.vectors;
    let wanted = options.suite.as_deref();
    if let Some(name) = wanted
        && Suite::named(name).is_none()
    {
        return Err(RunError::UnknownSuite { name: name.to_owned() });
    }
    let mut chosen = Vec::new();
    for (name, path) in suites_in(folder)? {
        match Suite::named(&name) {
            Some(suite) if wanted.is_none_or(|wanted| wanted == name) => chosen.push((suite, path)),
            Some(_) => {}
            None if wanted.is_none() && name.starts_with(SUITE_PREFIX) => {
                writeln!(notes, "{name}: replayed with --suite {name}")?;
            }
            None if wanted.is_none() => writeln!(notes, "{name}: not implemented yet")?,
            None => {}
        }
    }
    match (chosen.is_empty(), wanted.and_then(Suite::named)) {
        (false, _) => Ok(chosen),
        (true, Some(suite)) => {
            Err(RunError::NoVectors { name: suite.name(), folder: folder.clone() })
        }
        (true, None) => Err(RunError::NoImplementedSuite { folder: folder.clone() }),
    }
}

fn run_suite(suite: Suite, path: &Path) -> Result<SuiteReport, VectorsError> {
    let mut vectors = Vectors::open(suite.name(), path)?;
    let mut report = SuiteReport::new(suite);
    if suite.n_concurrent_vectors() > 1 {
        run_concurrently(&mut vectors, &mut report)?;
        return Ok(report);
    }
    while let Some(vector) = vectors.read_next()? {
        let judgement =
            judge(suite, &vector, LEDGER).map_err(|problem| vectors.malformed(problem))?;
        report.add(&vector, judgement);
    }
    Ok(report)
}

/// Runs several vectors at the same time and reports them in the order of the file.
fn run_concurrently(vectors: &mut Vectors, report: &mut SuiteReport) -> Result<(), VectorsError> {
    let suite = report.suite();
    let mut all = Vec::new();
    while let Some(vector) = vectors.read_next()? {
        all.push((vectors.line(), vector));
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut judged = Vec::new();
        while let Some((line, vector)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            judged.push((*line, vector, judge(suite, vector, LEDGER)));
        }
        judged
    };
    let mut judged: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> =
            (0..suite.n_concurrent_vectors()).map(|_| scope.spawn(work)).collect();
        // `judge` catches panics of a suite, so no worker panics.
        workers.into_iter().filter_map(|worker| worker.join().ok()).flatten().collect()
    });
    judged.sort_by_key(|(line, ..)| *line);
    for (line, vector, judgement) in judged {
        let judgement = judgement.map_err(|problem| vectors.malformed_at(line, problem))?;
        report.add(vector, judgement);
    }
    Ok(())
}

fn known_names() -> String {
    format!("{}, {ALL_SUITES}, {SUITE_PREFIX}NAME", Suite::ALL.map(Suite::name).join(", "))
}
