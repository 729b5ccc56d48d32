//! The limit of open files of this process, which bounds the number of connections.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit of open files of this process; `None` means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescriptorLimit {
    /// The limit that the process started with.
    pub initial_open_files_max: Option<u64>,
    /// The limit that is in force now.
    pub current_open_files_max: Option<u64>,
}

/// Raises the soft limit of open files to the hard limit. Shells and service managers set a low soft limit for
/// programs that use `select`, which this one does not. If the system refuses, the old limit stays in force, and
/// the caller sees that in the result.
pub fn raise_descriptor_limit() -> DescriptorLimit {
    let Rlimit { current: found, maximum } = getrlimit(Resource::Nofile);
    if found != maximum {
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).ok();
    }
    DescriptorLimit {
        initial_open_files_max: found,
        current_open_files_max: getrlimit(Resource::Nofile).current,
    }
}
