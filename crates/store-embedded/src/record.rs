//! Encoding of records in logs, snapshots and history pages.
//!
//! Integers are little-endian. A frame holds any number of records; each begins with its tag.

use std::sync::Arc;

use bytes::Bytes;
use store::{KEY_BYTES_MAX, Key, Revision, VALUE_BYTES_MAX};

use crate::history::KeyChange;
use crate::version::Version;

const PUT: u8 = 1;
const DELETE: u8 = 2;
const COMPACT: u8 = 3;
const VERSION: u8 = 4;
const END: u8 = 5;
const STEP: u8 = 6;
/// An additional put of an empty value, in format version 1.
const MARK: u8 = 7;
const ADDITIONAL_PUT: u8 = 8;
const ADDITIONAL_DELETE: u8 = 9;

/// One record of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileRecord {
    /// A write of a key. The version that it replaces is in earlier records.
    Put { revision: Revision, key: Key, value: Bytes, expires_at_ms: Option<u64> },
    /// The deletion of a key.
    Delete { revision: Revision, key: Key },
    /// An additional write in the revision of the previous write. The key does not expire.
    AdditionalPut { key: Key, value: Bytes },
    /// An additional delete in the revision of the previous write.
    AdditionalDelete { key: Key },
    /// A compaction to this floor.
    Compact { floor: Revision },
    /// A version in a snapshot.
    Version(Version),
    /// The end of a snapshot, with its number of versions.
    End { n_versions: u64 },
    /// A change in a history page.
    KeyChange(KeyChange),
}

/// The reason why bytes do not decode as a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RecordError {
    #[error("the record ends early")]
    Short,
    #[error("unknown record type {0}")]
    Tag(u8),
    #[error("the record has a malformed key")]
    Key,
    #[error("the record has a value that is too large")]
    Value,
}

pub(crate) fn encode_put(into: &mut Vec<u8>, version: &Version) {
    into.push(PUT);
    append_revision(into, version.mod_rev);
    append_deadline(into, version.expires_at_ms);
    append_bytes(into, version.key.as_bytes());
    append_bytes(into, &version.value);
}

pub(crate) fn encode_delete(into: &mut Vec<u8>, revision: Revision, key: &Key) {
    into.push(DELETE);
    append_revision(into, revision);
    append_bytes(into, key.as_bytes());
}

/// The record is in the same frame as its write, so recovery reads both or neither.
pub(crate) fn encode_additional_put(into: &mut Vec<u8>, key: &Key, value: &[u8]) {
    into.push(ADDITIONAL_PUT);
    append_bytes(into, key.as_bytes());
    append_bytes(into, value);
}

/// The record is in the same frame as its write, so recovery reads both or neither.
pub(crate) fn encode_additional_delete(into: &mut Vec<u8>, key: &Key) {
    into.push(ADDITIONAL_DELETE);
    append_bytes(into, key.as_bytes());
}

pub(crate) fn encode_compaction_floor(into: &mut Vec<u8>, floor: Revision) {
    into.push(COMPACT);
    append_revision(into, floor);
}

pub(crate) fn encode_version(into: &mut Vec<u8>, version: &Version) {
    into.push(VERSION);
    append_version(into, version);
}

pub(crate) fn encode_snapshot_end(into: &mut Vec<u8>, n_versions: u64) {
    into.push(END);
    into.extend_from_slice(&n_versions.to_le_bytes());
}

pub(crate) fn encode_change(into: &mut Vec<u8>, change: &KeyChange) {
    into.push(STEP);
    append_revision(into, change.revision);
    for version in [&change.new_version, &change.old_version] {
        into.push(u8::from(version.is_some()));
        if let Some(version) = version {
            append_version(into, version);
        }
    }
}

fn append_version(into: &mut Vec<u8>, version: &Version) {
    append_revision(into, version.mod_rev);
    append_revision(into, version.create_rev);
    append_deadline(into, version.expires_at_ms);
    append_bytes(into, version.key.as_bytes());
    append_bytes(into, &version.value);
}

