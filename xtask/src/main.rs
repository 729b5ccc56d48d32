//! Every chore of the repository, run as `cargo xtask <chore>`.
//!
//! Chores are here rather than in shell scripts so that they are typed, tested and the same on
//! every machine. Few dependencies: this crate is compiled before anything else can be checked.

mod attack;
mod bench;
mod ci;
mod conformance;
mod fixture;
mod fuzz;
mod lints;
mod peers;
mod phases;
mod process;
mod repeated_tests;
mod setup;
mod test;
mod tidy;

use std::process::ExitCode;

use anyhow::bail;

use test::ClusterStories;

const USAGE: &str = "\
Usage: cargo xtask <chore>

Chores:
  setup                                  install what the tests need
  test [--peers]                         setup, rustfmt, tidy, clippy and every test; --peers builds
                                         kube-apiserver, and the stories of clusters run with it too
  peers [PROGRAM...]                     build kube-apiserver or other programs of Kubernetes with Go
  ci                                     test, documentation and licences of dependencies
  tidy [--update-ratchets]               rules of the source tree that no compiler checks
  conformance [--vectors DIR] [--suite NAME] [-v]
                                         compare with recorded answers of Kubernetes
  conformance --suite http[-NAME] [--server URL --token TOKEN] [--extend-ratchet] [-v]
                                         replay recorded HTTP scenarios
  fixture NAME                           write a data directory that later versions must serve
  crash [--kills N]                      kill the server N times while clients write
  race [--writes N]                      write N times to three servers while hooks change
  abort [--requests N]                   abort N requests while their answers are on the way
  reload [--changes N]                   change its configuration N times while clients ask
  attack [ROW...] [--runs N]             run the attacks of docs/attacks.md against the server
  bench NAME [ARGUMENT...]               run a benchmark; without NAME, list them
  fuzz [TARGET] [--seconds N]            fuzz one target or all of them, N seconds each";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[&str]) -> anyhow::Result<ExitCode> {
    match args {
        [] | ["help" | "--help" | "-h"] => println!("{USAGE}"),
        ["setup"] => setup::run()?,
        ["test"] => return test::run(ClusterStories::WithPortcullis),
        ["test", "--peers"] => return test::run(ClusterStories::WithKubeApiserver),
        ["peers", rest @ ..] => peers::run(rest)?,
        ["ci"] => return ci::run(),
        ["tidy"] => tidy::run()?,
        ["tidy", "--update-ratchets"] => tidy::update_ratchets()?,
        ["conformance", rest @ ..] => return conformance::run(rest),
        ["fixture", rest @ ..] => fixture::run(rest)?,
        ["crash", rest @ ..] => repeated_tests::CRASH.run(rest)?,
        ["race", rest @ ..] => repeated_tests::RACE.run(rest)?,
        ["abort", rest @ ..] => repeated_tests::ABORT.run(rest)?,
        ["reload", rest @ ..] => repeated_tests::RELOAD.run(rest)?,
        ["attack", rest @ ..] => attack::run(rest)?,
        ["bench", rest @ ..] => bench::run(rest)?,
        ["fuzz", rest @ ..] => fuzz::run(rest)?,
        [chore @ ("setup" | "test" | "ci" | "tidy"), argument, ..] => {
            bail!("`{chore}` does not take `{argument}`\n\n{USAGE}")
        }
        [unknown, ..] => bail!("unknown chore `{unknown}`\n\n{USAGE}"),
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::run;

    #[test]
    fn unknown_chores_and_stray_arguments_are_errors() {
        let unknown = run(&["tset"]).unwrap_err().to_string();
        assert!(unknown.starts_with("unknown chore `tset`"), "{unknown}");
        let stray = run(&["tidy", "now"]).unwrap_err().to_string();
        assert!(stray.starts_with("`tidy` does not take `now`"), "{stray}");
    }
}
