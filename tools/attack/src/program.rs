//! Finds or builds the server program.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde_json::Value;

/// Returns the path of the server, and builds it with the `release` profile if none is given.
///
/// # Errors
/// The server does not compile.
pub(crate) fn find(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(program) = given {
        return program.canonicalize().with_context(|| program.display().to_string());
    }
    let output = Command::new(cargo())
        .args(["build", "--release", "--package", "cli", "--bin", "portcullis"])
        .arg("--message-format=json")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    if !output.status.success() {
        bail!("the server does not compile");
    }
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().find_map(executable).context("cargo does not say where the server is")
}

/// The program that runs cargo.
pub(crate) fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// The path of the program, if this message of cargo contains it.
fn executable(message: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let name = message.pointer("/target/name")?.as_str()?;
    let path = message.get("executable")?.as_str()?;
    (name == "portcullis").then(|| path.into())
}
