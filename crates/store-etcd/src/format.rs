//! The version of the form in which a cluster keeps objects, under a key of its own.
//!
//! Servers of one version share a cluster. The first one writes the key; data without it is of
//! version 1, since servers before the key kept objects in the same form.

use bytes::Bytes;
use store::{At, Expect, Key, KeyError, Prefix, Put, ReadError, Store, WriteError};

use crate::engine::EtcdStore;

/// The version that this program writes, and up to which it reads. Whatever a program of an earlier
/// version would misread needs the next one: other keys, another encoding of values.
const FORMAT_VERSION: u64 = 1;
/// The key, below the prefix.
const FORMAT_KEY: &str = "portcullis/format";

/// Why the objects of a cluster can not be used. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// A program of a later version keeps objects here.
    #[error(
        "`{key}` says format version {version}, and this program reads versions up to \
         {FORMAT_VERSION}: start the program that wrote it or a later one; nothing was changed"
    )]
    Newer {
        /// The key that says so.
        key: Key,
        /// The version.
        version: u64,
    },
    /// The key does not hold a version.
    #[error("`{key}` holds `{value}` instead of a format version; nothing was changed")]
    Malformed {
        /// The key.
        key: Key,
        /// Its value.
        value: String,
    },
    /// The key of the format version under this prefix is not valid, for example because it is too
    /// long.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The key can not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The key can not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Reads the version, and writes it if nobody did.
pub(crate) async fn check(store: &EtcdStore, prefix: &Prefix) -> Result<(), FormatError> {
    let key = Key::new(&format!("{prefix}{FORMAT_KEY}"))?;
    if let Some(entry) = store.get(&key, At::Newest).await?.entry {
        return check_value(key, &entry.value);
    }
    let value = Bytes::from(FORMAT_VERSION.to_string());
    let put =
        Put { key: key.clone(), value, expect: Expect::Absent, ttl: None, shared_revision: None };
    match store.put(put).await {
        Ok(_) => Ok(()),
        // Another server has started at the same time.
        Err(WriteError::Conflict { current: Some(entry) }) => check_value(key, &entry.value),
        Err(error) => Err(error.into()),
    }
}

fn check_value(key: Key, value: &[u8]) -> Result<(), FormatError> {
    let value = String::from_utf8_lossy(value);
    match value.parse::<u64>() {
        Ok(1..=FORMAT_VERSION) => Ok(()),
        Ok(version @ 2..) => Err(FormatError::Newer { key, version }),
        Ok(0) | Err(_) => Err(FormatError::Malformed { key, value: value.into_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_up_to_ours_are_read_and_others_refused_with_words() {
        let checked = |value: &str| check_value(Key::new("/r/k").unwrap(), value.as_bytes());
        assert_eq!(checked("1"), Ok(()));
        for (value, want) in [
            (
                "2",
                "`/r/k` says format version 2, and this program reads versions up to 1: start the \
                 program that wrote it or a later one; nothing was changed",
            ),
            ("0", "`/r/k` holds `0` instead of a format version; nothing was changed"),
            ("", "`/r/k` holds `` instead of a format version; nothing was changed"),
            ("1.5", "`/r/k` holds `1.5` instead of a format version; nothing was changed"),
        ] {
            assert_eq!(checked(value).unwrap_err().to_string(), want);
        }
    }
}
