//! The checks of rustfmt, clippy, rustdoc and cargo-deny.

use anyhow::ensure;

use crate::process;

/// Workspaces besides the main one, each of which holds Rust code of ours.
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

/// Builds the documentation of the workspace; a broken link is an error.
pub(crate) fn check_documentation() -> anyhow::Result<()> {
    let mut command = process::command("cargo", &["doc", "--workspace", "--no-deps"]);
    process::run(command.env("RUSTDOCFLAGS", "-D warnings"))
}

/// Checks licences, advisories, duplicates and sources of the dependencies against `deny.toml`.
pub(crate) fn check_dependencies() -> anyhow::Result<()> {
    ensure!(
        process::succeeds(&mut process::command("cargo", &["deny", "--version"])),
        "cargo-deny is not installed: run `cargo install --locked cargo-deny`"
    );
    process::run(&mut process::command("cargo", &["deny", "--workspace", "check"]))
}
