//! The log file that the writer appends to.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use store::Revision;

use crate::frame::{self, FRAME_HEADER_BYTES, FileHeader, FileKind, HEADER_BYTES};
use crate::store_files;

/// An open log file with its durable and acknowledged lengths.
#[derive(Debug)]
pub(crate) struct LogFile {
    file: File,
    checksum_salt: u64,
    log_number: u64,
    base_revision: Revision,
    /// Length of the file; the next frame starts here.
    file_len: u64,
    /// Length that is known to be on disk.
    durable_len: u64,
    /// Length that was acknowledged. In sync mode `interval` it may exceed the durable length.
    acknowledged_len: u64,
}

/// The bytes of a batch: space for the frame header, then records.
#[derive(Debug)]
pub(crate) struct FrameBuffer(Vec<u8>);

impl FrameBuffer {
    pub(crate) fn new() -> Self {
        Self(vec![0; FRAME_HEADER_BYTES])
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.len() <= FRAME_HEADER_BYTES
    }

    pub(crate) fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// The buffer to append records to.
    pub(crate) fn records_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }

    /// Clears the buffer, and frees memory after an unusually large batch.
    pub(crate) fn clear(&mut self) {
        const KEPT_BYTES_MAX: usize = 1024 * 1024;
        self.0.truncate(FRAME_HEADER_BYTES);
        self.0.shrink_to(KEPT_BYTES_MAX);
    }
}

impl LogFile {
    /// Creates a log file. `base` is the revision before its first record.
    pub(crate) fn create_log_file(
        directory: &Path,
        sequence: u64,
        base: Revision,
        defers_sync: bool,
    ) -> io::Result<Self> {
        let header = FileHeader::new(FileKind::Log, base, defers_sync);
        let path = store_files::log_path(directory, sequence);
        let file = store_files::create_atomically(&path, &mut |file| {
            file.write_all(&header.encode_header())
        })?;
        let end = HEADER_BYTES as u64;
        Ok(Self {
            file,
            checksum_salt: header.checksum_salt,
            log_number: sequence,
            base_revision: base,
            file_len: end,
            durable_len: end,
            acknowledged_len: end,
        })
    }

    pub(crate) fn log_number(&self) -> u64 {
        self.log_number
    }

    pub(crate) fn base_revision(&self) -> Revision {
        self.base_revision
    }

    pub(crate) fn file_len(&self) -> u64 {
        self.file_len
    }

    pub(crate) fn is_synced(&self) -> bool {
        self.durable_len == self.file_len
    }

    /// Marks everything appended so far as acknowledged.
    pub(crate) fn mark_acknowledged(&mut self) {
        self.acknowledged_len = self.file_len;
    }

    /// Appends a frame, not yet durable. After an error nothing more may be appended before
    /// [`Self::repair_after_error`].
    pub(crate) fn append_frame(&mut self, frame: &mut FrameBuffer) -> io::Result<()> {
        frame::write_frame_header(
            &mut frame.0,
            self.checksum_salt,
            self.file_len,
            self.durable_len,
        );
        if let Err(error) = self.file.write_all(&frame.0) {
            // Repair and recovery would also cut off a partial frame; this frees its space at once.
            self.file.set_len(self.file_len).ok();
            return Err(error);
        }
        self.file_len += frame.0.len() as u64;
        Ok(())
    }

    /// After an error, truncates the file durably after the last acknowledged frame.
    ///
    /// A failed sync may have dropped writes although the bytes can still be read and the next sync succeeds. So
    /// this checks frames that were acknowledged before they were durable, and writes them again.
    pub(crate) fn repair_after_error(&mut self) -> io::Result<()> {
        let unsynced = usize::try_from(self.acknowledged_len.saturating_sub(self.durable_len));
        let mut bytes = vec![0; unsynced.map_err(io::Error::other)?];
        self.file.read_exact_at(&mut bytes, self.durable_len)?;
        if !frame::are_valid_frames(&bytes, self.checksum_salt, self.durable_len) {
            return Err(io::Error::other("acknowledged frames cannot be read back"));
        }
        self.file.write_all_at(&bytes, self.durable_len)?;
        self.file.set_len(self.acknowledged_len)?;
        self.file.seek(SeekFrom::Start(self.acknowledged_len))?;
        self.file.sync_all()?;
        self.file_len = self.acknowledged_len;
        self.durable_len = self.file_len;
        Ok(())
    }

    /// Makes all frames durable. After an error it is unknown which frames are durable.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        self.durable_len = self.file_len;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn append(log: &mut LogFile, text: &[u8]) {
        let mut frame = FrameBuffer::new();
        frame.records_mut().extend(text);
        log.append_frame(&mut frame).unwrap();
    }

    #[test]
    fn a_repair_keeps_what_was_acknowledged_and_cuts_the_rest() {
        for is_synced in [true, false] {
            let directory = tempfile::tempdir().unwrap();
            let mut log =
                LogFile::create_log_file(directory.path(), 1, Revision::FIRST, !is_synced).unwrap();
            append(&mut log, b"one");
            if is_synced {
                log.sync().unwrap();
            }
            log.mark_acknowledged();
            let end = log.file_len();
            append(&mut log, b"two, which nobody was told of");
            log.file.write_all(b"half a frame").unwrap();
            log.repair_after_error().unwrap();
            let path = store_files::log_path(directory.path(), 1);
            assert_eq!((log.file_len(), fs::metadata(&path).unwrap().len()), (end, end));
            assert!(log.is_synced());
            append(&mut log, b"three");
            let bytes = fs::read(&path).unwrap();
            let (salt, start) = (log.checksum_salt, HEADER_BYTES as u64);
            assert!(frame::are_valid_frames(&bytes[HEADER_BYTES..], salt, start));
            assert!(bytes.ends_with(b"three"));
        }
    }

    /// An acknowledged frame that is not durable can no longer be read. Further writes would hide that.
    #[test]
    fn a_repair_does_not_cover_up_a_loss() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = LogFile::create_log_file(directory.path(), 1, Revision::FIRST, true).unwrap();
        append(&mut log, b"one");
        log.mark_acknowledged();
        log.file.write_all_at(b"x", HEADER_BYTES as u64 + 5).unwrap();
        assert!(log.repair_after_error().is_err());
    }
}
