//! Checks that the table of layers in `ARCHITECTURE.md` lists every crate of the product, and that no crate
//! depends on one of a higher layer.

use super::Finding;
use super::packages::Package;
use super::tree::File;

/// The document with the table.
const DOCUMENT: &str = "ARCHITECTURE.md";

/// The first line of the table.
const HEADER: &str = "| layer | crate |";

/// Compares the dependencies of the product with the table of layers. Dependencies of tests may point anywhere.
pub(super) fn check(files: &[File], packages: &[Package]) -> Vec<Finding> {
    let document = files.iter().find(|file| file.path == DOCUMENT);
    let rows = document.map(|file| parse_table(&file.text)).unwrap_or_default();
    let layer_of = |name: &str| rows.iter().find(|row| row.name == name).map(|row| row.layer);
    let mut findings = Vec::new();
    for package in packages.iter().filter(|package| package.folder.starts_with("crates/")) {
        let Some(layer) = layer_of(&package.name) else {
            let message = format!("has no row in the table of layers of {DOCUMENT}");
            findings.push(Finding::error(&package.folder, message));
            continue;
        };
        // Layers are numbered from the top, so a dependency must not have a smaller number.
        let higher = package.uses.iter().filter(|to| layer_of(to).is_some_and(|to| to < layer));
        findings.extend(higher.map(|to| {
            let message = format!("depends on `{to}`, which is in a higher layer of {DOCUMENT}");
            Finding::error(&package.folder, message)
        }));
    }
    for row in &rows {
        if !packages.iter().any(|package| package.name == row.name) {
            let message = format!("there is no crate `{}`", row.name);
            findings.push(Finding::error(DOCUMENT, message).at_line(row.line));
        }
    }
    findings
}

/// A crate of the table.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    name: String,
    /// The number of its layer, counted from the top of the table.
    layer: usize,
    line: usize,
}

/// Reads the rows of the table. A row with an empty first cell belongs to the layer of the row above it, and one row
/// may name several crates.
fn parse_table(text: &str) -> Vec<Row> {
    let lines = text.lines().enumerate().skip_while(|(_, line)| !line.starts_with(HEADER)).skip(2);
    let mut layer = 0;
    let mut rows = Vec::new();
    for (idx, line) in lines.take_while(|(_, line)| line.starts_with('|')) {
        let mut cells = line.split('|').map(str::trim).skip(1);
        let (layer_cell, crates_cell) = (cells.next(), cells.next());
        if layer_cell.is_some_and(|cell| !cell.is_empty()) {
            layer += 1;
        }
        let names = crates_cell.unwrap_or_default().split(',');
        rows.extend(names.map(|name| Row {
            name: name.trim().trim_matches('`').to_owned(),
            layer,
            line: idx + 1,
        }));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
# Map

| layer | crate | owns |
|---|---|---|
| **top** | `a` | x |
| | `b`, `c` | y |
| **bottom** | `d` | z |

| other | table |
";

    fn messages(packages: &[Package]) -> Vec<String> {
        let files = [File::new(DOCUMENT, TABLE)];
        check(&files, packages).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn the_rows_of_a_layer_have_its_number() {
        let rows = parse_table(TABLE);
        let found: Vec<_> =
            rows.iter().map(|row| (row.name.as_str(), row.layer, row.line)).collect();
        assert_eq!(found, [("a", 1, 5), ("b", 1, 6), ("c", 1, 6), ("d", 2, 7)]);
    }

    #[test]
    fn dependencies_on_the_same_or_a_lower_layer_pass() {
        let packages = [
            Package::new("a", &["b", "d"], &[]),
            Package::new("b", &["c"], &[]),
            Package::new("c", &[], &[]),
            Package::new("d", &[], &["a"]),
        ];
        assert!(messages(&packages).is_empty());
    }

    #[test]
    fn a_higher_layer_a_missing_row_and_a_missing_crate_are_found() {
        let packages = [
            Package::new("a", &[], &[]),
            Package::new("b", &[], &[]),
            Package::new("d", &["b"], &[]),
            Package::new("new", &[], &[]),
        ];
        assert_eq!(
            messages(&packages),
            [
                "error: crates/d: depends on `b`, which is in a higher layer of ARCHITECTURE.md",
                "error: crates/new: has no row in the table of layers of ARCHITECTURE.md",
                "error: ARCHITECTURE.md:6: there is no crate `c`",
            ]
        );
    }
}
