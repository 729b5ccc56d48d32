//! Checks that the code that executes a request takes the verb from the authorization, never from HTTP.

use super::Finding;
use super::tree::File;

/// The files and folders of the server that execute requests; folders end with a slash.
const EXECUTING_PATHS: [&str; 8] = [
    "crates/server/src/rest/",
    "crates/server/src/admission/",
    "crates/server/src/initializers/",
    "crates/server/src/background_loops/",
    "crates/server/src/request/",
    "crates/server/src/admission.rs",
    "crates/server/src/loopback.rs",
    "crates/server/src/access_and_token_reviews.rs",
];

/// Words that read an HTTP method.
const METHOD_WORDS: [&str; 2] = ["Method", "parts.method"];

/// Finds HTTP methods in code that executes requests. An entry of the list that matches no file is an error
/// too, so that a renamed folder does not escape the rule.
pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let executing =
        files.iter().filter(|file| EXECUTING_PATHS.iter().any(|own| covers(own, &file.path)));
    let missing =
        EXECUTING_PATHS.iter().filter(|own| !files.iter().any(|file| covers(own, &file.path)));
    let missing = missing.map(|own| Finding::error(own, "is executing code and does not exist"));
    executing.flat_map(check_file).chain(missing).collect()
}

fn covers(own: &str, path: &str) -> bool {
    if own.ends_with('/') { path.starts_with(own) } else { path == own }
}

fn check_file(file: &File) -> Vec<Finding> {
    let code = file.code();
    let found = code.lines().enumerate().filter(|(_, line)| {
        let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '.');
        words.any(|word| {
            METHOD_WORDS.iter().any(|own| word == *own || word.ends_with(&format!(".{own}")))
        })
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
        let lines = |path: &str| -> Vec<usize> {
            let findings = check(&[File::new(path, text)]);
            findings.into_iter().filter_map(|finding| finding.line).collect()
        };
        assert_eq!(lines("crates/server/src/rest/update.rs"), [1, 3]);
        assert_eq!(lines("crates/server/src/loopback.rs"), [1, 3]);
        assert!(lines("crates/server/src/request.rs").is_empty());
    }

    #[test]
    fn an_entry_of_the_list_without_a_file_is_found() {
        let findings = check(&[File::new("crates/server/src/rest/get.rs", "")]);
        assert_eq!(findings.len(), EXECUTING_PATHS.len() - 1);
        assert!(findings.iter().all(|finding| finding.line.is_none()));
    }
}
