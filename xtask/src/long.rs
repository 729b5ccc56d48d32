//! The long forms of tests that repeat something.

use anyhow::{Context, bail};

use crate::{process, setup};

/// A test whose number of repetitions can be chosen.
pub(crate) struct Long {
    /// The name of the chore.
    chore: &'static str,
    /// The package, its test program, and the test in there.
    place: [&'static str; 3],
    /// The flag that chooses the number.
    flag: &'static str,
    /// The number if nobody says.
    default: u32,
    /// Where the test reads it.
    variable: &'static str,
}

/// Kills the server again and again on both stores, with clients that hang up, full disks and little
/// memory, and fails if anything acknowledged is lost, anything is done unseen, or a start fails.
pub(crate) const CRASH: Long = Long {
    chore: "crash",
    place: ["cli", "e2e", "crash::"],
    flag: "--kills",
    default: 200,
    variable: "PORTCULLIS_CRASH_KILLS",
};

/// Writes to three servers on three members of etcd while the configuration of admission changes, and
/// fails if a write is admitted by an older one than was acknowledged before it.
pub(crate) const RACE: Long = Long {
    chore: "race",
    place: ["server", "it", "three_servers::no_write_is_admitted"],
    flag: "--writes",
    default: 10_000,
    variable: "PORTCULLIS_RACE_WRITES",
};

/// Changes the authorization configuration again and again under load, and fails if a request is
/// dropped or a decision comes from no configuration.
pub(crate) const RELOAD: Long = Long {
    chore: "reload",
    place: ["cli", "e2e", "reload::"],
    flag: "--changes",
    default: 1000,
    variable: "PORTCULLIS_RELOAD_CHANGES",
};

/// Aborts requests of all kinds over HTTP/1.1 and HTTP/2, and fails if one that was received is not recorded
/// to its end, or is recorded twice.
pub(crate) const ABORT: Long = Long {
    chore: "abort",
    place: ["server", "it", "aborted::every_request"],
    flag: "--requests",
    default: 10_000,
    variable: "PORTCULLIS_ABORTED_REQUESTS",
};

impl Long {
    /// Runs the test in a release build.
    pub(crate) fn run(&self, args: &[&str]) -> anyhow::Result<()> {
        let number = self.number(args)?;
        setup::run()?;
        let [package, program, filter] = self.place;
        let test = [
            "test",
            "--release",
            "--package",
            package,
            "--test",
            program,
            "--",
            filter,
            "--nocapture",
        ];
        process::run(process::command("cargo", &test).env(self.variable, number.to_string()))
    }

    fn number(&self, args: &[&str]) -> anyhow::Result<u32> {
        match args {
            [] => Ok(self.default),
            [flag, n] if *flag == self.flag => {
                n.parse().with_context(|| format!("`{n}` is no number for {flag}"))
            }
            _ => bail!("expected `{} [{} N]`", self.chore, self.flag),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_read() {
        assert_eq!(CRASH.number(&[]).unwrap(), 200);
        assert_eq!(CRASH.number(&["--kills", "7"]).unwrap(), 7);
        assert!(CRASH.number(&["--changes", "7"]).is_err());
        assert_eq!(RACE.number(&["--writes", "9"]).unwrap(), 9);
        assert!(RELOAD.number(&["--changes", "many"]).is_err());
        assert!(RELOAD.number(&["7"]).is_err());
    }
}
