//! Finds citations that a reader cannot follow: sections and numbered rules of a document that is not in the
//! repository.

use std::collections::BTreeSet;

use super::Tree;
use crate::tidy::tree::File;

/// The table whose ids comments may cite.
const ATTACK_TABLE: &str = "docs/attacks.md";

/// Names of standards that look like ids of rules.
const STANDARD_NAMES: [&str; 14] = [
    "AES-128", "AES-256", "P-224", "P-256", "P-384", "P-521", "SHA-1", "SHA-2", "SHA-256",
    "SHA-384", "SHA-512", "UTF-16", "UTF-32", "UTF-8",
];

/// The file of this rule, whose tests contain such citations.
const THIS_FILE: &str = "xtask/src/tidy/ratchets/marks.rs";

/// Finds `§` and ids such as `X-12` in prose and source, and ids such as `X12` in comments.
pub(super) fn lines(file: &File, tree: &Tree) -> Vec<usize> {
    if !(file.is_rust() || file.path.ends_with(".md")) || file.path == THIS_FILE {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (idx, line) in file.text.lines().enumerate() {
        let comment = if file.is_rust() { comment_of(line) } else { "" };
        let cites_rule = words(comment).any(|(before, word)| {
            is_short_id(word)
                && !matches!(before, Some(':' | '`' | '/'))
                && !tree.attack_ids.contains(word)
        });
        if line.contains('§') || cites_rule || words(line).any(|(_, word)| is_hyphenated_id(word))
        {
            found.push(idx + 1);
        }
    }
    found
}

/// The ids of the rows of the table of attacks.
pub(super) fn attack_ids(files: &[File]) -> BTreeSet<String> {
    let table = files.iter().find(|file| file.path == ATTACK_TABLE);
    let rows = table.map_or("", |file| &file.text).lines();
    rows.filter_map(|line| Some(line.strip_prefix('|')?.split('|').next()?.trim().to_owned()))
        .filter(|id| is_short_id(id))
        .collect()
}

/// The comment at the end of a line; empty if there is none.
fn comment_of(line: &str) -> &str {
    // A URL is not a comment.
    let begin = line.match_indices("//").find(|(at, _)| !line[..*at].ends_with(':'));
    begin.map_or("", |(at, _)| &line[at..])
}

/// The words of a line, with the character before each. A hyphen joins words.
fn words(line: &str) -> impl Iterator<Item = (Option<char>, &str)> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    line.split(move |c: char| !is_part(c)).filter(|word| !word.is_empty()).map(move |word| {
        let at = word.as_ptr().addr() - line.as_ptr().addr();
        (line[..at].chars().next_back(), word)
    })
}

/// Reports whether a word is an id such as `X12`.
fn is_short_id(word: &str) -> bool {
    let mut chars = word.chars();
    chars.next().is_some_and(|c| c.is_ascii_uppercase())
        && is_number(chars.as_str())
        && chars.as_str().len() <= 2
}

/// Reports whether a word is an id such as `X-12` or `XYZ-012`.
fn is_hyphenated_id(word: &str) -> bool {
    let Some((letters, number)) = word.split_once('-') else { return false };
    (1..=4).contains(&letters.len())
        && letters.chars().all(|c| c.is_ascii_uppercase())
        && is_number(number)
        && number.len() <= 3
        && !STANDARD_NAMES.contains(&word)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<usize> {
        let attacks = File::new(ATTACK_TABLE, "| id | attack |\n|---|---|\n| L7 | a tunnel |\n");
        let tree = Tree { attack_ids: attack_ids(&[attacks]) };
        lines(&File::new(path, text), &tree)
    }

    #[test]
    fn sections_and_numbered_rules_are_found() {
        let text = "// see §6.3\n/// H-040: never.\nlet x = 1; // V12\nassert!(a, \"T-087\");\n/// V1 to V3.\n";
        assert_eq!(found("crates/a/src/x.rs", text), [1, 2, 3, 4, 5]);
        assert_eq!(found("docs/a.md", "# About\nas in §2, or RLD-16\n"), [2]);
    }

    #[test]
    fn attack_rows_standards_vectors_and_code_pass() {
        let text = "/// L7: no tunnel.\n// UTF-8, SHA-256, P-256, DNS-1123, KEP-3221, CVE-2025-4563\n\
                    let V1 = T1; // as in abac-single-001\n//! [`Version::V1`] and `V1`\n\
                    let url = \"http://a/V1\";\n";
        assert!(found("crates/a/src/x.rs", text).is_empty());
        assert!(found("conformance/rbac.jsonl", "H-040 §").is_empty());
    }
}
