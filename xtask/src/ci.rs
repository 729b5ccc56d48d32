//! Everything a change must pass, in the order of how quickly it tells.

use std::process::ExitCode;

use crate::{process, setup, test, tidy};

/// Format, lints, documentation, tidy, tests. Stops at the first that fails.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    setup::run()?;
    process::run(&mut process::command("cargo", &["fmt", "--all", "--check"]))?;
    tidy::run()?;
    process::run(&mut process::command(
        "cargo",
        &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"],
    ))?;
    process::run(
        process::command("cargo", &["doc", "--workspace", "--no-deps"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )?;
    test::run()
}
