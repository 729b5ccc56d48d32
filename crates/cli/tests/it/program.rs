//! Runs the program as a process.

use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// The folder of sample files and expected outputs.
pub(crate) const TESTDATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata");

/// The exit code and the outputs of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The program with these arguments, in the folder of the samples, without a terminal and without
/// environment variables that change its output.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    // No test asks the cluster of the person who runs it.
    command
        .env_remove("KUBECONFIG")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .env("HOME", "/nonexistent");
    command.args(args).current_dir(TESTDATA).stdin(Stdio::null());
    for variable in ["COLUMNS", "LINES", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(variable);
    }
    command
}

pub(crate) fn run(args: &[&str]) -> Run {
    finish(command(args), b"")
}

/// Runs the program with something on its standard input.
pub(crate) fn run_with_stdin(args: &[&str], stdin: &[u8]) -> Run {
    finish(command(args), stdin)
}

/// Writes a file and checks it.
pub(crate) fn check_text(folder: &Path, text: &str, args: &[&str]) -> Run {
    let file = folder.join("config.yaml");
    std::fs::write(&file, text).unwrap();
    run(&[&["check", file.to_str().unwrap()], args].concat())
}

pub(crate) fn finish(mut command: Command, stdin: &[u8]) -> Run {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The program may end without reading all of it.
    if let Err(error) = child.stdin.take().unwrap().write_all(stdin) {
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    }
    let output = child.wait_with_output().unwrap();
    Run {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}
