//! Checks that every row of `docs/attacks.md` names a test that exists and cites the row, or names the part that
//! is owed.
//!
//! A row is `| L7 | what must hold | tests |`. A test is `` `path/of/file.rs::function` ``. A part that does
//! not exist yet is `owed:` and its name. A row may have both.

use super::Finding;
use super::tree::File;

/// The document with the tables.
const TABLE: &str = "docs/attacks.md";
/// The series of rows, and the number of rows of each.
const SERIES: [(&str, usize); 2] = [("L", 32), ("A", 25)];
/// The text before the name of a part that does not exist yet.
const OWED: &str = "owed:";

/// One row of a table.
struct Row<'a> {
    id: &'a str,
    /// The number of the line, from 1.
    line: usize,
    sentence: &'a str,
    held_by: &'a str,
}

/// Compares the table with the tests of the repository.
pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let Some(table) = files.iter().find(|file| file.path == TABLE) else {
        return vec![Finding::error(TABLE, "is missing")];
    };
    let rows: Vec<Row<'_>> = rows(&table.text).collect();
    let wanted = SERIES
        .iter()
        .flat_map(|(series, n_rows)| (1..=*n_rows).map(move |number| format!("{series}{number}")));
    let mut findings = Vec::new();
    for id in wanted {
        match rows.iter().filter(|row| row.id == id).count() {
            1 => {}
            0 => findings.push(Finding::error(TABLE, format!("row {id} is missing"))),
            n_rows => {
                findings
                    .push(Finding::error(TABLE, format!("row {id} stands there {n_rows} times")));
            }
        }
    }
    for row in &rows {
        let faults = faults(row, files).into_iter();
        findings.extend(faults.map(|fault| {
            Finding::error(TABLE, format!("row {}: {fault}", row.id)).at_line(row.line)
        }));
    }
    findings
}

/// The lines whose first cell is the identifier of a row.
fn rows(text: &str) -> impl Iterator<Item = Row<'_>> {
    text.lines().enumerate().filter_map(|(idx, line)| {
        let mut cells = line.strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim);
        let id = cells.next().filter(|id| is_row(id))?;
        let (sentence, held_by) = (cells.next()?, cells.next()?);
        Some(Row { id, line: idx + 1, sentence, held_by })
    })
}

fn is_row(id: &str) -> bool {
    let has_number = |rest: &str| !rest.is_empty() && rest.bytes().all(|it| it.is_ascii_digit());
    SERIES.iter().any(|(series, _)| id.strip_prefix(series).is_some_and(has_number))
}

fn faults(row: &Row<'_>, files: &[File]) -> Vec<String> {
    let mut faults = Vec::new();
    if row.sentence.is_empty() {
        faults.push("says nothing".to_owned());
    }
    let owed = row.held_by.split_once(OWED).map(|(_, part)| part.trim());
    let tests: Vec<&str> =
        row.held_by.split('`').skip(1).step_by(2).filter(|text| text.contains("::")).collect();
    if owed.is_some_and(str::is_empty) {
        faults.push(format!("`{OWED}` needs the part that does not exist yet"));
    }
    if tests.is_empty() && owed.is_none() {
        faults.push(format!("has neither a test (`file.rs::function`) nor `{OWED}`"));
    }
    faults.extend(tests.into_iter().filter_map(|test| fault_of_test(row.id, test, files)));
    faults
}

fn fault_of_test(id: &str, test: &str, files: &[File]) -> Option<String> {
    let (path, function) = test.split_once("::")?;
    let Some(file) = files.iter().find(|file| file.path == path && file.is_rust()) else {
        return Some(format!("there is no file `{path}`"));
    };
    if !has_test(&file.text, function) {
        return Some(format!("`{path}` has no test `{function}`"));
    }
    let mut words = file.text.split(|c: char| !c.is_alphanumeric() && c != '_');
    let is_named = words.any(|word| word == id);
    (!is_named).then(|| format!("`{path}` does not name the row; say `{id}` in its comment"))
}

