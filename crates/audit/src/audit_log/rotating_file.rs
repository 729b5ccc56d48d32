//! A log file that is renamed to a backup when it is full; old backups are removed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::LogRotationOptions;

/// Only the owner of the file may read the audit log.
const FILE_MODE: u32 = 0o600;

/// Upper bound on the names that are tried for a backup. Each is a millisecond later.
const NAMES_MAX: i64 = 1000;

/// The format of the time in the name of a backup.
const NAME_FORMAT: &str = "%Y-%m-%dT%H-%M-%S%.3f";

#[derive(Debug)]
pub(super) struct RotatingFile {
    path: PathBuf,
    rotation_options: LogRotationOptions,
    file: File,
    file_bytes: u64,
    /// Whether the file ends in the middle of a line.
    ends_mid_line: bool,
}

impl RotatingFile {
    pub(super) fn open(path: &Path, rotation: LogRotationOptions) -> io::Result<Self> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let file = open_for_append(path)?;
        let n_bytes = file.metadata()?.len();
        let ends_mid_line = n_bytes > 0 && read_last_byte(path)? != Some(b'\n');
        Ok(Self {
            path: path.to_owned(),
            rotation_options: rotation,
            file,
            file_bytes: n_bytes,
            ends_mid_line,
        })
    }

    /// Writes a line. If the line would make the file too long, the file is rotated first. If the rotation
    /// fails, the line is appended to the old file, because no line may be lost.
    pub(super) fn write(&mut self, line: &[u8], now: Timestamp) -> io::Result<()> {
        let is_full = self
            .rotation_options
            .file_bytes_max
            .is_some_and(|max| self.file_bytes > 0 && self.file_bytes + line.len() as u64 > max);
        if is_full {
            let _ = self.rotate(now);
        }
        if self.ends_mid_line {
            self.append(b"\n")?;
        }
        self.append(line)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.file.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.file_bytes += count as u64;
                    rest = rest.get(count..).unwrap_or_default();
                    self.ends_mid_line = !rest.is_empty();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn rotate(&mut self, now: Timestamp) -> io::Result<()> {
        let backup = self.choose_backup_path(now)?;
        fs::rename(&self.path, &backup)?;
        match open_for_append(&self.path) {
            Ok(file) => self.file = file,
            Err(error) => {
                // If no new file can be opened, the old file gets its name back.
                let _ = fs::rename(&backup, &self.path);
                return Err(error);
            }
        }
        self.file_bytes = 0;
        self.ends_mid_line = false;
        self.remove_old_backups(now)
    }

    /// Chooses an unused file name with the time.
    fn choose_backup_path(&self, now: Timestamp) -> io::Result<PathBuf> {
        let (stem, extension) = split_extension(&self.path);
        (0..NAMES_MAX)
            .filter_map(|millis| now.checked_add(SignedDuration::from_millis(millis)).ok())
            .map(|moment| {
                let moment = moment.strftime(NAME_FORMAT);
                self.path.with_file_name(format!("{stem}-{moment}{extension}"))
            })
            .find(|path| !path.exists())
            .ok_or_else(|| ErrorKind::AlreadyExists.into())
    }

    /// Removes backups that are too old or too many. The next rotation tries again to remove a file that
    /// cannot be removed now.
    fn remove_old_backups(&self, now: Timestamp) -> io::Result<()> {
        let (stem, extension) = split_extension(&self.path);
        let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let mut backups = Vec::new();
        for entry in fs::read_dir(parent.unwrap_or(Path::new(".")))? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let moment = name
                .strip_prefix(&format!("{stem}-"))
                .and_then(|rest| rest.strip_suffix(&extension))
                .and_then(|moment| DateTime::strptime(NAME_FORMAT, moment).ok())
                .and_then(|moment| TimeZone::UTC.to_timestamp(moment).ok());
            if let Some(moment) = moment {
                backups.push((moment, path));
            }
        }
        backups.sort();
        for (idx, (moment, path)) in backups.iter().rev().enumerate() {
            let age = now.duration_since(*moment).unsigned_abs();
            let is_old =
                self.rotation_options.backup_age_max.is_some_and(|max| *moment < now && age > max);
            let is_surplus = self.rotation_options.backups_max.is_some_and(|max| idx >= max);
            if is_old || is_surplus {
                let _ = fs::remove_file(path);
            }
        }
        Ok(())
    }
}

fn open_for_append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(FILE_MODE).open(path)
}

fn read_last_byte(path: &Path) -> io::Result<Option<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::End(-1))?;
    let mut byte = [0];
    Ok((file.read(&mut byte)? == 1).then_some(byte[0]))
}

/// Splits the name of a file into the stem and the extension with its dot.
fn split_extension(path: &Path) -> (String, String) {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let extension = path.extension().map(|extension| format!(".{}", extension.to_string_lossy()));
    (stem, extension.unwrap_or_default())
}
