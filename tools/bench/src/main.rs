//! The benchmarks of the repository; `cargo xtask bench NAME` runs one.
//!
//! ```text
//! bench authz [--quick] [--write FILE]
//! bench server|admission [--quick] [--only TEXT] [--program FILE] [--write FILE]
//! bench floor [--quick] [--only TEXT] [--program FILE] [--peer URL --token TOKEN] [--write FILE]
//! bench webhook [--quick] [--write FILE]
//! ```
//!
//! Data and questions come from fixed seeds. A benchmark prints Markdown; `--write` also puts it into a
//! document. The exit code is 1 if an answer is wrong; promises that are not met are printed.

mod admission;
mod arguments;
mod authz;
mod floor;
mod go_program;
mod numbers;
mod replace_tables;
mod server;
mod targets;
mod timing;
mod webhook;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use cap::Cap;
use mimalloc::MiMalloc;

use arguments::{Arguments, OF_FLOOR, OF_SERVER};

/// The allocator of `portcullis`, with counters. The location of objects in memory is part of the time of a
/// decision.
#[global_allocator]
static MEMORY: Cap<MiMalloc> = Cap::new(MiMalloc, usize::MAX);

/// The result of a benchmark.
struct BenchResult {
    /// The tables and the promises, as Markdown.
    text: String,
    /// The number of answers that were not the expected ones.
    n_wrong: usize,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("bench {}: {error:#}", words.first().map_or("", String::as_str));
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[String]) -> anyhow::Result<ExitCode> {
    let (name, rest) = words.split_first().context("name a benchmark")?;
    let parse = |own_flags: &[&str]| Arguments::parse(rest, own_flags);
    let (arguments, bench): (Arguments, fn(&Arguments) -> anyhow::Result<BenchResult>) =
        match (name.as_str(), rest) {
            ("authz", _) => (parse(&[])?, authz::run),
            ("server", _) => (parse(OF_SERVER)?, server::run),
            ("admission", _) => (parse(OF_SERVER)?, admission::run),
            ("floor", _) => (parse(OF_FLOOR)?, floor::run),
            ("webhook", _) => (parse(&[])?, webhook::run),
            // The webhook service that the benchmark `webhook` starts as a separate process.
            (webhook::SERVICE, [folder]) => {
                webhook::serve(Path::new(folder))?;
                return Ok(ExitCode::SUCCESS);
            }
            _ => bail!("unknown benchmark, known: authz, server, admission, floor, webhook"),
        };
    let measured = bench(&arguments)?;
    print!("{}", measured.text);
    if let Some(path) = &arguments.document {
        let shown = path.display();
        let old = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
        let new = replace_tables::replace_tables(&old, name, &measured.text)?;
        std::fs::write(path, new).with_context(|| format!("cannot write {shown}"))?;
    }
    match measured.n_wrong {
        0 => Ok(ExitCode::SUCCESS),
        n_wrong => bail!("{n_wrong} answers are wrong"),
    }
}
