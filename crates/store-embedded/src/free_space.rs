//! Measures the free disk space.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The source of the free disk space.
#[derive(Debug, Clone, Default)]
pub enum FreeSpaceSource {
    /// The file system of the directory.
    #[default]
    System,
    /// A fixed number of free bytes, for tests.
    Manual(Arc<AtomicU64>),
}

impl FreeSpaceSource {
    /// The bytes that this process may still write; `None` if the system does not report them.
    pub(crate) fn free_disk_bytes(&self, directory: &Path) -> Option<u64> {
        match self {
            Self::System => {
                let found = rustix::fs::statvfs(directory).ok()?;
                Some(found.f_bavail.saturating_mul(found.f_frsize))
            }
            Self::Manual(bytes) => Some(bytes.load(Ordering::SeqCst)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_knows_the_free_space_of_a_directory() {
        let directory = tempfile::tempdir().unwrap();
        assert!(
            FreeSpaceSource::System
                .free_disk_bytes(directory.path())
                .is_some_and(|bytes| bytes > 0)
        );
        assert_eq!(FreeSpaceSource::System.free_disk_bytes(&directory.path().join("none")), None);
    }
}
