//! Finds code that is not finished.

use super::Finding;
use super::tree::File;

/// The beginnings of banned code, and the reason for each.
const BANNED: [(&str, &str); 4] = [
    ("todo!", "unfinished code"),
    ("unimplemented!", "unfinished code"),
    ("dbg!", "left over from debugging"),
    ("#[ignore", "a test that does not run proves nothing"),
];

/// Checks code only: comments and literals may contain these words.
pub(super) fn check(files: &[File]) -> Vec<Finding> {
    files.iter().filter(|file| file.is_rust()).flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Finding> {
    let code = file.code();
    let mut findings = Vec::new();
    for (idx, line) in code.lines().enumerate() {
        for (banned, why) in BANNED {
            if contains_token(line, banned) {
                let message = format!("`{banned}`: {why}");
                findings.push(Finding::error(&file.path, message).at_line(idx + 1));
            }
        }
    }
    findings
}

/// Reports whether `token` occurs and is not the end of a longer name.
fn contains_token(line: &str, token: &str) -> bool {
    line.match_indices(token).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(text: &str) -> Vec<String> {
        check(&[File::new("a.rs", text)]).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn banned_code_is_found_at_its_line() {
        let text = "fn a() {\n    todo!()\n}\nfn b() { unimplemented!() }\n\
                    fn c() { dbg!(1); }\n#[ignore = \"slow\"]\nfn d() {}\n";
        assert_eq!(
            messages(text),
            [
                "error: a.rs:2: `todo!`: unfinished code",
                "error: a.rs:4: `unimplemented!`: unfinished code",
                "error: a.rs:5: `dbg!`: left over from debugging",
                "error: a.rs:6: `#[ignore`: a test that does not run proves nothing",
            ]
        );
    }

    #[test]
    fn comments_texts_and_longer_names_pass() {
        let text = "// todo!()\nconst X: &str = \"todo!()\";\nnot_a_todo!();\nlet todo = 1;\n";
        assert!(messages(text).is_empty());
    }
}
