//! Rules of the source tree that neither the compiler nor clippy checks.
//!
//! Each rule is a function from plain values to findings, in its own file, with a test that shows that it
//! can fail. All rules run as `cargo xtask tidy` and as a test of this crate.

mod arrows;
mod attack_rows;
mod banned_code;
mod crate_docs;
mod dialing;
mod document_paths;
mod executed_actions;
mod file_sizes;
mod http_crates;
mod layers;
mod machine_paths;
mod manifests;
mod module_names;
mod packages;
mod ratchets;
mod reexports;
mod rust_text;
mod serde_derives;
mod tree;

use std::fmt;
use std::path::Path;

use anyhow::{Context, bail};

use crate::process;

/// Whether a finding fails the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Severity {
    Warning,
    Error,
}

/// One place that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    severity: Severity,
    /// The path of the file relative to the root, or the name of the crate.
    place: String,
    /// The line from 1; `None` for the whole file or crate.
    line: Option<usize>,
    message: String,
}

impl Finding {
    fn error(place: &str, message: impl Into<String>) -> Self {
        let severity = Severity::Error;
        Self { severity, place: place.to_owned(), line: None, message: message.into() }
    }

    fn warning(place: &str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(place, message) }
    }

    fn at_line(self, line: usize) -> Self {
        Self { line: Some(line), ..self }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        write!(f, "{severity}: {}", self.place)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Writes counts that have fallen into the list of ratchets.
pub(crate) fn update_ratchets() -> anyhow::Result<()> {
    let root = process::workspace_root();
    let list = ratchets::updated_list(&tree::read(&root)?)?;
    std::fs::write(root.join(ratchets::LIST), list)
        .with_context(|| format!("cannot write `{}`", ratchets::LIST))
}

/// Prints the counts and all findings. It fails if a finding is an error.
pub(crate) fn run() -> anyhow::Result<()> {
    let root = process::workspace_root();
    let files = tree::read(&root)?;
    let findings = check(&root, &files)?;
    eprint!("{}", ratchets::summary(&files));
    for finding in &findings {
        eprintln!("{finding}");
    }
    let n_errors = findings.iter().filter(|f| f.severity == Severity::Error).count();
    if n_errors > 0 {
        bail!("tidy: {n_errors} errors");
    }
    Ok(())
}

/// Applies every rule to the files of the tree under `root`.
fn check(root: &Path, files: &[tree::File]) -> anyhow::Result<Vec<Finding>> {
    let packages = packages::read_workspace(root)?;
    Ok([
        crate_docs::check(files, &packages),
        arrows::check(&packages, arrows::TABLE),
        arrows::check_used(files, &packages),
        layers::check(files, &packages),
        http_crates::check(&packages),
        manifests::check(files, &packages),
        module_names::check(files),
        reexports::check(files),
        file_sizes::check(files, file_sizes::EXCEPTIONS),
        banned_code::check(files),
        executed_actions::check(files),
        dialing::check(files),
        attack_rows::check(files),
        document_paths::check(files),
        machine_paths::check(files),
        serde_derives::check(files),
        ratchets::check(files),
    ]
    .concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_tree_is_tidy() {
        let root = process::workspace_root();
        let findings = check(&root, &tree::read(&root).unwrap()).unwrap();
        let errors: Vec<String> = findings
            .iter()
            .filter(|f| f.severity == Severity::Error)
            .map(Finding::to_string)
            .collect();
        assert!(errors.is_empty(), "\n{}", errors.join("\n"));
    }

    #[test]
    fn a_finding_reads_like_a_compiler_message() {
        let finding = Finding::error("crates/a/src/b.rs", "is wrong").at_line(7);
        assert_eq!(finding.to_string(), "error: crates/a/src/b.rs:7: is wrong");
        let finding = Finding::warning("crates/a", "is odd");
        assert_eq!(finding.to_string(), "warning: crates/a: is odd");
    }
}
