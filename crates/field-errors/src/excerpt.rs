//! Excerpts of texts whose length a client or a webhook chooses.

use std::borrow::Cow;
use std::fmt::{self, Display, Write};

/// The mark that replaces the rest of a truncated text.
const ELLIPSIS: &str = "...";

/// The longest prefix of whole characters that has at most `bytes_max` bytes.
///
/// ```
/// assert_eq!(field_errors::truncate("abcé", 4), "abc");
/// ```
pub fn truncate(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or_default()
}

/// The text, or its [truncated](truncate) prefix and `...` if it has more than `bytes_max` bytes.
pub(crate) fn excerpt(text: &str, bytes_max: usize) -> Cow<'_, str> {
    match text.len() <= bytes_max {
        true => Cow::Borrowed(text),
        false => Cow::Owned(format!("{}{ELLIPSIS}", truncate(text, bytes_max))),
    }
}

/// Formats a value and truncates the text. Formatting stops at the limit, so that a long text costs no more
/// than a short one.
pub(crate) fn display_excerpt(value: &impl Display, bytes_max: usize) -> String {
    let mut writer = ExcerptWriter { excerpt_text: String::new(), excerpt_bytes_max: bytes_max };
    match write!(writer, "{value}") {
        Ok(()) => writer.excerpt_text,
        Err(fmt::Error) => writer.excerpt_text + ELLIPSIS,
    }
}

struct ExcerptWriter {
    excerpt_text: String,
    excerpt_bytes_max: usize,
}

impl Write for ExcerptWriter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let left = self.excerpt_bytes_max.saturating_sub(self.excerpt_text.len());
        let fitting = truncate(text, left);
        self.excerpt_text.push_str(fitting);
        if fitting.len() < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_truncated_above_the_limit() {
        for (text, want) in [("", ""), ("abcd", "abcd"), ("abcde", "abcd..."), ("abcé", "abc...")]
        {
            assert_eq!(excerpt(text, 4), want);
            assert_eq!(display_excerpt(&text, 4), want);
        }
        assert_eq!(display_excerpt(&format_args!("{}{}", "ab", "cde"), 4), "abcd...");
    }
}
