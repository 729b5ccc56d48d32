//! The values of `Warning` headers.

use std::collections::HashSet;

/// Upper bound on the characters of all warnings together, above which each warning is truncated.
const TOTAL_CHARS_MAX: usize = 4096;

/// Upper bound on the characters of a truncated warning.
const TRUNCATED_WARNING_CHARS_MAX: usize = 256;

/// The values of the `Warning` headers for these texts, in their order.
///
/// 1. Empty texts, repetitions, and texts with control characters are left out.
/// 2. If the texts have more than 4096 characters together, each is truncated to 256.
/// 3. Truncated texts after the 4096th character are left out.
#[must_use]
pub fn warning_headers<T: AsRef<str>>(texts: &[T]) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut kept: Vec<&str> = Vec::new();
    for text in texts.iter().map(AsRef::as_ref) {
        if !text.is_empty() && !text.contains(char::is_control) && seen.insert(text) {
            kept.push(text);
        }
    }
    let n_chars: usize = kept.iter().map(|text| text.chars().count()).sum();
    if n_chars <= TOTAL_CHARS_MAX {
        return kept.into_iter().map(format_warning_header).collect();
    }
    let mut n_chars = 0;
    let mut headers = Vec::new();
    for text in kept {
        if n_chars >= TOTAL_CHARS_MAX {
            break;
        }
        let end =
            text.char_indices().nth(TRUNCATED_WARNING_CHARS_MAX).map_or(text.len(), |(at, _)| at);
        let cut = text.get(..end).unwrap_or(text);
        n_chars += cut.chars().count();
        headers.push(format_warning_header(cut));
    }
    headers
}

fn format_warning_header(text: &str) -> String {
    format!("299 - \"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_not_repeated() {
        let texts = ["duplicate field \"data.a\"", "", "a\\b", "a\nb", "a\\b"];
        let want = ["299 - \"duplicate field \\\"data.a\\\"\"", "299 - \"a\\\\b\""];
        assert_eq!(warning_headers(&texts), want);
    }

    #[test]
    fn long_warnings_are_truncated() {
        let at_limit = ["ä".repeat(TOTAL_CHARS_MAX)];
        assert_eq!(warning_headers(&at_limit), [format_warning_header(&at_limit[0])]);
        let past = ["ä".repeat(TOTAL_CHARS_MAX), "b".to_owned()];
        assert_eq!(
            warning_headers(&past),
            [
                format_warning_header(&"ä".repeat(TRUNCATED_WARNING_CHARS_MAX)),
                format_warning_header("b")
            ]
        );
        let many: Vec<_> = (0..100).map(|idx| format!("{idx}{}", "x".repeat(300))).collect();
        assert_eq!(warning_headers(&many).len(), TOTAL_CHARS_MAX / TRUNCATED_WARNING_CHARS_MAX);
    }
}
