//! The lives of a server: what it is allowed, and how it ends.

use super::audit_log::Expected;
use super::writer::Trouble;
use crate::random::Random;
use crate::server::{Allowance, Place};

/// How a life ends, and what else happens in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Round {
    /// The server is killed.
    Kill,
    /// The server gets SIGTERM and answers the requests in progress.
    Stop,
    /// No file can become long; then the server is killed.
    FullDisk,
    /// etcd is killed and starts again; then the server is killed.
    KillEtcd,
    /// The server has little memory; then it is killed.
    LittleMemory,
}

/// Files can become so long on a full disk, and up to twice that. The files of each life begin empty.
const FILE_BLOCKS: u64 = 256;
/// For a server with little memory. The stacks of its threads take a third and are hardly touched.
const MEMORY_KIB: u64 = 128 * 1024;
/// Additional bytes of each object, so that the store is full before the audit log.
const PADDING_BYTES: usize = 16 * 1024;

impl Round {
    pub(super) fn nth(n: usize, place: &Place) -> Self {
        match (n % 7, place) {
            (2, _) => Self::Stop,
            (4, Place::Embedded) => Self::FullDisk,
            (4, Place::Etcd(_)) => Self::KillEtcd,
            (6, _) => Self::LittleMemory,
            _ => Self::Kill,
        }
    }

    pub(super) fn allowance(self, random: &mut Random) -> Allowance {
        let mut allowance = Allowance::default();
        match self {
            Self::FullDisk => {
                allowance.file_blocks_max = Some(FILE_BLOCKS + random.below(FILE_BLOCKS));
            }
            Self::LittleMemory => allowance.memory_kib_max = Some(MEMORY_KIB),
            Self::Kill | Self::Stop | Self::KillEtcd => {}
        }
        allowance
    }

    pub(super) fn trouble(self) -> Trouble {
        match self {
            Self::Kill | Self::LittleMemory => Trouble::Unexpected,
            Self::Stop | Self::FullDisk | Self::KillEtcd => Trouble::Expected,
        }
    }

    /// Half of the full disks are full of objects, the others of audit events.
    pub(super) fn padding(self, random: &mut Random) -> String {
        match self {
            Self::FullDisk if random.below(2) == 0 => "x".repeat(PADDING_BYTES),
            _ => String::new(),
        }
    }

    pub(super) fn expected(self) -> Expected {
        match self {
            Self::Stop => Expected::Stopped,
            Self::FullDisk => Expected::FullDisk,
            Self::Kill | Self::KillEtcd | Self::LittleMemory => Expected::Killed,
        }
    }
}
