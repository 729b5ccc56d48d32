//! Checks that the paths that Markdown files name exist.

use std::collections::BTreeSet;

use super::Finding;
use super::tree::File;

/// The first folders of paths. Text between backticks that begins with one of them is a path from the root.
const PATH_ROOTS: [&str; 7] =
    ["conformance/", "crates/", "docs/", "examples/", "peers/", "tools/", "xtask/"];

/// Characters of patterns and placeholders. A text with one of them does not name a single file.
const PATTERN_CHARS: [char; 6] = ['*', '{', '<', ' ', '$', '…'];

/// Finds paths in backticks and relative links that do not exist.
pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let known = known_paths(files);
    let documents = files.iter().filter(|file| file.path.ends_with(".md"));
    documents.flat_map(|file| check_document(file, &known)).collect()
}

/// The paths of all text files and of the folders above them.
fn known_paths(files: &[File]) -> BTreeSet<&str> {
    let mut known = BTreeSet::new();
    for file in files {
        let mut path = file.path.as_str();
        known.insert(path);
        while let Some((folder, _)) = path.rsplit_once('/') {
            known.insert(folder);
            path = folder;
        }
    }
    known
}

fn check_document(document: &File, known: &BTreeSet<&str>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (idx, line) in document.text.lines().enumerate() {
        let paths = quoted_paths(line).map(str::to_owned);
        let links = links(line).map(|link| resolve(&document.path, link));
        for path in paths.chain(links) {
            if !known.contains(path.trim_end_matches('/')) {
                let message = format!("there is no file or folder `{path}`");
                findings.push(Finding::error(&document.path, message).at_line(idx + 1));
            }
        }
    }
    findings
}

/// The paths between backticks; `::function` may follow a file.
fn quoted_paths(line: &str) -> impl Iterator<Item = &str> {
    let quoted = line.split('`').skip(1).step_by(2);
    let paths = quoted.map(|text| text.split("::").next().unwrap_or(text));
    paths.filter(|text| {
        PATH_ROOTS.iter().any(|root| text.starts_with(root)) && !text.contains(PATTERN_CHARS)
    })
}

/// The targets of links to files of this repository, without the heading.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let targets =
        targets.filter(|target| !target.contains("://") && !target.contains(PATTERN_CHARS));
    targets.map(|target| target.split('#').next().unwrap_or(target)).filter(|path| !path.is_empty())
}

/// The path of a link from the root.
fn resolve(document: &str, link: &str) -> String {
    let mut segments: Vec<&str> = document.split('/').collect();
    segments.pop();
    for segment in link.split('/') {
        match segment {
            "." | "" => {}
            ".." => drop(segments.pop()),
            name => segments.push(name),
        }
    }
    segments.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(text: &str) -> Vec<String> {
        let files = [
            File::new("docs/a.md", text),
            File::new("docs/b.md", ""),
            File::new("crates/x/src/lib.rs", ""),
        ];
        check(&files).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn paths_that_exist_and_patterns_pass() {
        let text = "`crates/x/src/lib.rs::test`, `crates/x/`, `crates/{y,z}/src`, `serve/x.rs`\n\
                    [b](b.md#part) [x](../crates/x) [web](https://example.com/a) [here](#part)\n";
        assert!(messages(text).is_empty(), "{:?}", messages(text));
    }

    #[test]
    fn paths_and_links_to_missing_files_are_found() {
        assert_eq!(
            messages("ok\n`crates/y/src/lib.rs` and [c](c.md)\n"),
            [
                "error: docs/a.md:2: there is no file or folder `crates/y/src/lib.rs`",
                "error: docs/a.md:2: there is no file or folder `docs/c.md`",
            ]
        );
    }
}
