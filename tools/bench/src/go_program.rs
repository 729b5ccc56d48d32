//! Programs in Go that measure Kubernetes' own code on the same input.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

/// The reason for which the quick mode does not measure Kubernetes.
pub(crate) const LEFT_OUT: &str = "the quick mode leaves it out";

/// A folder of Go code under `peers/` in the root of the workspace.
pub(crate) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers").join(name)
}

/// Builds a package of that folder.
///
/// # Errors
/// The reason for which that is not possible here, for the report.
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
