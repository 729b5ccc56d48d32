//! Beginnings of texts that a client may make as long as it likes.

use std::borrow::Cow;
use std::fmt::{self, Display, Write};

/// Stands for the rest of a text.
const MORE: &str = "...";

/// The beginning of a text: at most `bytes_max` bytes, cut between two characters.
pub fn truncate_text(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or_default()
}

/// The text, or its beginning if it has more than so many bytes.
pub(crate) fn excerpt(text: &str, bytes_max: usize) -> Cow<'_, str> {
    match text.len() <= bytes_max {
        true => Cow::Borrowed(text),
        false => Cow::Owned(format!("{}{MORE}", truncate_text(text, bytes_max))),
    }
}

/// What a value displays as, or the beginning of that. The rest is not written, so that a long text costs
/// no more than a short one.
pub(crate) fn written(value: &impl Display, bytes_max: usize) -> String {
    let mut begin = Begin { text: String::new(), bytes_max };
    match write!(begin, "{value}") {
        Ok(()) => begin.text,
        Err(fmt::Error) => begin.text + MORE,
    }
}

struct Begin {
    text: String,
    bytes_max: usize,
}

impl Write for Begin {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let left = self.bytes_max.saturating_sub(self.text.len());
        let fits = text.floor_char_boundary(left);
        self.text.push_str(text.get(..fits).unwrap_or_default());
        if fits < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_of_the_limit() {
        for (text, want) in [("", ""), ("abcd", "abcd"), ("abcde", "abcd..."), ("abcé", "abc...")]
        {
            assert_eq!(excerpt(text, 4), want);
            assert_eq!(truncate_text(text, 4), want.trim_end_matches(MORE));
            assert_eq!(written(&text, 4), want);
        }
        assert_eq!(written(&format_args!("{}{}", "ab", "cde"), 4), "abcd...");
    }
}
