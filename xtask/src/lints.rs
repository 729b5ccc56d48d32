//! The checks of rustfmt, clippy, rustdoc and cargo-deny.

use anyhow::{Context, ensure};

use crate::process;

/// The workspaces besides the main one that contain Rust code.
const OTHER_WORKSPACES: [&str; 4] = [
    "peers/cel-rust/Cargo.toml",
    "peers/kube-rs/Cargo.toml",
    "examples/pod-initializer/Cargo.toml",
    "fuzz/Cargo.toml",
];

/// Checks the format of every Rust file.
pub(crate) fn check_format() -> anyhow::Result<()> {
    process::run(&mut process::command("cargo", &["fmt", "--all", "--check"]))?;
    for manifest in OTHER_WORKSPACES {
        let arguments = ["fmt", "--check", "--manifest-path", manifest];
        process::run(&mut process::command("cargo", &arguments))?;
    }
    Ok(())
}

/// Runs clippy on every target of the workspace.
pub(crate) fn check_clippy() -> anyhow::Result<()> {
    let arguments = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    process::run(&mut process::command("cargo", &arguments))
}

/// Compiles the fuzz targets, which are a workspace of their own. Running them needs a nightly compiler; compiling does not.
pub(crate) fn check_fuzz_targets() -> anyhow::Result<()> {
    let arguments =
        ["check", "--manifest-path", "fuzz/Cargo.toml", "--target-dir", "target", "--bins"];
    process::run(&mut process::command("cargo", &arguments))
}

/// Builds the documentation of the workspace; a broken link is an error.
pub(crate) fn check_documentation() -> anyhow::Result<()> {
    let mut command = process::command("cargo", &["doc", "--workspace", "--no-deps"]);
    process::run(command.env("RUSTDOCFLAGS", "-D warnings"))
}

/// Fails if cargo-deny is not installed.
pub(crate) fn require_cargo_deny() -> anyhow::Result<()> {
    ensure!(
        process::succeeds(&mut process::command("cargo", &["deny", "--version"])),
        "cargo-deny is not installed: run `cargo install --locked cargo-deny`"
    );
    Ok(())
}

/// Checks licences, duplicates and sources of the dependencies against `deny.toml`.
pub(crate) fn check_dependencies() -> anyhow::Result<()> {
    let arguments = ["deny", "--workspace", "check", "bans", "licenses", "sources"];
    process::run(&mut process::command("cargo", &arguments))
}

/// Checks the dependencies against the published advisories.
pub(crate) fn check_advisories() -> anyhow::Result<()> {
    let arguments = ["deny", "--workspace", "check", "advisories"];
    process::run(&mut process::command("cargo", &arguments)).context(
        "either an advisory is about a dependency, or github.com, which has them, is not reachable",
    )
}
