//! The program of the server, as it is compiled from this repository.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::HttpError;

const PROGRAM: &str = "portcullis";
const PACKAGE: &str = "cli";

/// Compiles the program, so that scenarios never meet an older one, and tells where it is.
///
/// # Errors
/// It does not compile.
pub fn build() -> Result<PathBuf, HttpError> {
    let failed = |why: &str| HttpError::Start(format!("cargo build --package {PACKAGE}: {why}"));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--quiet", "--package", PACKAGE, "--bin", PROGRAM])
        .arg("--message-format=json")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| failed(&error.to_string()))?;
    if !output.status.success() {
        return Err(failed("it does not compile"));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let program = text.lines().find_map(executable);
    program.ok_or_else(|| failed("cargo does not say where the program is"))
}

/// The program, if this message of cargo names it.
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
