//! The file format of logs and snapshots: a header and checksummed frames.
//!
//! A file begins with a header. The store writes and syncs the header under a temporary name before it renames
//! the file, so the header is always complete. Frames follow. A frame of a log is one batch of writes, so a
//! crash can only tear a frame that was not acknowledged.
//!
//! ```text
//! header  kind 7 | version 1 | base revision 8 | salt 8 | flags 4 | checksum 4
//! frame   length 4 | durable 8 | checksum of payload 4 | checksum of the three before 4 | payload
//! ```
//!
//! `durable` is the length of the file that was known to be on disk when the frame was written. It
//! distinguishes a torn tail from damage: if a later valid frame says that an invalid frame was durable, that
//! frame was damaged afterwards. Every checksum covers the salt and the offset of the frame, so that neither
//! bytes of an old file nor a value that looks like a frame passes for one.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};

use store::Revision;

/// The format version that this program writes, and the newest one that it reads. Any change that an earlier version of
/// the program would report as damage or misread needs a new version: header, framing, checksums, record types. The
/// server tests have a fixture of each version. Version 2 added records of several writes in one revision.
pub(crate) const FORMAT_VERSION: u8 = 2;
/// Offset of the format version in the header. The version is an ASCII digit.
const VERSION_AT: usize = 7;

pub(crate) const HEADER_BYTES: usize = 32;
pub(crate) const FRAME_HEADER_BYTES: usize = 20;

/// The kind of a file, encoded in its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    Log,
    Snapshot,
}

impl FileKind {
    fn magic_bytes(self) -> [u8; VERSION_AT] {
        match self {
            Self::Log => *b"PCULLOG",
            Self::Snapshot => *b"PCULSNP",
        }
    }
}

/// The header of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub(crate) kind: FileKind,
    /// The revision before the first record of a log, or the revision of a snapshot.
    pub(crate) base_revision: Revision,
    pub(crate) checksum_salt: u64,
    /// Whether writes were acknowledged before they were durable (sync mode `interval`).
    pub(crate) defers_sync: bool,
}

/// The reason why the header of a file cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderError {
    /// The header is damaged, or belongs to another kind of file.
    Malformed,
    /// A newer version of this program wrote the file.
    Newer { version: u8 },
}

/// The result of [`read_frame`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FrameReadResult<'a> {
    /// The payload of a valid frame, and the offset of the next frame.
    Frame { payload: &'a [u8], next: usize },
    /// The end of the file.
    End,
    /// No valid frame starts here, and no later frame proves that there was one: a torn tail.
    Torn,
    /// A later frame proves that a valid frame was here.
    Damaged,
}

impl FileHeader {
    /// Makes a header with a new random salt.
    pub(crate) fn new(kind: FileKind, base: Revision, defers_sync: bool) -> Self {
        // The hash keys of the standard library are random, so the hash is a random salt.
        Self {
            kind,
            base_revision: base,
            checksum_salt: RandomState::new().hash_one(base.as_u64()),
            defers_sync,
        }
    }

    pub(crate) fn encode_header(&self) -> [u8; HEADER_BYTES] {
        let magic = self.kind.magic_bytes();
        let version = [b'0' + FORMAT_VERSION];
        let base = self.base_revision.as_u64().to_le_bytes();
        let salt = self.checksum_salt.to_le_bytes();
        let flags = u32::from(self.defers_sync).to_le_bytes();
        let fields: [&[u8]; 5] = [&magic, &version, &base, &salt, &flags];
        let checksum = crc32fast::hash(&fields.concat()).to_le_bytes();
        let mut header = [0; HEADER_BYTES];
        let bytes = fields.into_iter().chain([checksum.as_slice()]).flatten();
        header.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        header
    }

    /// Decodes the header of a file of this kind.
    pub(crate) fn decode_header(file: &[u8], kind: FileKind) -> Result<Self, HeaderError> {
        Self::check_format_version(file, kind)?;
        Self::decode_header_if_valid(file, kind).ok_or(HeaderError::Malformed)
    }

    /// Refuses files that a newer version of this program wrote. Only the positions of kind and version are known in
    /// them. If the rest of the header is valid for a known version, the version digit itself is damaged.
    pub(crate) fn check_format_version(file: &[u8], kind: FileKind) -> Result<(), HeaderError> {
        let Some(version) = file.get(VERSION_AT).and_then(|digit| digit.checked_sub(b'0')) else {
            return Ok(());
        };
        if !file.starts_with(&kind.magic_bytes()) || version <= FORMAT_VERSION {
            return Ok(());
        }
        let is_valid_as = |known: u8| {
            let mut ours: Vec<u8> = file.iter().take(HEADER_BYTES).copied().collect();
            if let Some(digit) = ours.get_mut(VERSION_AT) {
                *digit = b'0' + known;
            }
            Self::decode_header_if_valid(&ours, kind).is_some()
        };
        match (1..=FORMAT_VERSION).any(is_valid_as) {
            true => Err(HeaderError::Malformed),
            false => Err(HeaderError::Newer { version }),
        }
    }

