//! Strings and bytes, borrowed or owned.

use std::sync::Arc;

/// The text of a CEL string.
#[derive(Debug, Clone)]
pub enum Str<'a> {
    /// The host or the program owns the content.
    Borrowed(&'a str),
    /// The evaluation created the content.
    Owned(Arc<str>),
}

impl Str<'_> {
    /// Borrows the text of the string.
    #[inline]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Owned(text) => text,
        }
    }

    /// The number of code points.
    #[inline]
    pub fn char_count(&self) -> u64 {
        let text = self.as_str();
        // Names, groups and verbs are nearly always ASCII, and testing for that is fast.
        if text.is_ascii() { text.len() as u64 } else { text.chars().count() as u64 }
    }
}

/// The content of a CEL `bytes` value.
#[derive(Debug, Clone)]
pub enum Bytes<'a> {
    /// The host or the program owns the content.
    Borrowed(&'a [u8]),
    /// The evaluation created the content.
    Owned(Arc<[u8]>),
}

impl Bytes<'_> {
    /// Borrows the bytes of the value.
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Owned(bytes) => bytes,
        }
    }
}
