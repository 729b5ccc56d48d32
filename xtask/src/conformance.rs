//! Starts the conformance runner.

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, bail};
use serde_json::Value;

use crate::process;

/// Passes all arguments to the runner and returns its exit code: 0 agreed, 1 differences, 2 unusable input.
pub(crate) fn run(args: &[&str]) -> anyhow::Result<ExitCode> {
    let mut command = if needs_program(args) {
        replay_command()?
    } else {
        let run = ["run", "--quiet", "--package", "conformance", "--bin", "conformance", "--"];
        process::command("cargo", &run)
    };
    // A relative path is relative to the current directory of the user, not to the root.
    command.args(with_absolute_paths(args, &std::env::current_dir()?));
    let status = process::run_for_status(&mut command)?;
    // A runner that a signal ended has no exit code; that is a failure.
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Whether the runner starts servers: it replays HTTP scenarios, and no running server is given.
fn needs_program(args: &[&str]) -> bool {
    let has = |flag: &str| {
        args.iter().any(|arg| {
            arg.strip_prefix(flag).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        })
    };
    let after_flag = args.windows(2).filter(|pair| pair[0] == "--suite").map(|pair| pair[1]);
    let joined = args.iter().filter_map(|arg| arg.strip_prefix("--suite="));
    let is_http = after_flag.chain(joined).any(|suite| suite.starts_with("http"));
    is_http && !has("--server") && !has("--program")
}

/// Compiles the runner and the server together, so that scenarios never run against an older server.
fn replay_command() -> anyhow::Result<Command> {
    let build = ["build", "--package", "conformance", "--package", "cli", "--bins"];
    let mut command = process::command("cargo", &build);
    command.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit());
    let output = command.output().context("cannot start cargo")?;
    if !output.status.success() {
        bail!("the runner or the server does not compile");
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let find = |name: &str| {
        let found = messages.lines().find_map(|message| executable(message, name));
        found.with_context(|| format!("cargo does not say where `{name}` is"))
    };
    let mut command = process::command(find("conformance")?, &[]);
    command.arg("--program").arg(find("portcullis")?);
    Ok(command)
}

/// The path of the program with this name, if this message of cargo contains it.
fn executable(message: &str, name: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let path = message.get("executable")?.as_str()?;
    (message.pointer("/target/name")?.as_str()? == name).then(|| path.into())
}

/// The flags of the runner whose values are paths.
const PATH_FLAGS: [&str; 3] = ["--vectors", "--program", "--certificate-authority"];

fn with_absolute_paths(args: &[&str], here: &std::path::Path) -> Vec<String> {
    let absolute = |path: &str| here.join(path).to_string_lossy().into_owned();
    let mut is_path = false;
    args.iter()
        .map(|arg| {
            let was_flag = std::mem::replace(&mut is_path, PATH_FLAGS.contains(arg));
            match arg.split_once('=') {
                Some((flag, path)) if PATH_FLAGS.contains(&flag) => {
                    format!("{flag}={}", absolute(path))
                }
                _ if was_flag => absolute(arg),
                _ => (*arg).to_owned(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{executable, needs_program, with_absolute_paths};
    use std::path::Path;

    #[test]
    fn only_paths_are_made_absolute() {
        let here = Path::new("/here");
        assert_eq!(
            with_absolute_paths(&["--vectors", "dir", "--suite", "abac"], here),
            ["--vectors", "/here/dir", "--suite", "abac"]
        );
        assert_eq!(with_absolute_paths(&["--vectors=dir"], here), ["--vectors=/here/dir"]);
        assert_eq!(with_absolute_paths(&["--vectors", "/there"], here), ["--vectors", "/there"]);
        assert_eq!(
            with_absolute_paths(&["--program", "p", "--server=https://h", "--token", "a=b"], here),
            ["--program", "/here/p", "--server=https://h", "--token", "a=b"]
        );
    }

    #[test]
    fn servers_are_compiled_for_http_suites_alone() {
        for (args, want) in [
            (&["--suite", "http-patch"][..], true),
            (&["-v", "--suite=http"], true),
            (&[], false),
            (&["--suite", "abac"], false),
            (&["--suite", "http", "--server", "https://h", "--token", "t"], false),
            (&["--suite", "http", "--server=https://h", "--token=t"], false),
            (&["--suite", "http", "--program", "p"], false),
        ] {
            assert_eq!(needs_program(args), want, "{args:?}");
        }
    }

    #[test]
    fn only_the_message_with_the_program_names_it() {
        let named = r#"{"target": {"name": "portcullis"}, "executable": "/t/portcullis"}"#;
        assert_eq!(executable(named, "portcullis"), Some("/t/portcullis".into()));
        assert_eq!(executable(named, "conformance"), None);
        assert_eq!(executable(&named.replace("\"/t/portcullis\"", "null"), "portcullis"), None);
        assert_eq!(executable("compiling", "portcullis"), None);
    }
}
