//! Excerpts of texts whose length a client or a webhook chooses.

use std::borrow::Cow;
use std::fmt::{self, Display, Write};

/// The mark that replaces the rest of a truncated text.
const ELLIPSIS: &str = "...";

/// The longest prefix of whole characters that has at most `bytes_max` bytes.
///
/// ```
/// assert_eq!(field_errors::truncate_to_bytes("abcé", 4), "abc");
/// ```
pub fn truncate_to_bytes(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or_default()
}

/// The text, or its [truncated](truncate_to_bytes) prefix and `...` if it has more than `bytes_max` bytes.
pub(crate) fn truncate_with_ellipsis(text: &str, bytes_max: usize) -> Cow<'_, str> {
    match text.len() <= bytes_max {
        true => Cow::Borrowed(text),
        false => Cow::Owned(format!("{}{ELLIPSIS}", truncate_to_bytes(text, bytes_max))),
    }
}

/// Formats a value and truncates the text. Formatting stops at the limit, so that a long text costs no more
/// than a short one.
pub(crate) fn format_truncated(value: &impl Display, bytes_max: usize) -> String {
    let mut writer = TruncatingWriter { written_text: String::new(), written_bytes_max: bytes_max };
    match write!(writer, "{value}") {
        Ok(()) => writer.written_text,
        Err(fmt::Error) => writer.written_text + ELLIPSIS,
    }
}

struct TruncatingWriter {
    written_text: String,
    written_bytes_max: usize,
}

impl Write for TruncatingWriter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let left = self.written_bytes_max.saturating_sub(self.written_text.len());
        let fitting = truncate_to_bytes(text, left);
        self.written_text.push_str(fitting);
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
            assert_eq!(truncate_with_ellipsis(text, 4), want);
            assert_eq!(format_truncated(&text, 4), want);
        }
        assert_eq!(format_truncated(&format_args!("{}{}", "ab", "cde"), 4), "abcd...");
    }
}
