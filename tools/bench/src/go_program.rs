//! Builds and runs Go programs that measure the code of Kubernetes on the same input.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

/// The reason in the report why the quick mode does not measure Kubernetes.
pub(crate) const LEFT_OUT: &str = "the quick mode leaves it out";

/// A folder with Go code under `peers/`.
pub(crate) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers").join(name)
}

/// Builds a package of the folder.
///
/// # Errors
/// The package cannot be built here; the report prints the reason.
pub(crate) fn build(folder: &Path, package: &str, program: &Path) -> anyhow::Result<()> {
    let status = Command::new("go")
        .arg("build")
        .arg("-o")
        .arg(program)
        .arg(package)
        .current_dir(folder)
        .status()
        .context("no Go toolchain")?;
    ensure!(status.success(), "the Go program does not build (is the module proxy within reach?)");
    Ok(())
}

/// Runs a built program with a plan and returns its output.
///
/// # Errors
/// The program fails.
pub(crate) fn run(program: &Path, plan: &Path) -> anyhow::Result<String> {
    let output = Command::new(program)
        .arg(plan)
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {}", program.display()))?;
    ensure!(output.status.success(), "the Go program failed ({})", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
