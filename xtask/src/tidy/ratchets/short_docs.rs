//! Finds doc comments that are too short to be useful.

use super::Tree;
use crate::tidy::tree::File;

/// A doc comment with fewer words is counted.
const WORDS_MIN: usize = 4;

/// The first lines of doc comments of items and modules that are too short.
pub(super) fn lines(file: &File, _: &Tree) -> Vec<usize> {
    if !file.is_rust() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut block: Option<(usize, usize)> = None;
    for (idx, line) in file.text.lines().chain([""]).enumerate() {
        let line = line.trim_start();
        let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        match (doc, &mut block) {
            (Some(doc), Some((_, n_words))) => *n_words += doc.split_whitespace().count(),
            (Some(doc), None) => block = Some((idx + 1, doc.split_whitespace().count())),
            (None, _) => {
                let finished = block.take();
                found.extend(finished.filter(|(_, n)| *n < WORDS_MIN).map(|(begin, _)| begin));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_whole_comment_counts_and_not_each_line() {
        let text = "//! About two words more.\n\n/// Short one here.\nfn a() {}\n\
                    /// Two\n/// lines make four.\nfn b() {}\n    /// Why.\n    c: u8,\n// Short.\n";
        let tree = Tree { attack_ids: BTreeSet::new() };
        assert_eq!(lines(&File::new("crates/a/src/x.rs", text), &tree), [3, 8]);
        assert!(lines(&File::new("a.md", "/// Short"), &tree).is_empty());
        assert_eq!(lines(&File::new("a.rs", "/// Last"), &tree), [1]);
    }
}
