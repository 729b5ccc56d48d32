//! Checks that modules are named for their subject.

use super::Finding;
use super::tree::File;

/// Names that describe the kind of the content, or nothing, instead of its subject.
const BANNED: [&str; 9] =
    ["util", "utils", "helper", "helpers", "common", "misc", "stuff", "traits", "impls"];

/// Checks files, folders and inline modules.
pub(super) fn check(files: &[File]) -> Vec<Finding> {
    files.iter().filter(|file| file.is_rust()).flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut report = |name: &str, line: Option<usize>| {
        let message = format!("`{name}` does not name a subject");
        findings.push(Finding { line, ..Finding::error(&file.path, message) });
    };
    for segment in file.segments() {
        let name = segment.strip_suffix(".rs").unwrap_or(segment);
        if BANNED.contains(&name) {
            report(name, None);
        }
    }
    for (idx, line) in file.code().lines().enumerate() {
        // The check of files already finds `mod util;`.
        if let Some(name) = inline_module(line)
            && BANNED.contains(&name)
        {
            report(name, Some(idx + 1));
        }
    }
    findings
}

/// The name in a line such as `pub(crate) mod name {`.
fn inline_module(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("mod ")?;
    if !before.trim().is_empty() && !before.trim().starts_with("pub") {
        return None;
    }
    Some(after.split_once('{')?.0.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, text: &str) -> Vec<String> {
        check(&[File::new(path, text)]).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn modules_named_for_a_subject_pass() {
        assert!(messages("crates/a/src/backoff.rs", "mod tests {\n}\nmod glob;\n").is_empty());
        // Words that only contain a banned one, and files that others name, pass.
        assert!(messages("crates/a/src/commonwealth.rs", "").is_empty());
        assert!(messages("crates/a/testdata/common.yaml", "").is_empty());
    }

    #[test]
    fn files_folders_and_inline_modules_are_found() {
        let want = "error: crates/a/src/utils.rs: `utils` does not name a subject";
        assert_eq!(messages("crates/a/src/utils.rs", ""), [want]);
        let want = "error: crates/a/src/common/x.rs: `common` does not name a subject";
        assert_eq!(messages("crates/a/src/common/x.rs", ""), [want]);
        let want = "error: crates/a/src/x.rs:2: `helpers` does not name a subject";
        assert_eq!(messages("crates/a/src/x.rs", "\npub(crate) mod helpers {\n}\n"), [want]);
    }

    #[test]
    fn comments_and_texts_are_not_modules() {
        let text = "// mod util {\nconst X: &str = \"mod util {\";\n";
        assert!(messages("crates/a/src/x.rs", text).is_empty());
    }
}
