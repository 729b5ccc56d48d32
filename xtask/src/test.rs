//! Runs the checks of the source and every test of the repository, and prints the totals.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ExitCode, Stdio};

use anyhow::Context;

use crate::phases::Phases;
use crate::{lints, peers, process, setup, tidy};

/// The counts of one or more test programs.
#[derive(Debug, Default, PartialEq, Eq)]
struct Totals {
    passed: u64,
    failed: u64,
    ignored: u64,
}

/// One call of cargo that runs tests.
struct Run {
    /// The name in the table of phases.
    phase: &'static str,
    arguments: &'static [&'static str],
}

/// The tests of the workspace and of the packages that are separate workspaces: one depends on a package
/// with the name of one of ours, the others have more dependencies than the product. These share a target
/// folder.
const RUNS: &[Run] = &[
    Run { phase: "tests", arguments: &["test", "--workspace", "--no-fail-fast"] },
    Run {
        phase: "tests of peers/cel-rust",
        arguments: &[
            "test",
            "--no-fail-fast",
            "--manifest-path",
            "peers/cel-rust/Cargo.toml",
            "--target-dir",
            "target/peers",
        ],
    },
    Run {
        phase: "tests of peers/kube-rs",
        arguments: &[
            "test",
            "--no-fail-fast",
            "--manifest-path",
            "peers/kube-rs/Cargo.toml",
            "--target-dir",
            "target/peers",
        ],
    },
    Run {
        phase: "tests of pod-initializer",
        arguments: &[
            "test",
            "--no-fail-fast",
            "--manifest-path",
            "examples/pod-initializer/Cargo.toml",
            "--target-dir",
            "target/peers",
        ],
    },
];

/// The server in the role of the cluster in stories about somebody's cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClusterStories {
    /// The stories run with our own server.
    WithPortcullis,
    /// The stories run with our own server, and then with kube-apiserver.
    WithKubeApiserver,
}

/// The stories about somebody's cluster: the package, its test program and their modules.
const STORIES: &[&str] =
    &["test", "--no-fail-fast", "--package", "cli", "--test", "e2e", "--", "cluster_stories::"];

/// The variable by which the stories find kube-apiserver.
const KUBE_APISERVER_VARIABLE: &str = "PORTCULLIS_KUBE_APISERVER";

/// Installs missing programs, checks the source, and runs all tests. It prints the table of phases before
/// the last line, which is `N passed, M failed`.
pub(crate) fn run(stories: ClusterStories) -> anyhow::Result<ExitCode> {
    run_with(stories, |_| Ok(()))
}

