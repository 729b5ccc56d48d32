//! Runs the attacks of `docs/attacks.md` at full size.

use crate::process;

/// Builds and runs `tools/attack`, which gets all arguments.
pub(crate) fn run(args: &[&str]) -> anyhow::Result<()> {
    let cargo = ["run", "--release", "--package", "attack", "--"];
    process::run(&mut process::command("cargo", &[&cargo, args].concat()))
}
