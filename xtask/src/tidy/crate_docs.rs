//! Checks that the documentation of each crate says what it owns and what it must not know.

use super::Finding;
use super::packages::Package;
use super::tree::File;

/// The lines that the crate documentation of every library must contain.
const REQUIRED_LINES: [&str; 2] = ["//! Owns:", "//! Must not know:"];

/// Checks that libraries have the two lines, and that programs have documentation.
pub(super) fn check(files: &[File], packages: &[Package]) -> Vec<Finding> {
    packages.iter().flat_map(|package| check_crate(files, package)).collect()
}

fn check_crate(files: &[File], package: &Package) -> Vec<Finding> {
    let find = |name: &str| {
        let path = format!("{}/src/{name}", package.folder);
        files.iter().find(|file| file.path == path)
    };
    let library = find("lib.rs");
    let Some(root) = library.or_else(|| find("main.rs")) else {
        return vec![Finding::error(&package.folder, "has neither src/lib.rs nor src/main.rs")];
    };
    if !root.text.starts_with("//! ") {
        return vec![Finding::error(&root.path, "does not begin with crate documentation")];
    }
    if library.is_none() {
        return Vec::new();
    }
    let docs: Vec<&str> = root.text.lines().take_while(|line| line.starts_with("//!")).collect();
    REQUIRED_LINES
        .iter()
        .filter(|wanted| !docs.iter().any(|line| line.starts_with(**wanted)))
        .map(|wanted| Finding::error(&root.path, format!("crate documentation lacks `{wanted}`")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, text: &str) -> Vec<String> {
        check(&[File::new(path, text)], &[Package::new("a", &[], &[])])
            .iter()
            .map(Finding::to_string)
            .collect()
    }

    #[test]
    fn a_library_with_both_lines_passes() {
        let text = "//! About.\n//!\n//! Owns: this,\n//! and that.\n//! Must not know: HTTP.\n";
        assert!(messages("crates/a/src/lib.rs", text).is_empty());
    }

    #[test]
    fn a_library_that_lacks_a_line_is_found() {
        assert_eq!(
            messages("crates/a/src/lib.rs", "//! About.\n//! Owns: this.\n"),
            ["error: crates/a/src/lib.rs: crate documentation lacks `//! Must not know:`"]
        );
        // The lines count in the crate documentation only.
        let text = "//! About.\nmod b;\n//! Owns: x\n//! Must not know: y\n";
        assert_eq!(messages("crates/a/src/lib.rs", text).len(), 2);
        assert_eq!(
            messages("crates/a/src/lib.rs", "mod b;\n"),
            ["error: crates/a/src/lib.rs: does not begin with crate documentation"]
        );
    }

    #[test]
    fn a_program_needs_documentation_and_a_crate_needs_a_root() {
        assert!(messages("crates/a/src/main.rs", "//! About.\n").is_empty());
        assert_eq!(
            messages("crates/a/src/main.rs", "fn main() {}\n"),
            ["error: crates/a/src/main.rs: does not begin with crate documentation"]
        );
        assert_eq!(
            messages("crates/b/src/lib.rs", "//! About.\n"),
            ["error: crates/a: has neither src/lib.rs nor src/main.rs"]
        );
    }
}