fn append_revision(into: &mut Vec<u8>, revision: Revision) {
    into.extend_from_slice(&revision.as_u64().to_le_bytes());
}

/// Appends a deadline in milliseconds since 1970; zero stands for no deadline.
fn append_deadline(into: &mut Vec<u8>, expires_at_ms: Option<u64>) {
    into.extend_from_slice(&expires_at_ms.unwrap_or(0).to_le_bytes());
}

/// Keys and values are at most 1.5 MiB, so their lengths fit.
fn append_bytes(into: &mut Vec<u8>, bytes: &[u8]) {
    into.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    into.extend_from_slice(bytes);
}

/// Decodes a sequence of records.
#[derive(Debug)]
pub(crate) struct RecordReader<'a> {
    remaining_bytes: &'a [u8],
}

impl<'a> RecordReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { remaining_bytes: bytes }
    }

    /// Decodes the next record; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<FileRecord>, RecordError> {
        let Some(tag) = self.remaining_bytes.split_off_first() else { return Ok(None) };
        let record = match *tag {
            PUT => {
                let revision = self.read_revision()?;
                let expires_at_ms = self.read_deadline()?;
                FileRecord::Put {
                    revision,
                    expires_at_ms,
                    key: self.read_key()?,
                    value: self.read_value()?,
                }
            }
            DELETE => FileRecord::Delete { revision: self.read_revision()?, key: self.read_key()? },
            MARK => FileRecord::AdditionalPut { key: self.read_key()?, value: Bytes::new() },
            ADDITIONAL_PUT => {
                FileRecord::AdditionalPut { key: self.read_key()?, value: self.read_value()? }
            }
            ADDITIONAL_DELETE => FileRecord::AdditionalDelete { key: self.read_key()? },
            COMPACT => FileRecord::Compact { floor: self.read_revision()? },
            VERSION => FileRecord::Version(self.read_version()?),
            END => FileRecord::End { n_versions: self.read_number()? },
            STEP => FileRecord::KeyChange(KeyChange {
                revision: self.read_revision()?,
                new_version: self.read_optional_version()?,
                old_version: self.read_optional_version()?,
            }),
            other => return Err(RecordError::Tag(other)),
        };
        Ok(Some(record))
    }

    fn read_version(&mut self) -> Result<Version, RecordError> {
        let (mod_rev, create_rev) = (self.read_revision()?, self.read_revision()?);
        let expires_at_ms = self.read_deadline()?;
        Ok(Version {
            key: self.read_key()?,
            value: self.read_value()?,
            mod_rev,
            create_rev,
            expires_at_ms,
        })
    }

    fn read_optional_version(&mut self) -> Result<Option<Arc<Version>>, RecordError> {
        let is_there = *self.remaining_bytes.split_off_first().ok_or(RecordError::Short)?;
        if is_there == 0 {
            return Ok(None);
        }
        self.read_version().map(|version| Some(Arc::new(version)))
    }

    fn read_revision(&mut self) -> Result<Revision, RecordError> {
        self.read_number().map(Revision::new)
    }

    fn read_deadline(&mut self) -> Result<Option<u64>, RecordError> {
        self.read_number().map(|number| (number > 0).then_some(number))
    }

    fn read_number(&mut self) -> Result<u64, RecordError> {
        let (number, remaining_bytes) =
            self.remaining_bytes.split_first_chunk().ok_or(RecordError::Short)?;
        self.remaining_bytes = remaining_bytes;
        Ok(u64::from_le_bytes(*number))
    }

    fn read_bytes(&mut self, max: usize, error: RecordError) -> Result<&'a [u8], RecordError> {
        let (len, remaining_bytes) =
            self.remaining_bytes.split_first_chunk().ok_or(RecordError::Short)?;
        let len = u32::from_le_bytes(*len) as usize;
        if len > max {
            return Err(error);
        }
        let (bytes, remaining_bytes) =
            remaining_bytes.split_at_checked(len).ok_or(RecordError::Short)?;
        self.remaining_bytes = remaining_bytes;
        Ok(bytes)
    }

    fn read_key(&mut self) -> Result<Key, RecordError> {
        let bytes = self.read_bytes(KEY_BYTES_MAX, RecordError::Key)?;
        let text = std::str::from_utf8(bytes).map_err(|_| RecordError::Key)?;
        Key::new(text).map_err(|_| RecordError::Key)
    }

    /// Copies the value, so that it does not keep the whole file in memory.
    fn read_value(&mut self) -> Result<Bytes, RecordError> {
        self.read_bytes(VALUE_BYTES_MAX, RecordError::Value).map(Bytes::copy_from_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version() -> Version {
        Version {
            key: Key::new("/a/b").unwrap(),
            value: Bytes::from_static(b"value"),
            mod_rev: Revision::new(7),
            create_rev: Revision::new(3),
            expires_at_ms: Some(12),
        }
    }

    /// One record of every kind with its encoding.
    fn every_kind() -> (Vec<FileRecord>, Vec<u8>) {
        let version = version();
        let (revision, key) = (version.mod_rev, version.key.clone());
        let prev = Some(Arc::new(version.clone()));
        let change = KeyChange { revision, new_version: None, old_version: prev };
        let mut bytes = Vec::new();
        encode_put(&mut bytes, &version);
        encode_delete(&mut bytes, revision, &key);
        encode_additional_put(&mut bytes, &key, b"beside");
        encode_additional_delete(&mut bytes, &key);
        bytes.push(MARK);
        append_bytes(&mut bytes, key.as_bytes());
        encode_compaction_floor(&mut bytes, revision);
        encode_version(&mut bytes, &version);
        encode_change(&mut bytes, &change);
        encode_snapshot_end(&mut bytes, 9);
        let put = FileRecord::Put {
            revision,
            key: key.clone(),
            value: version.value.clone(),
            expires_at_ms: version.expires_at_ms,
        };
        let records = vec![
            put,
            FileRecord::Delete { revision, key: key.clone() },
            FileRecord::AdditionalPut { key: key.clone(), value: Bytes::from_static(b"beside") },
            FileRecord::AdditionalDelete { key: key.clone() },
            FileRecord::AdditionalPut { key, value: Bytes::new() },
            FileRecord::Compact { floor: revision },
            FileRecord::Version(version),
            FileRecord::KeyChange(change),
            FileRecord::End { n_versions: 9 },
        ];
        (records, bytes)
    }

    fn read(bytes: &[u8]) -> Result<Vec<FileRecord>, RecordError> {
        let mut reader = RecordReader::new(bytes);
        let mut records = Vec::new();
        while let Some(record) = reader.next()? {
            records.push(record);
        }
        Ok(records)
    }

    #[test]
    fn what_is_written_is_read() {
        let (records, bytes) = every_kind();
        assert_eq!(read(&bytes), Ok(records));
    }

    #[test]
    fn cut_records_are_errors_unless_cut_between_two() {
        let (records, bytes) = every_kind();
        let whole = (0..bytes.len()).filter(|len| read(&bytes[..*len]).is_ok()).count();
        assert_eq!(whole, records.len());
    }

    #[test]
    fn malformed_records_are_refused() {
        assert_eq!(read(&[99]), Err(RecordError::Tag(99)));
        let mut bytes = vec![DELETE, 1, 0, 0, 0, 0, 0, 0, 0];
        append_bytes(&mut bytes, b"no-slash");
        assert_eq!(read(&bytes), Err(RecordError::Key));
        bytes.truncate(9);
        append_bytes(&mut bytes, b"/\xff");
        assert_eq!(read(&bytes), Err(RecordError::Key));
        bytes.truncate(9);
        bytes.extend((KEY_BYTES_MAX as u32 + 1).to_le_bytes());
        assert_eq!(read(&bytes), Err(RecordError::Key));
    }
}