/// Like [`run`], with more phases between clippy and the tests.
///
/// The phases are ordered by their duration, and the first check that fails ends the run: a wrong
/// format is reported after seconds, not after the tests.
pub(crate) fn run_with(
    stories: ClusterStories,
    more: impl FnOnce(&mut Phases) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    let phases = &mut Phases::default();
    let result =
        check_source(phases).and_then(|()| more(phases)).and_then(|()| run_tests(stories, phases));
    phases.print();
    let (totals, failure) = result?;
    if stories == ClusterStories::WithPortcullis {
        println!("{}", stories_not_run(peers::has_go()));
    }
    if let Some(failure) = &failure {
        eprintln!("error: {failure}");
    }
    println!("{} passed, {} failed", totals.passed, totals.failed);
    Ok(if failure.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn check_source(phases: &mut Phases) -> anyhow::Result<()> {
    phases.run("setup", setup::run)?;
    phases.run("rustfmt", lints::check_format)?;
    phases.run("tidy", tidy::run)?;
    phases.run("clippy", lints::check_clippy)
}

/// Runs all tests even if some fail, and returns the totals and the reason for a failure.
fn run_tests(
    stories: ClusterStories,
    phases: &mut Phases,
) -> anyhow::Result<(Totals, Option<String>)> {
    let kube_apiserver = match stories {
        ClusterStories::WithPortcullis => None,
        // Without Go this fails now, and not after the tests.
        ClusterStories::WithKubeApiserver => {
            Some(phases.run("build of kube-apiserver", peers::kube_apiserver)?)
        }
    };
    let mut totals = Totals::default();
    let mut is_success = true;
    for Run { phase, arguments } in RUNS {
        let (more, succeeds) = phases.run(phase, || run_cargo(arguments, &[]))?;
        totals.add(&more);
        is_success &= succeeds;
    }
    if let Some(path) = kube_apiserver {
        let variables = [(KUBE_APISERVER_VARIABLE, path.as_path())];
        let (more, succeeds) =
            phases.run("stories with kube-apiserver", || run_cargo(STORIES, &variables))?;
        is_success &= succeeds && more.passed > 0;
        totals.add(&more);
    }
    let failure = failure_reason(&totals, is_success);
    Ok((totals, failure))
}

/// Says which stories did not run, and how to run them.
fn stories_not_run(has_go: bool) -> String {
    let how = match has_go {
        true => "`cargo xtask test --peers` runs them",
        false => "they need Go 1.26 (https://go.dev/dl) and `cargo xtask test --peers`",
    };
    format!(
        "not run: the stories of clusters with kube-apiserver; they ran with portcullis in its role; {how}"
    )
}

/// Runs cargo and returns the test results and whether cargo succeeded.
fn run_cargo(arguments: &[&str], variables: &[(&str, &Path)]) -> anyhow::Result<(Totals, bool)> {
    let mut command = process::command("cargo", arguments);
    command.env_remove(KUBE_APISERVER_VARIABLE).envs(variables.iter().copied());
    let line = process::command_line(&command);
    eprintln!("$ {line}");
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start `{line}`"))?;
    let totals = match child.stdout.take() {
        Some(stdout) => pass_through(BufReader::new(stdout), &mut std::io::stdout().lock())?,
        None => Totals::default(),
    };
    Ok((totals, child.wait()?.success()))
}

impl Totals {
    fn add(&mut self, more: &Self) {
        self.passed += more.passed;
        self.failed += more.failed;
        self.ignored += more.ignored;
    }
}

/// The reason why the run is a failure: a test failed or did not compile, a test was ignored, or no test
/// ran.
fn failure_reason(totals: &Totals, is_success: bool) -> Option<String> {
    match totals {
        Totals { failed: 1.., .. } => Some("tests failed".to_owned()),
        _ if !is_success => Some("a test does not compile or ended early".to_owned()),
        Totals { ignored: 1.., .. } => Some(format!("{} tests were ignored", totals.ignored)),
        Totals { passed: 0, .. } => Some("no test ran".to_owned()),
        _ => None,
    }
}

/// Copies the output of cargo and adds up its result lines.
///
/// It copies bytes unchanged, because a test may print text that is not UTF-8.
fn pass_through(mut from: impl BufRead, to: &mut impl Write) -> std::io::Result<Totals> {
    let mut totals = Totals::default();
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line)? > 0 {
        to.write_all(&line)?;
        to.flush()?;
        if let Some(result) = result_line(&String::from_utf8_lossy(&line)) {
            totals.add(&result);
        }
        line.clear();
    }
    Ok(totals)
}

/// Parses `test result: ok. 3 passed; 0 failed; 1 ignored; ...`.
fn result_line(line: &str) -> Option<Totals> {
    let (_verdict, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let mut totals = Totals::default();
    for count in counts.split(';') {
        let Some((n, what)) = count.trim().split_once(' ') else {
            continue;
        };
        match what {
            "passed" => totals.passed = n.parse().ok()?,
            "failed" => totals.failed = n.parse().ok()?,
            "ignored" => totals.ignored = n.parse().ok()?,
            _ => {}
        }
    }
    Some(totals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_of_all_binaries_add_up_and_the_output_is_kept() {
        let output = "\
running 2 tests
test a ... ok
test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

test result: FAILED. 10 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out; finished in 1.5s
";
        let mut copy = Vec::new();
        let totals = pass_through(output.as_bytes(), &mut copy).unwrap();
        assert_eq!(totals, Totals { passed: 12, failed: 3, ignored: 1 });
        assert_eq!(copy, output.as_bytes());
    }

    #[test]
    fn lines_that_only_resemble_results_do_not_count() {
        assert_eq!(result_line("test result: unknown"), None);
        assert_eq!(result_line("the test result: ok. 2 passed; 0 failed"), None);
        assert_eq!(result_line("test result: ok. many passed; 0 failed"), None);
    }

    #[test]
    fn only_tests_that_all_ran_and_passed_are_a_success() {
        let totals = |passed, failed, ignored| Totals { passed, failed, ignored };
        assert_eq!(failure_reason(&totals(1, 0, 0), true), None);
        for (totals, is_success) in [
            (totals(1, 1, 0), true),
            (totals(1, 0, 0), false),
            (totals(1, 0, 1), true),
            (totals(0, 0, 0), true),
        ] {
            assert!(failure_reason(&totals, is_success).is_some(), "{totals:?}");
        }
    }

    #[test]
    fn stories_that_did_not_run_are_named() {
        assert!(stories_not_run(true).ends_with("; `cargo xtask test --peers` runs them"));
        assert!(stories_not_run(false).contains("they need Go 1.26"));
    }

    #[test]
    fn bytes_that_are_not_text_pass_through() {
        let mut copy = Vec::new();
        let totals = pass_through(&b"\xff\xfe\ntest result: ok. 1 passed"[..], &mut copy).unwrap();
        assert_eq!(totals.passed, 1);
        assert_eq!(copy, b"\xff\xfe\ntest result: ok. 1 passed");
    }
}
