//! Why the log cannot be written, and what callers are told.

use std::io;

use store::{Unavailable, WriteError};

/// The failure because of which the store only reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadOnlyCause {
    pub(crate) unavailable_error: Unavailable,
    is_disk_full: bool,
}

impl ReadOnlyCause {
    pub(crate) fn new(error: &io::Error) -> Self {
        let reason = format!("it cannot write its log and only reads: {error}");
        // A limit on the size of files or on the space of a user has the same effect as a full disk.
        let is_disk_full = matches!(
            error.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
        );
        Self { unavailable_error: Unavailable { reason: reason.into() }, is_disk_full }
    }

    /// The error of a write that the failure prevents.
    pub(crate) fn to_write_error(&self) -> WriteError {
        match self.is_disk_full {
            true => WriteError::DiskFull { reason: self.unavailable_error.reason.clone() },
            false => self.unavailable_error.clone().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_from_one_that_fails() {
        use io::ErrorKind;
        for (kind, is_full) in [
            (ErrorKind::StorageFull, true),
            (ErrorKind::QuotaExceeded, true),
            (ErrorKind::FileTooLarge, true),
            (ErrorKind::PermissionDenied, false),
            (ErrorKind::Other, false),
        ] {
            let error = ReadOnlyCause::new(&kind.into()).to_write_error();
            assert_eq!(matches!(error, WriteError::DiskFull { .. }), is_full, "{kind}");
            assert_eq!(matches!(error, WriteError::Unavailable(_)), !is_full, "{kind}");
            assert!(error.to_string().contains("only reads"), "{error}");
        }
    }
}
