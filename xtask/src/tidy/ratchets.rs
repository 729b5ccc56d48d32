//! Counts undesirable patterns that the code still has. A count may only fall.
//!
//! `xtask/ratchets.txt` has the allowed count for each rule in each part of the tree (a crate, or a file or
//! folder of the root). A higher count is an error. A lower count is a warning until `cargo xtask tidy
//! --update-ratchets` writes it to the file.

mod marks;
mod short_docs;
mod sleeps;
mod string_errors;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use anyhow::{Context, ensure};

use super::Finding;
use super::tree::File;

/// The file of allowed counts.
pub(super) const LIST: &str = "xtask/ratchets.txt";

const HEADER: &str = "\
# The counts that `cargo xtask tidy` allows: rule, part of the tree, count. They only fall:
# `cargo xtask tidy --update-ratchets` rewrites this file and refuses a higher total.
";

/// The number of places that a finding names.
const PLACES_MAX: usize = 12;

/// One pattern that is counted.
struct Rule {
    name: &'static str,
    /// The description of one place, in the singular.
    about: &'static str,
    /// Returns the numbers of the lines of a file, from 1, that show the pattern.
    lines: fn(&File, &Tree) -> Vec<usize>,
}

const RULES: [Rule; 4] = [
    Rule {
        name: "marks",
        about: "a citation of a document that is not in this repository",
        lines: marks::lines,
    },
    Rule { name: "short-docs", about: "a doc comment under four words", lines: short_docs::lines },
    Rule { name: "sleeps", about: "a sleep in a test", lines: sleeps::lines },
    Rule {
        name: "string-errors",
        about: "a `Result` whose error is a `String`",
        lines: string_errors::lines,
    },
];

/// The facts about the tree that rules need besides one file.
struct Tree {
    /// The ids of the rows of `docs/attacks.md`, which comments may cite.
    attack_ids: BTreeSet<String>,
}

/// A count for each rule and part of the tree. A part without places has no entry.
type Counts = BTreeMap<(String, String), usize>;

/// The places of each rule and part of the tree, as `path:line`.
type Places = BTreeMap<(&'static str, String), Vec<String>>;

/// Compares the tree with the allowed counts.
pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let allowed = match allowed_counts(files) {
        Ok(allowed) => allowed,
        Err(error) => return vec![Finding::error(LIST, format!("{error:#}"))],
    };
    compare(&find_places(files), &allowed)
}

/// A table of the rules with their counts and the counts that are allowed.
pub(super) fn summary(files: &[File]) -> String {
    let places = find_places(files);
    let allowed = allowed_counts(files).unwrap_or_default();
    let mut table = format!("{:<16} {:>6} {:>8}\n", "counted", "places", "allowed");
    for rule in &RULES {
        let of_rule = |name: &str| name == rule.name;
        let n_places: usize =
            places.iter().filter(|((name, _), _)| of_rule(name)).map(|(_, all)| all.len()).sum();
        let n_allowed: usize =
            allowed.iter().filter(|((name, _), _)| of_rule(name)).map(|(_, n)| n).sum();
        let _ = writeln!(table, "{:<16} {n_places:>6} {n_allowed:>8}", rule.name);
    }
    table
}

/// The new content of the list. Counts may move from one part of the tree to another, as code does.
///
/// # Errors
///
/// The total of a rule would rise.
pub(super) fn updated_list(files: &[File]) -> anyhow::Result<String> {
    let allowed = allowed_counts(files)?;
    let found: Counts = find_places(files)
        .into_iter()
        .map(|((rule, part), places)| ((rule.to_owned(), part), places.len()))
        .collect();
    for rule in &RULES {
        let total = |counts: &Counts| -> usize {
            counts.iter().filter(|((name, _), _)| name == rule.name).map(|(_, n)| n).sum()
        };
        // A rule without any line is new.
        let is_new = !allowed.keys().any(|(name, _)| name == rule.name);
        let (old, new) = (total(&allowed), total(&found));
        ensure!(is_new || new <= old, "{}: {new} places, at most {old} allowed", rule.name);
    }
    let mut list = HEADER.to_owned();
    for ((rule, part), count) in found {
        let _ = writeln!(list, "{rule} {part} {count}");
    }
    Ok(list)
}

fn compare(places: &Places, allowed: &Counts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for ((rule, part), places) in places {
        let n_allowed = allowed.get(&((*rule).to_owned(), part.clone())).copied().unwrap_or(0);
        if places.len() > n_allowed {
            let about = RULES.iter().find(|own| own.name == *rule).map_or("", |rule| rule.about);
            let shown = places.iter().take(PLACES_MAX).map(String::as_str).collect::<Vec<_>>();
            let more = if places.len() > PLACES_MAX { ", ..." } else { "" };
            let message = format!(
                "{rule}: {} places, at most {n_allowed} allowed ({about}): {}{more}",
                places.len(),
                shown.join(", "),
            );
            findings.push(Finding::error(part, message));
        }
    }
    for ((rule, part), n_allowed) in allowed {
        let found = places.iter().find(|((name, own), _)| name == rule && own == part);
        let n_places = found.map_or(0, |(_, places)| places.len());
        if n_places < *n_allowed {
            let message = format!(
                "{rule}: {n_places} places, {n_allowed} allowed: run `cargo xtask tidy --update-ratchets`"
            );
            findings.push(Finding::warning(part, message));
        }
    }
    findings
}

