//! The syntax of keys and key prefixes.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Longest key or prefix in bytes. URLs have the same limit, so every name of a URL fits. The limit keeps
/// index entries small.
pub const KEY_BYTES_MAX: usize = 8 * 1024;

/// The key of one value: `/registry/configmaps/team-a/settings`.
///
/// INVARIANT: begins with `/`, does not end with `/`, has no NUL and at most [`KEY_BYTES_MAX`] bytes.
/// Keys are ordered by their bytes, which is the order of lists.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

/// The prefix of the keys of a list or a watch: `/registry/configmaps/team-a/`.
///
/// INVARIANT: begins and ends with `/`, has no NUL and at most [`KEY_BYTES_MAX`] bytes. So a prefix
/// never covers half of a name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix(Arc<str>);

/// The reason why a text is not a valid key or prefix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It does not begin with `/`.
    #[error("does not begin with `/`")]
    NoLeadingSlash,
    /// A key ends with `/`, like a prefix.
    #[error("ends with `/`")]
    TrailingSlash,
    /// A prefix does not end with `/`.
    #[error("does not end with `/`")]
    NoTrailingSlash,
    /// It has a NUL, which continue tokens use as a separator.
    #[error("contains a NUL")]
    Nul,
    /// It is longer than [`KEY_BYTES_MAX`].
    #[error("has {bytes} bytes, at most {KEY_BYTES_MAX} are allowed")]
    TooLong {
        /// The length of the text in bytes.
        bytes: usize,
    },
}

impl Key {
    /// Checks the syntax of a key.
    pub fn new(text: &str) -> Result<Self, KeyError> {
        check_key_syntax(text)?;
        if text.ends_with('/') {
            return Err(KeyError::TrailingSlash);
        }
        Ok(Self(text.into()))
    }

    /// Returns the text with its slashes.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the prefixes of the key, shortest first.
    pub fn prefixes(&self) -> impl Iterator<Item = &str> {
        self.0.match_indices('/').map(|(at, _)| &self.0[..=at])
    }
}

impl Prefix {
    /// Checks the syntax of a prefix.
    pub fn new(text: &str) -> Result<Self, KeyError> {
        check_key_syntax(text)?;
        if !text.ends_with('/') {
            return Err(KeyError::NoTrailingSlash);
        }
        Ok(Self(text.into()))
    }

    /// Returns the text with its slashes.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reports whether the key starts with this prefix.
    #[must_use]
    pub fn covers_key(&self, key: &str) -> bool {
        key.starts_with(&*self.0)
    }

    /// Returns the least text that is greater than every key under the prefix: `/a0` for `/a/`, because `0` is
    /// the character after `/`.
    #[must_use]
    pub fn range_end(&self) -> String {
        format!("{}0", self.0.strip_suffix('/').unwrap_or(&self.0))
    }
}

fn check_key_syntax(text: &str) -> Result<(), KeyError> {
    if text.len() > KEY_BYTES_MAX {
        return Err(KeyError::TooLong { bytes: text.len() });
    }
    if !text.starts_with('/') {
        return Err(KeyError::NoLeadingSlash);
    }
    if text.contains('\0') {
        return Err(KeyError::Nul);
    }
    Ok(())
}

impl Deref for Key {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// Keys and texts have the same order and the same hash, as `Borrow` requires.
impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_a_prefix_and_a_prefix_is_not_a_key() {
        assert!(Key::new("/a/b").is_ok());
        assert_eq!(Key::new("/a/"), Err(KeyError::TrailingSlash));
        assert!(Prefix::new("/a/").is_ok());
        assert!(Prefix::new("/").is_ok());
        assert_eq!(Prefix::new("/a"), Err(KeyError::NoTrailingSlash));
    }

    #[test]
    fn malformed_texts_are_refused() {
        for (text, want) in [
            ("", KeyError::NoLeadingSlash),
            ("a/b", KeyError::NoLeadingSlash),
            ("/a\0b", KeyError::Nul),
        ] {
            assert_eq!(Key::new(text), Err(want.clone()), "{text:?}");
            assert_eq!(Prefix::new(text), Err(want), "{text:?}");
        }
    }

    #[test]
    fn at_the_longest_and_one_past_it() {
        let longest = format!("/{}", "a".repeat(KEY_BYTES_MAX - 1));
        assert!(Key::new(&longest).is_ok());
        let bytes = KEY_BYTES_MAX + 1;
        assert_eq!(Key::new(&format!("{longest}a")), Err(KeyError::TooLong { bytes }));
        assert_eq!(Prefix::new(&format!("{longest}/")), Err(KeyError::TooLong { bytes }));
    }

    /// L9: a list does not return keys of similar prefixes.
    #[test]
    fn a_prefix_covers_whole_names_only() {
        let prefix = Prefix::new("/a/b/").unwrap();
        assert!(prefix.covers_key("/a/b/c"));
        assert!(!prefix.covers_key("/a/bc"));
        assert!(!prefix.covers_key("/a/b"));
        let key = Key::new("/a/b/c").unwrap();
        assert_eq!(key.prefixes().collect::<Vec<_>>(), ["/", "/a/", "/a/b/"]);
    }
}
