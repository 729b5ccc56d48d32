//! The files under `rows/` are tested as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::rows;

/// A failure names its row by the id, so no two rows have one id.
#[test]
fn every_row_has_an_id_of_its_own() {
    let mut files_by_id: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (id, file) in rows::ids() {
        files_by_id.entry(id).or_default().push(file);
    }
    for (id, files) in files_by_id {
        assert_eq!(files.len(), 1, "{id} is in {files:?}");
    }
}

/// Each agreed difference from Kubernetes names the row that holds our answer.
#[test]
fn the_rows_of_agreed_differences_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("../../conformance/http/AGREED.md")).unwrap();
    let ids: BTreeSet<String> = rows::ids().into_iter().map(|(id, _)| id).collect();
    let mut n_rows = 0;
    for line in text.lines().filter(|line| line.starts_with("| ")).skip(1) {
        let cell = line.trim_end_matches('|').rsplit('|').next().unwrap().trim();
        let Some(row) = cell.strip_prefix('`').and_then(|row| row.strip_suffix('`')) else {
            assert_eq!(cell, "", "{line}");
            continue;
        };
        let is_file = root.join("tests/it").join(row).is_file();
        assert!(ids.contains(row) || is_file, "no row is called {row}");
        n_rows += 1;
    }
    assert!(n_rows > 5, "only {n_rows} rows");
}