fn find_places(files: &[File]) -> Places {
    let tree = Tree { attack_ids: marks::attack_ids(files) };
    let mut places = Places::new();
    for file in files {
        for rule in &RULES {
            for line in (rule.lines)(file, &tree) {
                let key = (rule.name, part_of_tree(&file.path));
                places.entry(key).or_default().push(format!("{}:{line}", file.path));
            }
        }
    }
    places
}

/// The crate of a file, or the file or folder of the root.
fn part_of_tree(path: &str) -> String {
    let mut segments = path.split('/');
    let first = segments.next().unwrap_or_default();
    match (first, segments.next()) {
        ("crates" | "tools" | "examples" | "peers", Some(second)) => format!("{first}/{second}"),
        _ => first.to_owned(),
    }
}

fn allowed_counts(files: &[File]) -> anyhow::Result<Counts> {
    let list = files.iter().find(|file| file.path == LIST);
    parse_list(list.map_or("", |file| &file.text))
}

fn parse_list(text: &str) -> anyhow::Result<Counts> {
    let mut counts = Counts::new();
    for (idx, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let parsed = (|| {
            let (rule, rest) = line.split_once(' ')?;
            let (part, count) = rest.split_once(' ')?;
            let rule = RULES.iter().find(|own| own.name == rule)?;
            Some(((rule.name.to_owned(), part.to_owned()), count.parse().ok()?))
        })();
        let (key, count) =
            parsed.with_context(|| format!("line {}: expected `RULE PART COUNT`", idx + 1))?;
        counts.insert(key, count);
    }
    Ok(counts)
}

/// Reports whether a line of a Rust file belongs to its tests.
///
/// Test code is a file of a `tests` folder, a file `tests.rs`, or the code after `#[cfg(test)]`.
fn test_lines_begin_at(file: &File) -> Option<usize> {
    if file.segments().any(|segment| matches!(segment, "tests" | "tests.rs")) {
        return Some(1);
    }
    file.text.lines().position(|line| line.trim() == "#[cfg(test)]").map(|idx| idx + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "/// Short.\nfn a() {}\n/// Also short.\nfn b() {}\n";

    fn tree(list: &str) -> Vec<File> {
        vec![File::new("crates/a/src/lib.rs", SOURCE), File::new(LIST, list)]
    }

    fn messages(list: &str) -> Vec<String> {
        check(&tree(list)).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_count_may_stay_and_fall_but_not_rise() {
        assert!(messages("# about\nshort-docs crates/a 2\n").is_empty());
        assert_eq!(
            messages("short-docs crates/a 1\n"),
            ["error: crates/a: short-docs: 2 places, at most 1 allowed \
              (a doc comment under four words): crates/a/src/lib.rs:1, crates/a/src/lib.rs:3"]
        );
        assert_eq!(messages("").len(), 1, "a part without a line has no places");
        assert_eq!(
            messages("short-docs crates/a 2\nsleeps crates/gone 1\n"),
            ["warning: crates/gone: sleeps: 0 places, 1 allowed: \
              run `cargo xtask tidy --update-ratchets`"]
        );
    }

    #[test]
    fn an_update_moves_and_lowers_counts_and_never_raises_a_total() {
        let moved = updated_list(&tree("short-docs crates/old 3\n")).unwrap();
        assert_eq!(moved, format!("{HEADER}short-docs crates/a 2\n"));
        assert!(messages(&moved).is_empty());
        let error = updated_list(&tree("short-docs crates/a 1\n")).unwrap_err().to_string();
        assert_eq!(error, "short-docs: 2 places, at most 1 allowed");
        // The list has no line of this rule yet.
        assert_eq!(updated_list(&tree("")).unwrap(), moved);
    }

    #[test]
    fn a_list_that_is_not_understood_is_an_error() {
        for list in ["short-docs crates/a", "short-docs crates/a many", "unknown crates/a 1"] {
            assert_eq!(
                messages(list),
                ["error: xtask/ratchets.txt: line 1: expected `RULE PART COUNT`"],
                "{list}"
            );
        }
    }

    #[test]
    fn parts_are_crates_and_the_entries_of_the_root() {
        for (path, part) in [
            ("crates/a/src/x/y.rs", "crates/a"),
            ("tools/b/tests/it/main.rs", "tools/b"),
            ("docs/x/y.md", "docs"),
            ("README.md", "README.md"),
        ] {
            assert_eq!(part_of_tree(path), part);
        }
    }
}
