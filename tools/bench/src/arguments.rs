//! The command-line arguments of a benchmark.

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};

/// The flags of every benchmark.
const COMMON: [&str; 2] = ["--quick", "--write"];
/// The additional flags of benchmarks that start a server.
pub(crate) const OF_SERVER: &[&str] = &["--only", "--program"];
/// The additional flags of the benchmark that compares servers.
pub(crate) const OF_FLOOR: &[&str] = &["--only", "--program", "--peer", "--token"];

/// The command line of one benchmark.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Arguments {
    /// Few repetitions, for a test that the benchmark still runs.
    pub(crate) is_quick: bool,
    /// The benchmark measures only cases whose name contains this text.
    pub(crate) only: String,
    /// The server program; `None` builds it.
    pub(crate) program: Option<PathBuf>,
    /// The URL of a running kube-apiserver that is measured too, and a token of its administrator.
    pub(crate) peer: Option<String>,
    pub(crate) peer_token: String,
    /// The Markdown document whose tables are replaced.
    pub(crate) document: Option<PathBuf>,
}

impl Arguments {
    /// Reads the words after the name of the benchmark.
    ///
    /// # Errors
    /// A flag is unknown, lacks its value, or belongs to another benchmark.
    pub(crate) fn parse(words: &[String], own_flags: &[&str]) -> anyhow::Result<Self> {
        let mut parsed = Self::default();
        let mut words = words.iter();
        while let Some(flag) = words.next() {
            let is_known = COMMON.contains(&flag.as_str()) || own_flags.contains(&flag.as_str());
            ensure!(is_known, "unknown argument `{flag}`, known: {}", known(own_flags));
            let mut value = || words.next().with_context(|| format!("`{flag}` takes a value"));
            match flag.as_str() {
                "--quick" => parsed.is_quick = true,
                "--only" => parsed.only = value()?.clone(),
                "--program" => parsed.program = Some(value()?.into()),
                "--peer" => parsed.peer = Some(value()?.clone()),
                "--token" => parsed.peer_token = value()?.clone(),
                "--write" => parsed.document = Some(value()?.into()),
                other => bail!("`{other}` is listed and not read"),
            }
        }
        Ok(parsed)
    }
}

fn known(own_flags: &[&str]) -> String {
    COMMON.iter().chain(own_flags).copied().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str, own_flags: &[&str]) -> anyhow::Result<Arguments> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Arguments::parse(&words, own_flags)
    }

    #[test]
    fn flags_come_in_any_order() {
        assert_eq!(parse("", &[]).unwrap(), Arguments::default());
        let want = Arguments {
            is_quick: true,
            only: "GET".to_owned(),
            program: Some("p".into()),
            document: Some("a.md".into()),
            ..Arguments::default()
        };
        assert_eq!(parse("--write a.md --program p --quick --only GET", OF_SERVER).unwrap(), want);
        let with_peer = parse("--peer https://127.0.0.1:6443 --token t", OF_FLOOR).unwrap();
        assert_eq!(with_peer.peer.as_deref(), Some("https://127.0.0.1:6443"));
        assert_eq!(with_peer.peer_token, "t");
    }

    #[test]
    fn unknown_and_incomplete_flags_are_refused() {
        for flag in ["--write", "--program", "--only", "--peer", "--token"] {
            let error = parse(flag, OF_FLOOR).unwrap_err().to_string();
            assert_eq!(error, format!("`{flag}` takes a value"));
        }
        let error = parse("--only GET", &[]).unwrap_err().to_string();
        assert_eq!(error, "unknown argument `--only`, known: --quick, --write");
        assert!(parse("--fast", OF_SERVER).is_err());
        assert!(parse("--peer x", OF_SERVER).is_err());
    }
}
