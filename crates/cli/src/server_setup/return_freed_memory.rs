//! Returns freed memory to the system.
//!
//! mimalloc keeps freed pages for a second, and returns them along with later allocations. Requests with large bodies free
//! hundreds of megabytes in a second. And a server that has nothing to do after a load makes no allocations, so it would keep
//! the memory of the load.

use std::io;
use std::time::Duration;

/// Interval at which the thread reads the resident memory.
const INTERVAL: Duration = Duration::from_millis(50);

/// The thread returns memory if the resident memory has grown by this much since the last return.
const GROWTH_BYTES_MIN: u64 = 8 << 20;

/// The thread also returns memory after this many intervals without growth, because memory that was in use
/// before may be free now.
const INTERVALS_MAX: u32 = 40;

/// More bytes than any address space has.
const IMPOSSIBLE_BYTES: usize = usize::MAX >> 8;

/// Starts the thread that returns memory. It runs until the process ends and does not block worker threads.
///
/// # Errors
/// The system starts no thread.
pub(crate) fn start() -> io::Result<()> {
    std::thread::Builder::new().name("memory-return".to_owned()).spawn(run).map(drop)
}

fn run() {
    let mut bytes_kept = resident_memory_bytes().unwrap_or(0);
    let mut n_intervals = 0;
    loop {
        std::thread::sleep(INTERVAL);
        let Some(bytes) = resident_memory_bytes() else { return };
        n_intervals += 1;
        if bytes < bytes_kept + GROWTH_BYTES_MIN && n_intervals < INTERVALS_MAX {
            bytes_kept = bytes_kept.min(bytes);
            continue;
        }
        return_freed_memory();
        bytes_kept = resident_memory_bytes().unwrap_or(bytes);
        n_intervals = 0;
    }
}

/// Returns the pages that all threads have freed. The allocator has no safe function for it, but does it before it
/// reports that an allocation is impossible.
fn return_freed_memory() {
    let impossible = Vec::<u8>::new().try_reserve_exact(IMPOSSIBLE_BYTES);
    debug_assert!(impossible.is_err());
}

/// The resident memory of this process; `None` on a system that does not report it.
fn resident_memory_bytes() -> Option<u64> {
    /// The size of a page of memory. Where pages are larger, memory is returned less often.
    const PAGE_BYTES: u64 = 4 << 10;
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = pages.split(' ').nth(1)?.parse().ok()?;
    Some(pages * PAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A12: the memory of a load comes back although nothing is allocated afterwards.
    #[test]
    fn a12_freed_memory_returns_to_the_system() {
        const N_BLOCKS: usize = 1_000;
        const BLOCK_BYTES: usize = 200 << 10;
        let allocated: Vec<Vec<u8>> = (0..N_BLOCKS).map(|_| vec![1; BLOCK_BYTES]).collect();
        let most = resident_memory_bytes().unwrap();
        // Another thread frees it, as with connections that move from worker to worker.
        std::thread::spawn(move || drop(allocated)).join().unwrap();
        return_freed_memory();
        let rest = resident_memory_bytes().unwrap();
        let returned = most.saturating_sub(rest);
        assert!(returned > (N_BLOCKS * BLOCK_BYTES / 2) as u64, "{most} bytes, then {rest}");
    }
}
