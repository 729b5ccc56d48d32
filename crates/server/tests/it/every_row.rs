//! The table of test cases is tested as a whole.

use std::collections::BTreeMap;
use std::path::Path;

use crate::rows;

/// How many rows the table has.
const ROWS: usize = 156;

/// Rows that this crate can not test, and the crate that does.
const ELSEWHERE: [(&str, &str); 1] = [
    // Two servers on one etcd.
    ("H-152", "e2e"),
];

/// A row is an entry of a file under `rows/`, or a test whose description begins with its id.
#[test]
fn every_row_is_tested_once() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (id, file) in rows::ids().into_iter().filter(|(id, _)| id.starts_with("H-")) {
        places.entry(id).or_default().push(file);
    }
    for (id, place) in ELSEWHERE {
        places.entry(id.to_owned()).or_default().push(place.to_owned());
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|own| own == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            for line in text.lines().filter_map(|line| line.strip_prefix("/// H-")) {
                let id = format!("H-{}", line.split(':').next().unwrap());
                places.entry(id).or_default().push(path.display().to_string());
            }
        }
    }
    for number in 1..=ROWS {
        let id = format!("H-{number:03}");
        let found = places.remove(&id).unwrap_or_default();
        assert_eq!(found.len(), 1, "{id} is tested at {found:?}");
    }
    assert!(places.is_empty(), "no rows of the table: {places:?}");
}
