//! Snapshots: all versions of one state in one file.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use store::Revision;

use crate::error::OpenError;
use crate::files;
use crate::frame::{self, FRAME_HEADER_BYTES, Found, HEADER_BYTES, Header, Kind};
use crate::record::{Reader, Record, encode_end, encode_version};
use crate::state::State;
use crate::tree::Tree;

/// A frame of a snapshot is written when it has so many bytes.
const FRAME_BYTES: usize = 1024 * 1024;

/// Writes the state at the floor and returns the size of the file. `is_cancelled` is asked now and
/// then, and ends the work with an error.
pub(crate) fn write(
    directory: &Path,
    state: &State,
    is_cancelled: &dyn Fn() -> bool,
) -> io::Result<u64> {
    let header = Header::new(Kind::Snapshot, state.floor, false);
    let mut offset = HEADER_BYTES as u64;
    let path = files::snapshot(directory, state.floor);
    files::create_whole(&path, &mut |file| {
        file.write_all(&header.encode())?;
        let mut n_versions = 0;
        let mut frame = vec![0; FRAME_HEADER_BYTES];
        let mut flush = |frame: &mut Vec<u8>| {
            if is_cancelled() {
                return Err(io::Error::from(io::ErrorKind::Interrupted));
            }
            // Nothing is durable before the file has its name, so no frame claims to know better.
            frame::seal(frame, header.salt, offset, HEADER_BYTES as u64);
            offset += frame.len() as u64;
            file.write_all(frame)?;
            frame.truncate(FRAME_HEADER_BYTES);
            Ok(())
        };
        state.visit_floor(&mut |version| {
            n_versions += 1;
            encode_version(&mut frame, version);
            if frame.len() >= FRAME_BYTES { flush(&mut frame) } else { Ok(()) }
        })?;
        encode_end(&mut frame, n_versions);
        flush(&mut frame)
    })?;
    Ok(offset)
}

/// Reads the snapshot of a revision and returns its versions and its size.
pub(crate) fn read(directory: &Path, revision: Revision) -> Result<(Tree, u64), OpenError> {
    let path = files::snapshot(directory, revision);
    let file = fs::read(&path).map_err(|source| files::io_error("read", &path, source))?;
    let damaged = |offset: usize, reason: &str| OpenError::Damaged {
        file: path.clone(),
        offset: offset as u64,
        reason: reason.to_owned(),
    };
    let header = Header::decode(&file, Kind::Snapshot)
        .ok()
        .filter(|header| header.base == revision)
        .ok_or_else(|| damaged(0, "the header is not that of this snapshot"))?;
    let mut tree = Tree::new();
    let mut offset = HEADER_BYTES;
    loop {
        let (payload, next) = match frame::read(&file, header.salt, offset) {
            Found::Frame { payload, next } => (payload, next),
            // A snapshot has its name only when it is whole, so it has no torn tail.
            Found::End | Found::Torn | Found::Damaged => {
                return Err(damaged(offset, "the checksum is wrong or the file is cut"));
            }
        };
        let mut records = Reader::new(payload);
        while let Some(record) = records.next().map_err(|e| damaged(offset, &e.to_string()))? {
            match record {
                Record::Version(version) => {
                    tree.insert(Arc::new(version));
                }
                Record::End { n_versions } if n_versions == tree.len() as u64 => {
                    return Ok((tree, file.len() as u64));
                }
                Record::End { .. } => return Err(damaged(offset, "versions are missing")),
                Record::Put { .. }
                | Record::Delete { .. }
                | Record::PutBeside { .. }
                | Record::DeleteBeside { .. }
                | Record::Compact { .. }
                | Record::Step(_) => return Err(damaged(offset, "a record of a log")),
            }
        }
        offset = next;
    }
}
