//! The code that executes a request takes the verb from the authorization, never from HTTP.

use super::Finding;
use super::tree::File;

/// The places of the server that execute: folders end in a slash.
const EXECUTING: [&str; 8] = [
    "crates/server/src/rest/",
    "crates/server/src/admission/",
    "crates/server/src/initializers/",
    "crates/server/src/loops/",
    "crates/server/src/request/",
    "crates/server/src/admission.rs",
    "crates/server/src/loopback.rs",
    "crates/server/src/review.rs",
];

/// Words by which an HTTP method is read.
const METHOD: [&str; 2] = ["Method", "parts.method"];

/// Looks for HTTP methods where requests are executed.
pub(super) fn check(files: &[File]) -> Vec<Finding> {
    files.iter().filter(|file| is_executing(&file.path)).flat_map(check_file).collect()
}

fn is_executing(path: &str) -> bool {
    EXECUTING.iter().any(|own| match own.ends_with('/') {
        true => path.starts_with(own),
        false => path == *own,
    })
}

fn check_file(file: &File) -> Vec<Finding> {
    let code = file.code();
    let found = code.lines().enumerate().filter(|(_, line)| {
        let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '.');
        words
            .any(|word| METHOD.iter().any(|own| word == *own || word.ends_with(&format!(".{own}"))))
    });
    let message = "the executed action comes from `Authorized`, not from the HTTP method";
    found.map(|(idx, _)| Finding::error(&file.path, message).at_line(idx + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_in_executing_code_is_found_and_elsewhere_it_is_not() {
        let text = "use http::Method;\n// Method\nmatch self.parts.method {\nlet method_of = 1;\n";
        let lines = |path: &str| -> Vec<Option<usize>> {
            check(&[File::new(path, text)]).into_iter().map(|finding| finding.line).collect()
        };
        assert_eq!(lines("crates/server/src/rest/update.rs"), [Some(1), Some(3)]);
        assert_eq!(lines("crates/server/src/loopback.rs"), [Some(1), Some(3)]);
        assert!(lines("crates/server/src/request.rs").is_empty());
    }
}
