//! The rows and flags on the command line.

use std::path::PathBuf;

use anyhow::{Context, bail};

use crate::attacks::{Row, rows};

/// The usual number of runs of each row.
const N_RUNS: usize = 5;

/// The parsed command line.
pub(crate) struct Arguments {
    /// The rows that are run; all if none is named.
    pub(crate) rows: Vec<Row>,
    pub(crate) n_runs: usize,
    /// The server program; `None` builds it.
    pub(crate) program: Option<PathBuf>,
}

impl Arguments {
    /// Reads the words after the name of the chore.
    ///
    /// # Errors
    /// A row or a flag is unknown, or a flag lacks its value.
    pub(crate) fn parse(words: &[String]) -> anyhow::Result<Self> {
        let mut parsed = Self { rows: rows(), n_runs: N_RUNS, program: None };
        let mut named: Vec<String> = Vec::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("`{word}` takes a value"));
            match word.as_str() {
                "--runs" => {
                    let number: usize = value()?.parse().context("`--runs` takes a number")?;
                    parsed.n_runs = number.max(1);
                }
                "--program" => parsed.program = Some(value()?.into()),
                name if parsed.rows.iter().any(|row| row.name == name) => {
                    named.push(name.to_owned());
                }
                other => bail!("unknown argument `{other}`: rows are A1 to A25"),
            }
        }
        if !named.is_empty() {
            parsed.rows.retain(|row| named.iter().any(|name| name == row.name));
        }
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> anyhow::Result<Arguments> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Arguments::parse(&words)
    }

    #[test]
    fn rows_are_chosen_by_name() {
        let chosen = parse("A10 A9 --runs 2").unwrap();
        let names: Vec<&str> = chosen.rows.iter().map(|row| row.name).collect();
        assert_eq!((names, chosen.n_runs), (vec!["A9", "A10"], 2));
        assert_eq!(parse("").unwrap().rows.len(), 25);
    }

    #[test]
    fn unknown_rows_and_incomplete_flags_are_refused() {
        for line in ["A26", "--fast", "--runs", "--runs x", "--program"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
