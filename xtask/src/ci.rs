//! Every check that a change must pass.

use std::process::ExitCode;

use crate::{lints, test};

/// Runs the checks of `cargo xtask test`, and those of the documentation and of the dependencies.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    test::run_with(|phases| {
        phases.run("cargo-deny", lints::check_dependencies)?;
        phases.run("rustdoc", lints::check_documentation)
    })
}
