//! Checks the length of files: a file has one subject, and a long file usually has two.

use super::Finding;
use super::tree::File;

/// A file with more lines gets a warning, because it probably has a second subject.
const LINES_BEFORE_WARNING: usize = 500;
/// A file with more lines is an error.
const LINES_MAX: usize = 800;

/// A file that may be longer than [`LINES_MAX`], up to its length when it was listed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exception {
    path: &'static str,
    lines_max: usize,
}

/// The list only shrinks: an entry that is no longer needed is an error too.
pub(super) const EXCEPTIONS: &[Exception] = &[];

/// Checks source files. Tests and their data may have any length.
pub(super) fn check(files: &[File], exceptions: &[Exception]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = files
        .iter()
        .filter(|file| is_source(file))
        .filter_map(|file| check_file(file, exceptions))
        .collect();
    for exception in exceptions {
        let file = files.iter().find(|file| file.path == exception.path);
        if file.is_none_or(|file| file.text.lines().count() <= LINES_MAX) {
            let message = "needs no exception any more: remove it from the list of file sizes";
            findings.push(Finding::error(exception.path, message));
        }
    }
    findings
}

fn is_source(file: &File) -> bool {
    let is_test = |segment: &str| {
        matches!(segment, "tests" | "testdata" | "fuzz_targets" | "tests.rs")
            || segment.ends_with("_test.go")
    };
    (file.is_rust() || file.path.ends_with(".go")) && !file.segments().any(is_test)
}

fn check_file(file: &File, exceptions: &[Exception]) -> Option<Finding> {
    let n_lines = file.text.lines().count();
    let exception = exceptions.iter().find(|exception| exception.path == file.path);
    let lines_max = exception.map_or(LINES_MAX, |exception| exception.lines_max);
    if n_lines > lines_max {
        let message = format!("{n_lines} lines, at most {lines_max} allowed: split it by subject");
        return Some(Finding::error(&file.path, message));
    }
    (n_lines > LINES_BEFORE_WARNING).then(|| {
        let message = format!("{n_lines} lines: which second subject moved in?");
        Finding::warning(&file.path, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::Severity;

    fn file(path: &str, n_lines: usize) -> File {
        File::new(path, &"x\n".repeat(n_lines))
    }

    fn severities(path: &str, n_lines: usize) -> Vec<Severity> {
        check(&[file(path, n_lines)], &[]).iter().map(|finding| finding.severity).collect()
    }

    #[test]
    fn warnings_and_errors_begin_above_the_limits() {
        let path = "crates/a/src/x.rs";
        assert_eq!(severities(path, LINES_BEFORE_WARNING), []);
        assert_eq!(severities(path, LINES_BEFORE_WARNING + 1), [Severity::Warning]);
        assert_eq!(severities(path, LINES_MAX), [Severity::Warning]);
        assert_eq!(severities(path, LINES_MAX + 1), [Severity::Error]);
        assert_eq!(severities("peers/cmd/x/main.go", LINES_MAX + 1), [Severity::Error]);
    }

    #[test]
    fn tests_and_data_may_be_long() {
        for path in
            ["crates/a/tests/it/main.rs", "crates/a/src/x/tests.rs", "a_test.go", "docs/long.md"]
        {
            assert_eq!(severities(path, 2 * LINES_MAX), [], "{path}");
        }
    }

    #[test]
    fn exceptions_may_neither_grow_nor_outlive_their_reason() {
        const OLD: &[Exception] = &[Exception { path: "crates/a/src/old.rs", lines_max: 900 }];
        let find =
            |files: &[File]| check(files, OLD).iter().map(Finding::to_string).collect::<Vec<_>>();
        assert_eq!(
            find(&[file("crates/a/src/old.rs", 900)]),
            ["warning: crates/a/src/old.rs: 900 lines: which second subject moved in?"]
        );
        assert_eq!(
            find(&[file("crates/a/src/old.rs", 901)]),
            ["error: crates/a/src/old.rs: 901 lines, at most 900 allowed: split it by subject"]
        );
        let stale = "error: crates/a/src/old.rs: needs no exception any more: \
                     remove it from the list of file sizes";
        assert_eq!(find(&[]), [stale]);
        assert!(find(&[file("crates/a/src/old.rs", LINES_MAX)]).contains(&stale.to_owned()));
    }
}
