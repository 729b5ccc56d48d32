//! The files under `rows/` are tested as a whole.

use std::collections::BTreeMap;

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