    fn decode_header_if_valid(file: &[u8], kind: FileKind) -> Option<Self> {
        let bytes: &[u8; HEADER_BYTES] = file.first_chunk()?;
        let (fields, checksum) = bytes.split_last_chunk::<4>()?;
        if !fields.starts_with(&kind.magic_bytes())
            || !(b'1'..=b'0' + FORMAT_VERSION).contains(fields.get(VERSION_AT)?)
            || crc32fast::hash(fields) != u32::from_le_bytes(*checksum)
        {
            return None;
        }
        let base = Revision::new(u64_at(bytes, 8)?);
        let defers_sync = match u32_at(bytes, 24)? {
            0 => false,
            1 => true,
            _ => return None,
        };
        Some(Self { kind, base_revision: base, checksum_salt: u64_at(bytes, 16)?, defers_sync })
    }
}

/// Fills in the frame header in front of the payload in `frame`.
pub(crate) fn write_frame_header(frame: &mut [u8], salt: u64, offset: u64, durable: u64) {
    let Some((header, payload)) = frame.split_first_chunk_mut::<FRAME_HEADER_BYTES>() else {
        return;
    };
    let len = (payload.len() as u32).to_le_bytes();
    let payload_checksum = salted_checksum(salt, offset, payload).to_le_bytes();
    let fields = [len.as_slice(), &durable.to_le_bytes(), &payload_checksum].concat();
    let fields_checksum = salted_checksum(salt, offset, &fields).to_le_bytes();
    let bytes = fields.iter().chain(&fields_checksum);
    header.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
}

/// Reads the frame at an offset of a file that is in memory.
pub(crate) fn read_frame(file: &[u8], salt: u64, offset: usize) -> FrameReadResult<'_> {
    if offset == file.len() {
        return FrameReadResult::End;
    }
    if let Some((payload, _)) = decode_frame(file, salt, offset) {
        return FrameReadResult::Frame {
            payload,
            next: offset + FRAME_HEADER_BYTES + payload.len(),
        };
    }
    let proves =
        |at| decode_frame(file, salt, at).is_some_and(|(_, durable)| durable > offset as u64);
    if (offset + 1..file.len()).any(proves) {
        FrameReadResult::Damaged
    } else {
        FrameReadResult::Torn
    }
}

/// Reads the next frame of a file without a torn tail, such as a snapshot, without loading the whole file.
/// `bytes_max` is the rest of the file. `None` if there is no valid frame.
pub(crate) fn read_next_frame(
    file: &mut dyn Read,
    salt: u64,
    offset: u64,
    bytes_max: u64,
) -> io::Result<Option<Vec<u8>>> {
    let mut header = [0; FRAME_HEADER_BYTES];
    if bytes_max < FRAME_HEADER_BYTES as u64 {
        return Ok(None);
    }
    file.read_exact(&mut header)?;
    let len = u32_at(&header, 0).unwrap_or(0);
    if header_checksum(salt, offset, &header) != u32_at(&header, 16).unwrap_or(0)
        || u64::from(len) > bytes_max - FRAME_HEADER_BYTES as u64
    {
        return Ok(None);
    }
    let mut payload = vec![0; len as usize];
    file.read_exact(&mut payload)?;
    let is_good = salted_checksum(salt, offset, &payload) == u32_at(&header, 12).unwrap_or(0);
    Ok(is_good.then_some(payload))
}

/// Reports whether bytes at an offset of a file are a sequence of valid frames.
pub(crate) fn are_valid_frames(bytes: &[u8], salt: u64, offset: u64) -> bool {
    let mut at = 0;
    while let Some(mut rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let left = rest.len() as u64;
        match read_next_frame(&mut rest, salt, offset + at as u64, left) {
            Ok(Some(payload)) => at += FRAME_HEADER_BYTES + payload.len(),
            Ok(None) | Err(_) => return false,
        }
    }
    true
}

/// The payload of a valid frame and its `durable` field.
fn decode_frame(file: &[u8], salt: u64, offset: usize) -> Option<(&[u8], u64)> {
    let (header, rest) = file.get(offset..)?.split_first_chunk::<FRAME_HEADER_BYTES>()?;
    let durable = u64_at(header, 4)?;
    // The cheap check comes first, because the search for later frames tries every byte.
    if durable > offset as u64
        || header_checksum(salt, offset as u64, header) != u32_at(header, 16)?
    {
        return None;
    }
    let payload = rest.get(..u32_at(header, 0)? as usize)?;
    (salted_checksum(salt, offset as u64, payload) == u32_at(header, 12)?)
        .then_some((payload, durable))
}

/// The checksum of the fields of a frame header before the checksum itself.
fn header_checksum(salt: u64, offset: u64, header: &[u8; FRAME_HEADER_BYTES]) -> u32 {
    let fields = header.split_last_chunk::<4>().map_or(&[][..], |(fields, _)| fields);
    salted_checksum(salt, offset, fields)
}

