//! Reads and writes snapshots: all versions of one state in one file.

use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use store::Revision;

use crate::frame::{self, FRAME_HEADER_BYTES, FileHeader, FileKind, HEADER_BYTES};
use crate::open_error::OpenError;
use crate::record::{FileRecord, RecordReader, encode_snapshot_end, encode_version};
use crate::store_files;
use crate::store_state::StoreState;
use crate::version_tree::VersionTree;

/// Size at which a frame of a snapshot is written.
const FRAME_BYTES: usize = 1024 * 1024;

/// Writes the state at the floor and returns the size of the file. Polls `is_cancelled` between frames and
/// fails if it is set.
pub(crate) fn write(
    directory: &Path,
    state: &StoreState,
    is_cancelled: &dyn Fn() -> bool,
) -> io::Result<u64> {
    let header = FileHeader::new(FileKind::Snapshot, state.compaction_floor, false);
    let mut offset = HEADER_BYTES as u64;
    let path = store_files::snapshot_path(directory, state.compaction_floor);
    store_files::create_atomically(&path, &mut |file| {
        file.write_all(&header.encode_header())?;
        let mut n_versions = 0;
        let mut frame = vec![0; FRAME_HEADER_BYTES];
        let mut flush = |frame: &mut Vec<u8>| {
            if is_cancelled() {
                return Err(io::Error::from(io::ErrorKind::Interrupted));
            }
            // Nothing is durable before the rename, so no frame claims more than the header.
            frame::write_frame_header(frame, header.checksum_salt, offset, HEADER_BYTES as u64);
            offset += frame.len() as u64;
            file.write_all(frame)?;
            frame.truncate(FRAME_HEADER_BYTES);
            Ok(())
        };
        state.visit_versions_at_floor(&mut |version| {
            n_versions += 1;
            encode_version(&mut frame, version);
            if frame.len() >= FRAME_BYTES { flush(&mut frame) } else { Ok(()) }
        })?;
        encode_snapshot_end(&mut frame, n_versions);
        flush(&mut frame)
    })?;
    Ok(offset)
}

/// Reads the snapshot of a revision frame by frame, so that opening a store needs no more memory than
/// running it. Returns its versions and its size.
pub(crate) fn read(directory: &Path, revision: Revision) -> Result<(VersionTree, u64), OpenError> {
    let path = store_files::snapshot_path(directory, revision);
    let failed = |source| store_files::open_io_error("read", &path, source);
    let file = store_files::open(&path).map_err(failed)?;
    let file_bytes = file.metadata().map_err(failed)?.len();
    let mut file = BufReader::with_capacity(FRAME_BYTES, file);
    let damaged = |offset: u64, reason: &str| OpenError::Damaged {
        file: path.clone(),
        offset,
        reason: reason.to_owned(),
    };
    let mut head = Vec::with_capacity(HEADER_BYTES);
    Read::by_ref(&mut file).take(HEADER_BYTES as u64).read_to_end(&mut head).map_err(failed)?;
    let header = FileHeader::decode_header(&head, FileKind::Snapshot)
        .ok()
        .filter(|header| header.base_revision == revision)
        .ok_or_else(|| damaged(0, "the header is not that of this snapshot"))?;
    let mut tree = VersionTree::new();
    let mut offset = HEADER_BYTES as u64;
    loop {
        let left = file_bytes.saturating_sub(offset);
        let found = frame::read_next_frame(&mut file, header.checksum_salt, offset, left)
            .map_err(failed)?;
        // A snapshot has its name only when it is whole, so it has no torn tail.
        let payload =
            found.ok_or_else(|| damaged(offset, "the checksum is wrong or the file is cut"))?;
        let mut records = RecordReader::new(&payload);
        while let Some(record) = records.next().map_err(|e| damaged(offset, &e.to_string()))? {
            match record {
                FileRecord::Version(version) => {
                    tree.insert(Arc::new(version));
                }
                FileRecord::End { n_versions } if n_versions == tree.len() as u64 => {
                    return Ok((tree, file_bytes));
                }
                FileRecord::End { .. } => return Err(damaged(offset, "versions are missing")),
                FileRecord::Put { .. }
                | FileRecord::Delete { .. }
                | FileRecord::AdditionalPut { .. }
                | FileRecord::AdditionalDelete { .. }
                | FileRecord::Compact { .. }
                | FileRecord::KeyChange(_) => return Err(damaged(offset, "a record of a log")),
            }
        }
        offset += (FRAME_HEADER_BYTES + payload.len()) as u64;
    }
}
