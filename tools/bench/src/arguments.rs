//! The command-line arguments of a benchmark.

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};

/// The flags of every benchmark, and those of benchmarks that start a server.
const COMMON: [&str; 2] = ["--quick", "--write"];
const OF_SERVER: [&str; 2] = ["--only", "--program"];

/// The command line of one benchmark.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Arguments {
    /// Few repetitions, for a test that the benchmark still runs.
    pub(crate) is_quick: bool,
    /// The benchmark measures only cases whose name contains this text.
    pub(crate) only: String,
    /// The server program; `None` builds it.
    pub(crate) program: Option<PathBuf>,
    /// The Markdown document whose tables are replaced.
    pub(crate) document: Option<PathBuf>,
}

impl Arguments {
    /// Reads the words after the name of the benchmark.
    ///
    /// # Errors
    /// A flag is unknown, lacks its value, or needs a server where none is measured.
    pub(crate) fn parse(words: &[String], has_server: bool) -> anyhow::Result<Self> {
        let mut parsed = Self::default();
        let mut words = words.iter();
        while let Some(flag) = words.next() {
            let is_known = COMMON.contains(&flag.as_str())
                || (has_server && OF_SERVER.contains(&flag.as_str()));
            ensure!(is_known, "unknown argument `{flag}`, known: {}", known(has_server));
            let mut value = || words.next().with_context(|| format!("`{flag}` takes a value"));
            match flag.as_str() {
                "--quick" => parsed.is_quick = true,
                "--only" => parsed.only = value()?.clone(),
                "--program" => parsed.program = Some(value()?.into()),
                "--write" => parsed.document = Some(value()?.into()),
                other => bail!("`{other}` is listed and not read"),
            }
        }
        Ok(parsed)
    }
}

fn known(has_server: bool) -> String {
    let more: &[&str] = if has_server { &OF_SERVER } else { &[] };
    COMMON.iter().chain(more).copied().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str, has_server: bool) -> anyhow::Result<Arguments> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Arguments::parse(&words, has_server)
    }

    #[test]
    fn flags_come_in_any_order() {
        assert_eq!(parse("", false).unwrap(), Arguments::default());
        let want = Arguments {
            is_quick: true,
            only: "GET".to_owned(),
            program: Some("p".into()),
            document: Some("a.md".into()),
        };
        assert_eq!(parse("--write a.md --program p --quick --only GET", true).unwrap(), want);
    }

    #[test]
    fn unknown_and_incomplete_flags_are_refused() {
        for flag in ["--write", "--program", "--only"] {
            let error = parse(flag, true).unwrap_err().to_string();
            assert_eq!(error, format!("`{flag}` takes a value"));
        }
        let error = parse("--only GET", false).unwrap_err().to_string();
        assert_eq!(error, "unknown argument `--only`, known: --quick, --write");
        assert!(parse("--fast", true).is_err());
    }
}
