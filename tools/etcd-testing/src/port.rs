//! Finds free ports for members and for other servers of tests.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

/// Distinct ports that are free at the moment. They are below the range that the system assigns to outgoing
/// connections, which come and go while a member starts.
#[must_use]
pub fn free_ports<const N: usize>() -> [u16; N] {
    static N_TAKEN: AtomicU32 = AtomicU32::new(0);
    const FIRST: u32 = 10_000;
    const N_PORTS: u32 = 22_000;
    [(); N].map(|()| {
        loop {
            // Test processes that run at the same time start at different ports.
            let n = (std::process::id() % N_PORTS) * 97 + N_TAKEN.fetch_add(1, Ordering::Relaxed);
            let port = u16::try_from(FIRST + n % N_PORTS).unwrap();
            if TcpListener::bind(("127.0.0.1", port)).is_ok() {
                return port;
            }
        }
    })
}
