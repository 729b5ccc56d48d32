//! Starts child processes from the root of the workspace.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, bail};

/// The root of the workspace: the folder above this crate. Cargo passes the folder of this crate when it
/// runs the program, which may have been built from another copy of the repository into the same target
/// folder.
pub(crate) fn workspace_root() -> PathBuf {
    let told = std::env::var_os("CARGO_MANIFEST_DIR");
    let here = told.map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    here.parent().map(Path::to_path_buf).unwrap_or(here)
}

/// A command that runs in the root of the workspace.
pub(crate) fn command(program: impl AsRef<OsStr>, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(workspace_root());
    command
}

/// Prints a command line and runs it. Every exit code except 0 is an error.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let line = command_line(command);
    let status = run_for_status(command)?;
    if !status.success() {
        bail!("`{line}` failed ({status})");
    }
    Ok(())
}

/// Prints a command line, runs it and returns its exit status.
pub(crate) fn run_for_status(command: &mut Command) -> anyhow::Result<ExitStatus> {
    let line = command_line(command);
    eprintln!("$ {line}");
    command.status().with_context(|| format!("cannot start `{line}`"))
}

/// Runs a command without output and returns whether it started and succeeded.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// The command line as a user would type it.
pub(crate) fn command_line(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_holds_the_workspace_manifest() {
        let manifest = std::fs::read_to_string(workspace_root().join("Cargo.toml")).unwrap();
        assert!(manifest.contains("[workspace]"));
    }

    #[test]
    fn a_missing_program_and_a_failing_one_are_told_apart_from_success() {
        assert!(succeeds(&mut command("cargo", &["--version"])));
        assert!(!succeeds(&mut command("cargo", &["--no-such-flag"])));
        assert!(!succeeds(&mut command("no-such-program-anywhere", &[])));
        let error = run(&mut command("no-such-program-anywhere", &["x"])).unwrap_err();
        assert_eq!(error.to_string(), "cannot start `no-such-program-anywhere x`");
    }
}
