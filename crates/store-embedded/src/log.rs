//! The log file that is being written.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use store::Revision;

use crate::files;
use crate::frame::{self, FRAME_HEADER_BYTES, HEADER_BYTES, Header, Kind};

/// An open log file.
#[derive(Debug)]
pub(crate) struct Log {
    file: File,
    salt: u64,
    sequence: u64,
    base: Revision,
    /// Its length: where the next frame goes.
    end: u64,
    /// How much of it is on disk.
    durable: u64,
    /// How much of it readers and callers know of. Without a sync for every write that may be more.
    acknowledged: u64,
}

/// The bytes of a batch: room for the header of a frame, then records.
#[derive(Debug)]
pub(crate) struct Frame(Vec<u8>);

impl Frame {
    pub(crate) fn new() -> Self {
        Self(vec![0; FRAME_HEADER_BYTES])
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.len() <= FRAME_HEADER_BYTES
    }

    pub(crate) fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// Where to append records.
    pub(crate) fn records(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }

    /// Makes it empty, and gives memory back after an unusually large batch.
    pub(crate) fn clear(&mut self) {
        const KEPT_BYTES_MAX: usize = 1024 * 1024;
        self.0.truncate(FRAME_HEADER_BYTES);
        self.0.shrink_to(KEPT_BYTES_MAX);
    }
}

impl Log {
    /// Begins a new file. `base` is the revision before its first record.
    pub(crate) fn create(
        directory: &Path,
        sequence: u64,
        base: Revision,
        is_lazy: bool,
    ) -> io::Result<Self> {
        let header = Header::new(Kind::Log, base, is_lazy);
        let path = files::log(directory, sequence);
        let file = files::create_whole(&path, &mut |file| file.write_all(&header.encode()))?;
        let end = HEADER_BYTES as u64;
        Ok(Self { file, salt: header.salt, sequence, base, end, durable: end, acknowledged: end })
    }

    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    pub(crate) fn base(&self) -> Revision {
        self.base
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.end
    }

    pub(crate) fn is_synced(&self) -> bool {
        self.durable == self.end
    }

    /// Says that everything appended so far will be shown and acknowledged.
    pub(crate) fn acknowledge(&mut self) {
        self.acknowledged = self.end;
    }

    /// Appends a frame, not yet durable. After an error nothing more may be appended before
    /// [`Self::repair`].
    pub(crate) fn append(&mut self, frame: &mut Frame) -> io::Result<()> {
        frame::seal(&mut frame.0, self.salt, self.end, self.durable);
        if let Err(error) = self.file.write_all(&frame.0) {
            // A half frame would be cut off by repair and recovery too; this frees its space at once.
            self.file.set_len(self.end).ok();
            return Err(error);
        }
        self.end += frame.0.len() as u64;
        Ok(())
    }

    /// After an error, makes the file end where the last acknowledged frame ends, durably.
    ///
    /// A sync that failed may have dropped what was to be written, although the bytes can still be read
    /// and the next sync succeeds. So frames that were acknowledged before they were durable are
    /// checked and written again.
    pub(crate) fn repair(&mut self) -> io::Result<()> {
        let unsynced = usize::try_from(self.acknowledged.saturating_sub(self.durable));
        let mut bytes = vec![0; unsynced.map_err(io::Error::other)?];
        self.file.read_exact_at(&mut bytes, self.durable)?;
        if !frame::are_frames(&bytes, self.salt, self.durable) {
            return Err(io::Error::other("acknowledged frames can not be read back"));
        }
        self.file.write_all_at(&bytes, self.durable)?;
        self.file.set_len(self.acknowledged)?;
        self.file.seek(SeekFrom::Start(self.acknowledged))?;
        self.file.sync_all()?;
        self.end = self.acknowledged;
        self.durable = self.end;
        Ok(())
    }

    /// Makes all frames durable. After an error nobody knows which are.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        self.durable = self.end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn append(log: &mut Log, text: &[u8]) {
        let mut frame = Frame::new();
        frame.records().extend(text);
        log.append(&mut frame).unwrap();
    }

    #[test]
    fn a_repair_keeps_what_was_acknowledged_and_cuts_the_rest() {
        for is_synced in [true, false] {
            let directory = tempfile::tempdir().unwrap();
            let mut log = Log::create(directory.path(), 1, Revision::FIRST, !is_synced).unwrap();
            append(&mut log, b"one");
            if is_synced {
                log.sync().unwrap();
            }
            log.acknowledge();
            let end = log.bytes();
            append(&mut log, b"two, which nobody was told of");
            log.file.write_all(b"half a frame").unwrap();
            log.repair().unwrap();
            let path = files::log(directory.path(), 1);
            assert_eq!((log.bytes(), fs::metadata(&path).unwrap().len()), (end, end));
            assert!(log.is_synced());
            append(&mut log, b"three");
            let bytes = fs::read(&path).unwrap();
            let (salt, start) = (log.salt, HEADER_BYTES as u64);
            assert!(frame::are_frames(&bytes[HEADER_BYTES..], salt, start));
            assert!(bytes.ends_with(b"three"));
        }
    }

    /// Acknowledged and not durable, and now unreadable: writing on would hide it.
    #[test]
    fn a_repair_does_not_cover_up_a_loss() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = Log::create(directory.path(), 1, Revision::FIRST, true).unwrap();
        append(&mut log, b"one");
        log.acknowledge();
        log.file.write_all_at(b"x", HEADER_BYTES as u64 + 5).unwrap();
        assert!(log.repair().is_err());
    }
}
