//! Reads the text files of the repository.

use std::cell::OnceCell;
use std::fs;
use std::path::Path;

use anyhow::Context;

use super::rust_text::code_only;

/// One text file of the repository.
#[derive(Debug)]
pub(super) struct File {
    /// The path relative to the root, with `/` between folders.
    pub(super) path: String,
    pub(super) text: String,
    code: OnceCell<String>,
}

impl File {
    /// Reports whether the file is Rust source.
    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The text without comments and literals.
    pub(super) fn code(&self) -> &str {
        self.code.get_or_init(|| code_only(&self.text))
    }

    /// The names of the folders above the file, outermost first, and then its own name.
    pub(super) fn segments(&self) -> std::str::Split<'_, char> {
        self.path.split('/')
    }
}

/// Reads every text file below `root`, ordered by path.
///
/// It skips the paths of `.gitignore`, the folder of git, build output, and files that are not UTF-8. The
/// list does not come from git, so that the rules also work in an unpacked archive.
pub(super) fn read(root: &Path) -> anyhow::Result<Vec<File>> {
    let gitignore = fs::read_to_string(root.join(".gitignore")).unwrap_or_default();
    let mut files = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let here = root.join(&folder);
        let entries = fs::read_dir(&here).with_context(|| format!("reading {}", here.display()))?;
        for entry in entries {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            let kind = entry.file_type()?;
            if is_left_out(&path, &gitignore) {
                continue;
            } else if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file()
                && let Ok(text) = fs::read_to_string(entry.path())
            {
                files.push(File { path, text, code: OnceCell::new() });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// Reports whether a path is skipped. It understands the two forms that our `.gitignore` uses: `/path/from/root`
/// and `*.suffix`.
fn is_left_out(path: &str, gitignore: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    matches!(name, ".git" | "target")
        || gitignore.lines().map(str::trim).any(|line| {
            line.strip_prefix('/').is_some_and(|ignored| ignored.trim_end_matches('/') == path)
                || line.strip_prefix('*').is_some_and(|suffix| name.ends_with(suffix))
        })
}

#[cfg(test)]
impl File {
    /// A file for tests of the rules.
    pub(super) fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned(), code: OnceCell::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;

    #[test]
    fn ignored_paths_and_suffixes_are_left_out() {
        let gitignore = "# comment\n/fuzz/artifacts\n/data/\n*.profraw\n";
        for path in ["target", "fuzz/target", ".git", "fuzz/artifacts", "data", "a/b.profraw"] {
            assert!(is_left_out(path, gitignore), "{path}");
        }
        for path in ["fuzz", "crates/data", "a/profraw", "artifacts", "targets"] {
            assert!(!is_left_out(path, gitignore), "{path}");
        }
    }

    #[test]
    fn the_tree_contains_this_file() {
        let files = read(&process::workspace_root()).unwrap();
        let this = files.iter().find(|file| file.path == "xtask/src/tidy/tree.rs").unwrap();
        assert!(this.is_rust() && this.text.starts_with("//! Reads the text files"));
        assert_eq!(this.segments().next_back(), Some("tree.rs"));
    }
}
