//! Every check that a change must pass.

use std::process::ExitCode;

use crate::test::ClusterStories;
use crate::{lints, test};

/// Runs the checks of `cargo xtask test`, and those of the dependencies, the fuzz targets and the documentation.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    // A missing program is reported now and not after minutes of clippy.
    lints::require_cargo_deny()?;
    test::run_with(ClusterStories::WithPortcullis, |phases| {
        phases.run("cargo-deny", lints::check_dependencies)?;
        phases.run("advisories", lints::check_advisories)?;
        phases.run("fuzz targets", lints::check_fuzz_targets)?;
        phases.run("rustdoc", lints::check_documentation)
    })
}
