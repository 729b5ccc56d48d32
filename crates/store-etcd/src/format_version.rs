//! The format version of the stored objects, which a key of the cluster holds.
//!
//! Servers of one format version share a cluster. The first server writes the key. Data without the key has
//! version 1, because servers that did not write the key used the same format.

use bytes::Bytes;
use store::{At, ExpectedKeyState, Key, KeyError, Prefix, Put, ReadError, Store, WriteError};

use crate::engine::EtcdStore;

/// The version that this program writes, and the newest one that it reads. A change that an earlier version of the
/// program would misread needs the next version: other keys, another encoding of values.
const FORMAT_VERSION: u64 = 1;
/// The key of the format version, relative to the prefix.
const FORMAT_KEY: &str = "portcullis/format";

/// The reason why the objects of a cluster cannot be used. The check has changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatVersionError {
    /// A program with a later format version keeps objects under the prefix.
    #[error(
        "`{key}` says format version {version}, and this program reads versions up to \
         {FORMAT_VERSION}: start the program that wrote it or a later one; nothing was changed"
    )]
    Newer {
        /// The key of the format version.
        key: Key,
        /// The version that the key holds.
        version: u64,
    },
    /// The key does not hold a version.
    #[error("`{key}` holds `{value}` instead of a format version; nothing was changed")]
    Malformed {
        /// The key of the format version.
        key: Key,
        /// The value of the key.
        value: String,
    },
    /// The key of the format version under this prefix is not valid, for example because it is too
    /// long.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The key of the format version cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The key of the format version cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Checks the format version, and writes it if the key does not exist.
pub(crate) async fn check_format_version(
    store: &EtcdStore,
    prefix: &Prefix,
) -> Result<(), FormatVersionError> {
    let key = Key::new(&format!("{prefix}{FORMAT_KEY}"))?;
    if let Some(entry) = store.get(&key, At::Newest).await?.entry {
        return check_format_value(key, &entry.value);
    }
    let value = Bytes::from(FORMAT_VERSION.to_string());
    let put = Put {
        key: key.clone(),
        value,
        expected_state: ExpectedKeyState::Absent,
        ttl: None,
        key_group_revision_action: None,
    };
    match store.put(put).await {
        Ok(_) => Ok(()),
        // Another server has started at the same time.
        Err(WriteError::Conflict { current: Some(entry) }) => check_format_value(key, &entry.value),
        Err(error) => Err(error.into()),
    }
}

fn check_format_value(key: Key, value: &[u8]) -> Result<(), FormatVersionError> {
    let value = String::from_utf8_lossy(value);
    match value.parse::<u64>() {
        Ok(1..=FORMAT_VERSION) => Ok(()),
        Ok(version @ 2..) => Err(FormatVersionError::Newer { key, version }),
        Ok(0) | Err(_) => Err(FormatVersionError::Malformed { key, value: value.into_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_format_versions_are_refused() {
        let checked = |value: &str| check_format_value(Key::new("/r/k").unwrap(), value.as_bytes());
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
