//! The long form of the test that kills the server.

use anyhow::{Context, bail};

use crate::{process, setup};

/// How many kills each store must survive if nobody says.
const N_KILLS: u32 = 200;
/// Where the test reads the number.
const KILLS_VARIABLE: &str = "PORTCULLIS_CRASH_KILLS";

/// Kills the server again and again on both stores, and fails if anything acknowledged is lost.
pub(crate) fn run(args: &[&str]) -> anyhow::Result<()> {
    let n_kills = n_kills(args)?;
    setup::run()?;
    let test =
        ["test", "--release", "--package", "cli", "--test", "e2e", "--", "crash", "--nocapture"];
    process::run(process::command("cargo", &test).env(KILLS_VARIABLE, n_kills.to_string()))
}

fn n_kills(args: &[&str]) -> anyhow::Result<u32> {
    match args {
        [] => Ok(N_KILLS),
        ["--kills", n] => n.parse().with_context(|| format!("`{n}` is no number of kills")),
        _ => bail!("expected `crash [--kills N]`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_kills_is_read() {
        assert_eq!(n_kills(&[]).unwrap(), N_KILLS);
        assert_eq!(n_kills(&["--kills", "7"]).unwrap(), 7);
        assert!(n_kills(&["--kills", "many"]).is_err());
        assert!(n_kills(&["7"]).is_err());
    }
}
