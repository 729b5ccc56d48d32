//! The log file that is being written.

use std::fs::File;
use std::io::{self, Write};
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
        Ok(Self { file, salt: header.salt, sequence, base, end, durable: end })
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

    /// Appends a frame, not yet durable. After an error nothing more may be appended.
    pub(crate) fn append(&mut self, frame: &mut Frame) -> io::Result<()> {
        frame::seal(&mut frame.0, self.salt, self.end, self.durable);
        if let Err(error) = self.file.write_all(&frame.0) {
            // A half frame would be cut off by recovery too; this only spares it the work.
            self.file.set_len(self.end).ok();
            return Err(error);
        }
        self.end += frame.0.len() as u64;
        Ok(())
    }

    /// Makes all frames durable. After an error nobody knows which are.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        self.durable = self.end;
        Ok(())
    }
}
