//! Finds results whose error is a text, which a caller can only print.

use super::Tree;
use crate::tidy::tree::File;

/// The lines on which a type `Result<_, String>` begins.
pub(super) fn lines(file: &File, _: &Tree) -> Vec<usize> {
    if !file.is_rust() {
        return Vec::new();
    }
    let code = file.code();
    let begins = code.match_indices("Result<").map(|(at, begin)| (at, at + begin.len()));
    begins
        .filter(|(_, arguments)| last_argument(&code[*arguments..]) == Some("String"))
        .map(|(at, _)| code[..at].matches('\n').count() + 1)
        .collect()
}

/// The last of two or more generic arguments in the text after the opening bracket.
fn last_argument(text: &str) -> Option<&str> {
    let (mut depth, mut begin) = (0_usize, None);
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '<' | '(' | '[' => depth += 1,
            // The arrow of a function type closes no bracket.
            '>' if before == '-' => {}
            '>' if depth == 0 => {
                let argument = text[begin?..at].trim().trim_end_matches(',');
                return Some(argument.trim());
            }
            '>' | ')' | ']' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 && !text[at + 1..].trim_start().starts_with('>') => {
                begin = Some(at + 1);
            }
            ';' | '{' if depth == 0 => return None,
            _ => {}
        }
        before = c;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn found(text: &str) -> Vec<usize> {
        lines(&File::new("a.rs", text), &Tree { attack_ids: BTreeSet::new() })
    }

    #[test]
    fn a_text_as_error_is_found_whatever_the_value_is() {
        let text = "fn a() -> Result<(), String> {}\nfn b() -> Result<Vec<(u8, X)>, String>;\n\
                    type C = Result<\n    Box<dyn Fn(u8) -> u8>,\n    String,\n>;\n";
        assert_eq!(found(text), [1, 2, 3]);
    }

    #[test]
    fn other_errors_and_texts_as_values_pass() {
        let text = "fn a() -> Result<String, Error> {}\nfn b() -> io::Result<String> {}\n\
                    fn c() -> Result<u8, Vec<String>>;\n// Result<u8, String>\nlet x = Result<;\n";
        assert!(found(text).is_empty());
    }
}
