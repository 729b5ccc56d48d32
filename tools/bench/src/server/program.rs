//! Finds or builds the server program.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde_json::Value;

/// The name of the program and of its package.
const PROGRAM: &str = "portcullis";
const PACKAGE: &str = "cli";

/// The profile with which the server is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// The profile of the README's build command.
    Release,
    /// The profile of the tests; the program beside this one is used if it exists.
    Dev,
}

/// Returns the path of the program, and builds it if necessary.
///
/// # Errors
/// The program does not compile.
pub(crate) fn find(profile: Profile) -> anyhow::Result<PathBuf> {
    match profile {
        Profile::Release => build(&["--release"]),
        Profile::Dev => match beside() {
            Some(program) => Ok(program),
            None => build(&[]),
        },
    }
}

fn beside() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?.with_file_name(PROGRAM);
    program.is_file().then_some(program)
}

fn build(options: &[&str]) -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--package", PACKAGE, "--bin", PROGRAM, "--message-format=json"])
        .args(options)
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

/// The path of the program, if this message of cargo contains it.
fn executable(message: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let name = message.pointer("/target/name")?.as_str()?;
    let path = message.get("executable")?.as_str()?;
    (name == PROGRAM).then(|| path.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_message_with_the_program_names_it() {
        let named = r#"{"target": {"name": "portcullis"}, "executable": "/t/portcullis"}"#;
        assert_eq!(executable(named), Some("/t/portcullis".into()));
        assert_eq!(executable(&named.replace("\"portcullis\"", "\"server\"")), None);
        assert_eq!(executable(&named.replace("\"/t/portcullis\"", "null")), None);
        assert_eq!(executable("compiling"), None);
    }
}
