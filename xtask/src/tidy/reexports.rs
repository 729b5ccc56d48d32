//! Checks that a crate exports its public items one by one.

use super::Finding;
use super::tree::File;

/// Finds `pub use path::*`. A reader of `lib.rs` should see every public name, and a new item should not
/// become public by accident.
pub(super) fn check(files: &[File]) -> Vec<Finding> {
    files.iter().filter(|file| file.is_rust()).flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Finding> {
    let code = file.code();
    let mut findings = Vec::new();
    let mut is_reexport = false;
    for (idx, line) in code.lines().enumerate() {
        let line = line.trim();
        is_reexport |= line.starts_with("pub use ");
        if is_reexport && line.contains("::*") {
            let message = "re-exports everything: name the items";
            findings.push(Finding::error(&file.path, message).at_line(idx + 1));
        }
        is_reexport &= !line.ends_with(';');
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<Option<usize>> {
        check(&[File::new("a.rs", text)]).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn globs_are_found_wherever_they_stand_in_the_statement() {
        assert_eq!(lines("pub use a::*;\n"), [Some(1)]);
        assert_eq!(lines("mod a;\npub use b::{\n    c,\n    d::*,\n};\n"), [Some(4)]);
    }

    #[test]
    fn named_items_and_private_globs_pass() {
        let text = "pub use a::{b, c};\nuse super::*;\n// pub use a::*;\nlet x = a::b;\n";
        assert_eq!(lines(text), []);
    }
}