/// Reports whether a text has a function of this name right below the attribute of a test.
fn has_test(text: &str, function: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_own = |line: &str| {
        let line = line.strip_prefix("async ").unwrap_or(line);
        let rest = line.strip_prefix("fn ").and_then(|line| line.strip_prefix(function));
        rest.is_some_and(|rest| rest.starts_with('('))
    };
    let is_test = |line: &str| line.starts_with("#[test]") || line.starts_with("#[tokio::test");
    lines.iter().enumerate().filter(|(_, line)| is_own(line)).any(|(idx, _)| {
        let above = lines[..idx].iter().rev();
        above
            .take_while(|line| line.starts_with('#') || line.starts_with("//"))
            .any(|it| is_test(it))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
/// L1: the rule holds.
#[tokio::test(flavor = \"multi_thread\")]
async fn holds() {}

fn no_test() {}
";

    /// A table in which all rows but some are owed.
    fn table(changed: &[(&str, &str)]) -> String {
        let mut lines = vec!["| row | sentence | held by |".to_owned(), "|---|---|---|".to_owned()];
        for (series, n_rows) in SERIES {
            for number in 1..=n_rows {
                let id = format!("{series}{number}");
                let own = changed.iter().find(|(row, _)| *row == id);
                lines.push(format!("| {id} | a rule | {} |", own.map_or("owed: x", |own| own.1)));
            }
        }
        lines.join("\n")
    }

    fn found(text: &str) -> Vec<String> {
        let files = [File::new(TABLE, text), File::new("a/b.rs", FILE)];
        check(&files).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_table_with_tests_and_owed_parts_passes() {
        assert!(found(&table(&[])).is_empty());
        assert!(found(&table(&[("L1", "`a/b.rs::holds`; owed: the rest")])).is_empty());
    }

    #[test]
    fn each_fault_of_a_row_is_found_at_its_line() {
        for (id, held_by, want) in [
            ("L1", "", ":3: row L1: has neither a test (`file.rs::function`) nor `owed:`"),
            ("L1", "soon", ":3: row L1: has neither a test (`file.rs::function`) nor `owed:`"),
            ("L1", "owed:", ":3: row L1: `owed:` needs the part that does not exist yet"),
            ("L1", "`a/c.rs::holds`", ":3: row L1: there is no file `a/c.rs`"),
            ("L1", "`a/b.rs::gone`", ":3: row L1: `a/b.rs` has no test `gone`"),
            ("L1", "`a/b.rs::hold`", ":3: row L1: `a/b.rs` has no test `hold`"),
            ("L1", "`a/b.rs::no_test`", ":3: row L1: `a/b.rs` has no test `no_test`"),
            (
                "L2",
                "`a/b.rs::holds`",
                ":4: row L2: `a/b.rs` does not name the row; say `L2` in its comment",
            ),
        ] {
            assert_eq!(found(&table(&[(id, held_by)])), [format!("error: {TABLE}{want}")]);
        }
    }

    #[test]
    fn missing_and_duplicate_rows_are_found() {
        let all = table(&[]);
        let without = all.replace("| L32 | a rule | owed: x |\n", "");
        assert_eq!(found(&without), [format!("error: {TABLE}: row L32 is missing")]);
        let twice = format!("{all}\n| A25 | a rule | owed: x |");
        assert_eq!(found(&twice), [format!("error: {TABLE}: row A25 stands there 2 times")]);
        let silent = all.replace("| A3 | a rule |", "| A3 | |");
        assert_eq!(found(&silent), [format!("error: {TABLE}:37: row A3: says nothing")]);
        let missing: Vec<String> = check(&[]).iter().map(Finding::to_string).collect();
        assert_eq!(missing, [format!("error: {TABLE}: is missing")]);
    }
}