fn salted_checksum(salt: u64, offset: u64, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&salt.to_le_bytes());
    hasher.update(&offset.to_le_bytes());
    hasher.update(bytes);
    hasher.finalize()
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SALT: u64 = 0x1234_5678_9abc_def0;

    /// Two frames after 32 bytes of header, the second with this `durable` length.
    fn file(durable: u64) -> (Vec<u8>, usize) {
        let mut file = vec![0; HEADER_BYTES];
        append(&mut file, b"one", HEADER_BYTES as u64);
        let second = file.len();
        append(&mut file, b"two", durable);
        (file, second)
    }

    fn append(file: &mut Vec<u8>, payload: &[u8], durable: u64) {
        let offset = file.len();
        file.extend([0; FRAME_HEADER_BYTES]);
        file.extend(payload);
        write_frame_header(&mut file[offset..], SALT, offset as u64, durable);
    }

    #[test]
    fn headers_are_read_as_written_and_any_flipped_bit_is_found() {
        let header = FileHeader::new(FileKind::Log, Revision::new(7), true);
        let bytes = header.encode_header();
        let malformed = Err(HeaderError::Malformed);
        assert_eq!(FileHeader::decode_header(&bytes, FileKind::Log), Ok(header));
        assert_eq!(FileHeader::decode_header(&bytes, FileKind::Snapshot), malformed);
        assert_eq!(FileHeader::decode_header(&bytes[..31], FileKind::Log), malformed);
        for bit in 0..HEADER_BYTES * 8 {
            let mut bytes = bytes;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(FileHeader::decode_header(&bytes, FileKind::Log), malformed, "bit {bit}");
        }
    }

    #[test]
    fn headers_of_later_programs_are_told_from_damage() {
        for kind in [FileKind::Log, FileKind::Snapshot] {
            let mut bytes = FileHeader::new(kind, Revision::new(7), false).encode_header();
            bytes[VERSION_AT] = b'3';
            // If a later version keeps the header layout, the checksum covers its version.
            let checksum = crc32fast::hash(&bytes[..28]);
            bytes[28..].copy_from_slice(&checksum.to_le_bytes());
            let newer = Err(HeaderError::Newer { version: 3 });
            assert_eq!(FileHeader::decode_header(&bytes, kind), newer);
            // The header of a later version may have another length.
            assert_eq!(FileHeader::decode_header(&bytes[..8], kind), newer);
            let other = if kind == FileKind::Log { FileKind::Snapshot } else { FileKind::Log };
            assert_eq!(FileHeader::decode_header(&bytes, other), Err(HeaderError::Malformed));
        }
    }

    #[test]
    fn headers_of_earlier_programs_are_read() {
        let header = FileHeader::new(FileKind::Log, Revision::new(7), false);
        let mut bytes = header.encode_header();
        bytes[VERSION_AT] = b'1';
        let checksum = crc32fast::hash(&bytes[..28]);
        bytes[28..].copy_from_slice(&checksum.to_le_bytes());
        assert_eq!(FileHeader::decode_header(&bytes, FileKind::Log), Ok(header));
        // A damaged version digit is distinguished from a later version.
        bytes[VERSION_AT] = b'5';
        assert_eq!(FileHeader::decode_header(&bytes, FileKind::Log), Err(HeaderError::Malformed));
    }

    #[test]
    fn frames_are_read_one_after_the_other() {
        let (file, second) = file(0);
        assert_eq!(
            read_frame(&file, SALT, HEADER_BYTES),
            FrameReadResult::Frame { payload: b"one", next: second }
        );
        assert_eq!(
            read_frame(&file, SALT, second),
            FrameReadResult::Frame { payload: b"two", next: file.len() }
        );
        assert_eq!(read_frame(&file, SALT, file.len()), FrameReadResult::End);
        assert_eq!(
            read_frame(&file, SALT + 1, second),
            FrameReadResult::Torn,
            "a frame of another file"
        );
    }

    #[test]
    fn damage_is_told_from_a_torn_tail_by_what_later_frames_knew() {
        for bit in HEADER_BYTES * 8..(HEADER_BYTES + FRAME_HEADER_BYTES + 3) * 8 {
            // The second frame was written after the first was durable, so the first was valid then.
            let (mut synced_revision, second) = file(0);
            append(&mut synced_revision, b"three", second as u64);
            synced_revision[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(
                read_frame(&synced_revision, SALT, HEADER_BYTES),
                FrameReadResult::Damaged,
                "bit {bit}"
            );
            // The first frame was not durable: one crash may have torn both.
            let (mut lazy, _) = file(HEADER_BYTES as u64);
            lazy[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read_frame(&lazy, SALT, HEADER_BYTES), FrameReadResult::Torn, "bit {bit}");
        }
    }

    #[test]
    fn cut_and_zeroed_tails_are_torn() {
        let (file, second) = file(second_starts());
        for len in second + 1..file.len() {
            assert_eq!(read_frame(&file[..len], SALT, second), FrameReadResult::Torn, "{len}");
            let mut zeroed = file.clone();
            zeroed[len..].fill(0xee);
            assert_eq!(read_frame(&zeroed, SALT, second), FrameReadResult::Torn, "{len}");
        }
    }

    fn second_starts() -> u64 {
        (HEADER_BYTES + FRAME_HEADER_BYTES + 3) as u64
    }
}
