//! Finds paths of a particular machine, which work for one person only and show where that person works.

use super::Finding;
use super::tree::File;

/// Top-level folders in which people and build machines keep checkouts and scratch files.
const MACHINE_FOLDERS: [&str; 5] = ["home", "root", "tmp", "Users", "work"];

/// Files that others produce, whose paths are not ours.
const RECORDED_DATA_SUFFIXES: [&str; 4] = [".jsonl", ".lock", ".sum", ".svg"];

/// Checks every text file that we write ourselves.
pub(super) fn check(files: &[File]) -> Vec<Finding> {
    files
        .iter()
        .filter(|file| !RECORDED_DATA_SUFFIXES.iter().any(|suffix| file.path.ends_with(suffix)))
        .flat_map(check_file)
        .collect()
}

fn check_file(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (idx, line) in file.text.lines().enumerate() {
        for folder in MACHINE_FOLDERS {
            if mentions(line, &format!("/{folder}/")) {
                let message = format!("names a path of one machine (`/{folder}/...`)");
                findings.push(Finding::error(&file.path, message).at_line(idx + 1));
            }
        }
    }
    findings
}

/// Reports whether an absolute path begins with `folder`, and does not contain it further down.
fn mentions(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-~%*})/".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The path is written in two parts, because otherwise this file would be a finding.
    fn in_folder(folder: &str) -> String {
        format!("see `/{folder}/ana/portcullis`\n")
    }

    fn messages(path: &str, text: &str) -> Vec<String> {
        check(&[File::new(path, text)]).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn each_folder_is_found_at_its_line() {
        for folder in MACHINE_FOLDERS {
            let text = format!("first\n{}", in_folder(folder));
            let want = format!("error: a.md:2: names a path of one machine (`/{folder}/...`)");
            assert_eq!(messages("a.md", &text), [want]);
        }
    }

    #[test]
    fn folders_further_down_and_recorded_data_pass() {
        let deep = "https://example.com/home/x and crates/work/src and $ROOT}/tmp/x and /homes/x";
        assert!(messages("a.md", deep).is_empty());
        assert!(messages("conformance/a.jsonl", &in_folder("home")).is_empty());
    }
}
