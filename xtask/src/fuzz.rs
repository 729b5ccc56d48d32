//! Runs the fuzz targets for a bounded time.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use crate::process;

/// The default time for each target: long enough to find a shallow fault.
const DEFAULT_TIME: Duration = Duration::from_secs(60);

/// The time limit of one input. No request or file should take a second, but the instrumented build is slow.
const INPUT_TIME_MAX: Duration = Duration::from_secs(10);

/// The memory limit of a target. The sanitizer uses much of it.
const MEMORY_MIB_MAX: u32 = 2048;

#[derive(Debug, PartialEq, Eq)]
struct Options {
    target: Option<String>,
    time: Duration,
}

/// Fuzzes one target or all targets. It fails if a fault is found and if the tools are missing, because
/// fuzzing that did not run looks like fuzzing that found nothing.
pub(crate) fn run(args: &[&str]) -> anyhow::Result<()> {
    let options = parse(args)?;
    ensure!(
        process::succeeds(&mut cargo_nightly(&["--version"])),
        "no nightly compiler: run `rustup toolchain install nightly`"
    );
    ensure!(
        process::succeeds(&mut cargo_nightly(&["fuzz", "--version"])),
        "cargo-fuzz is not installed: run `cargo install cargo-fuzz`"
    );
    let all = targets()?;
    let chosen: Vec<&String> = match &options.target {
        None => all.iter().collect(),
        Some(name) => {
            let Some(target) = all.iter().find(|target| *target == name) else {
                bail!("unknown fuzz target `{name}`, known: {}", all.join(", "));
            };
            vec![target]
        }
    };
    chosen.into_iter().try_for_each(|target| fuzz(target, options.time))
}

fn parse(args: &[&str]) -> anyhow::Result<Options> {
    let mut options = Options { target: None, time: DEFAULT_TIME };
    let mut rest = args;
    loop {
        rest = match rest {
            [] => return Ok(options),
            ["--seconds", n, rest @ ..] => {
                let seconds = n.parse().with_context(|| format!("`{n}` is not a number"))?;
                // For libFuzzer zero means without end.
                ensure!(seconds > 0, "`--seconds` must be at least 1");
                options.time = Duration::from_secs(seconds);
                rest
            }
            [flag, ..] if flag.starts_with('-') => bail!("unknown or incomplete option `{flag}`"),
            [name, rest @ ..] => {
                ensure!(options.target.is_none(), "`fuzz` takes one target or none");
                options.target = Some((*name).to_owned());
                rest
            }
        }
    }
}

/// The targets that cargo-fuzz lists.
fn targets() -> anyhow::Result<Vec<String>> {
    let output = cargo_nightly(&["fuzz", "list"]).output().context("cannot list fuzz targets")?;
    ensure!(
        output.status.success(),
        "cannot list fuzz targets: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let names: Vec<String> =
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    ensure!(!names.is_empty(), "there are no fuzz targets");
    Ok(names)
}

/// Fuzzes one target. New inputs go to a scratch corpus, so the corpus in the repository stays small.
fn fuzz(target: &str, time: Duration) -> anyhow::Result<()> {
    let root = process::workspace_root();
    let scratch = root.join("fuzz/target/corpus").join(target);
    let seeds = root.join("fuzz/corpus").join(target);
    for folder in [&scratch, &seeds] {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot create `{}`", folder.display()))?;
    }
    let limits = [
        format!("-max_total_time={}", time.as_secs()),
        format!("-timeout={}", INPUT_TIME_MAX.as_secs()),
        format!("-rss_limit_mb={MEMORY_MIB_MAX}"),
    ];
    process::run(
        cargo_nightly(&["fuzz", "run", target]).arg(scratch).arg(seeds).arg("--").args(limits),
    )
    .with_context(|| format!("fuzz target `{target}` found a fault or could not run"))
}

/// A nightly cargo command. `cargo xtask` runs with the toolchain of the workspace and sets these variables
/// for its children; they would override `+nightly`.
fn cargo_nightly(args: &[&str]) -> Command {
    let mut command = process::command("cargo", &["+nightly"]);
    command.args(args).env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_in_any_order() {
        let want = Options { target: Some("cel_parse".to_owned()), time: Duration::from_secs(5) };
        assert_eq!(parse(&["cel_parse", "--seconds", "5"]).unwrap(), want);
        assert_eq!(parse(&["--seconds", "5", "cel_parse"]).unwrap(), want);
        assert_eq!(parse(&[]).unwrap(), Options { target: None, time: DEFAULT_TIME });
    }

    #[test]
    fn options_that_make_no_sense_are_refused() {
        for (args, message) in [
            (&["--seconds", "0"][..], "`--seconds` must be at least 1"),
            (&["--seconds", "soon"], "`soon` is not a number"),
            (&["--seconds"], "unknown or incomplete option `--seconds`"),
            (&["a", "b"], "`fuzz` takes one target or none"),
        ] {
            assert_eq!(parse(args).unwrap_err().to_string(), message);
        }
    }
}
