//! Finds or builds the programs that are measured.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde_json::Value;

/// A program of the workspace: its package and its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Program {
    package: &'static str,
    name: &'static str,
}

/// The API server of this repository.
pub(crate) const PORTCULLIS: Program = Program { package: "cli", name: "portcullis" };
/// The server that answers constants with the same TLS, HTTP and allocator.
pub(crate) const FLOOR: Program = Program { package: "bench", name: "floor" };

/// The profile with which the server is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// The profile of the README's build command.
    Release,
    /// The profile of this program: that of the tests, unless it is built otherwise. The program beside this one is used
    /// if it exists.
    Own,
}

/// Returns the path of a program, and builds it if necessary.
///
/// # Errors
/// The program does not compile.
pub(crate) fn find(program: Program, profile: Profile) -> anyhow::Result<PathBuf> {
    match profile {
        Profile::Release => build(program, &["--release"]),
        Profile::Own => match beside(program) {
            Some(path) => Ok(path),
            // A floor without optimizations beside a server with them would be none.
            None if cfg!(debug_assertions) => build(program, &[]),
            None => build(program, &["--release"]),
        },
    }
}

fn beside(program: Program) -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?.with_file_name(program.name);
    path.is_file().then_some(path)
}

fn build(program: Program, options: &[&str]) -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "build",
            "--package",
            program.package,
            "--bin",
            program.name,
            "--message-format=json",
        ])
        .args(options)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    if !output.status.success() {
        bail!("{} does not compile", program.name);
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let path = text.lines().find_map(|message| executable(program, message));
    path.with_context(|| format!("cargo does not say where {} is", program.name))
}

/// The path of the program, if this message of cargo contains it.
fn executable(program: Program, message: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let name = message.pointer("/target/name")?.as_str()?;
    let path = message.get("executable")?.as_str()?;
    (name == program.name).then(|| path.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_message_with_the_program_names_it() {
        let named = r#"{"target": {"name": "portcullis"}, "executable": "/t/portcullis"}"#;
        assert_eq!(executable(PORTCULLIS, named), Some("/t/portcullis".into()));
        assert_eq!(executable(PORTCULLIS, &named.replace("\"portcullis\"", "\"server\"")), None);
        assert_eq!(executable(PORTCULLIS, &named.replace("\"/t/portcullis\"", "null")), None);
        assert_eq!(executable(PORTCULLIS, "compiling"), None);
    }
}
