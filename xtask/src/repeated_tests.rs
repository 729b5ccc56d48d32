//! Tests that can run with a larger number of repetitions.

use anyhow::{Context, bail};

use crate::{process, setup};

/// A test whose number of repetitions can be chosen.
pub(crate) struct RepeatedTest {
    /// The name of the chore.
    chore: &'static str,
    /// The package, its test program, and the name of the test.
    place: [&'static str; 3],
    /// The flag that sets the number of repetitions.
    flag: &'static str,
    /// The default number of repetitions.
    default: u32,
    /// The variable from which the test reads the number.
    variable: &'static str,
}

/// Kills the server repeatedly on both stores, with clients that disconnect, full disks and little memory.
/// Fails if an acknowledged write is lost, a write is not recorded, or a start fails.
pub(crate) const CRASH: RepeatedTest = RepeatedTest {
    chore: "crash",
    place: ["cli", "e2e", "crash::"],
    flag: "--kills",
    default: 200,
    variable: "PORTCULLIS_CRASH_KILLS",
};

/// Writes to three servers on three etcd members while the admission configuration changes. Fails if a write
/// is admitted by an older configuration than one that was acknowledged before it.
pub(crate) const RACE: RepeatedTest = RepeatedTest {
    chore: "race",
    place: ["server", "it", "three_servers::no_write_is_admitted"],
    flag: "--writes",
    default: 10_000,
    variable: "PORTCULLIS_RACE_WRITES",
};

/// Changes the authorization configuration repeatedly under load. Fails if a request is dropped or a
/// decision mixes configurations.
pub(crate) const RELOAD: RepeatedTest = RepeatedTest {
    chore: "reload",
    place: ["cli", "e2e", "reload::"],
    flag: "--changes",
    default: 1000,
    variable: "PORTCULLIS_RELOAD_CHANGES",
};

/// Aborts requests of all kinds over HTTP/1.1 and HTTP/2. Fails if a received request is not recorded to its
/// end, or is recorded twice.
pub(crate) const ABORT: RepeatedTest = RepeatedTest {
    chore: "abort",
    place: ["server", "it", "aborted::every_request"],
    flag: "--requests",
    default: 10_000,
    variable: "PORTCULLIS_ABORTED_REQUESTS",
};

impl RepeatedTest {
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
