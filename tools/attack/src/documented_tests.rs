//! Runs the tests that docs/attacks.md names for a row.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context, ensure};

use crate::program::cargo;

/// Runs the tests of a row and returns how many passed.
///
/// # Errors
/// A test fails, or the document names none.
pub(crate) fn run(row: &str) -> anyhow::Result<usize> {
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/attacks.md");
    let document = std::fs::read_to_string(document).context("docs/attacks.md")?;
    let tests = tests_of(&document, row);
    ensure!(!tests.is_empty(), "docs/attacks.md names no test for {row}");
    let mut n_passed = 0;
    for (package, names) in &tests {
        let output = Command::new(cargo())
            .args(["test", "--quiet", "--package", package, "--"])
            .args(names)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .context("cannot start cargo")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let passed = n_passed_of(&text);
        ensure!(output.status.success(), "a test of {package} failed:\n{text}");
        ensure!(passed >= names.len(), "{package} has {passed} of the tests {names:?}");
        n_passed += passed;
    }
    Ok(n_passed)
}

/// The names of the tests of a row, by package.
fn tests_of<'d>(document: &'d str, row: &str) -> BTreeMap<&'d str, Vec<&'d str>> {
    let mut tests: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let line = document.lines().find(|line| line.starts_with(&format!("| {row} |")));
    for quoted in line.unwrap_or_default().split('`') {
        let path = quoted.strip_prefix("crates/").or_else(|| quoted.strip_prefix("tools/"));
        let Some((package, name)) =
            path.and_then(|path| Some((path.split('/').next()?, path.split_once("::")?.1)))
        else {
            continue;
        };
        tests.entry(package).or_default().push(name);
    }
    tests
}

/// The sum of the tests that passed, in the output of cargo.
fn n_passed_of(text: &str) -> usize {
    let count = |line: &str| {
        line.strip_prefix("test result: ok. ")?.split(' ').next()?.parse::<usize>().ok()
    };
    text.lines().filter_map(count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_of_a_row_are_found() {
        let document = "| A1 | what | `crates/a/src/x.rs::one`, `crates/b/tests/it/y.rs::two` |\n\
                        | A11 | other | `crates/a/src/x.rs::three` |\n";
        let tests = tests_of(document, "A1");
        assert_eq!(tests.get("a"), Some(&vec!["one"]));
        assert_eq!(tests.get("b"), Some(&vec!["two"]));
        assert_eq!(tests.len(), 2);
    }

    #[test]
    fn passed_tests_are_added() {
        let text = "test result: ok. 2 passed; 0 failed\n\ntest result: ok. 3 passed; 0 failed\n";
        assert_eq!(n_passed_of(text), 5);
    }
}
