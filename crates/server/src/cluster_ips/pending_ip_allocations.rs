//! Cluster IPs that requests of this server are about to allocate.

use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

/// The cluster IPs that requests of this server have chosen and not stored yet. Other requests avoid them, so that
/// they need not repeat admission after a conflict. Correctness does not depend on it: the store decides which
/// service gets an address.
#[derive(Debug, Clone, Default)]
pub(crate) struct PendingIpAllocations(Arc<Mutex<HashSet<Ipv4Addr>>>);

/// An address that other requests do not choose until this value is dropped.
pub(crate) struct PendingIpAllocation {
    pending_ip_allocations: PendingIpAllocations,
    ip: Ipv4Addr,
}

impl PendingIpAllocations {
    /// Reserves an address in memory; `None` if another request has reserved it.
    pub(super) fn try_reserve_ip(&self, ip: Ipv4Addr) -> Option<PendingIpAllocation> {
        let mut ips = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ips.insert(ip).then(|| PendingIpAllocation { pending_ip_allocations: self.clone(), ip })
    }
}

impl Drop for PendingIpAllocation {
    fn drop(&mut self) {
        let mut ips = self.pending_ip_allocations.0.lock().unwrap_or_else(PoisonError::into_inner);
        ips.remove(&self.ip);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_at_a_time_has_an_address() {
        let pending_allocations = PendingIpAllocations::default();
        let ip = Ipv4Addr::new(10, 0, 0, 2);
        let pending = pending_allocations.try_reserve_ip(ip).unwrap();
        assert!(pending_allocations.try_reserve_ip(ip).is_none());
        assert!(pending_allocations.try_reserve_ip(Ipv4Addr::new(10, 0, 0, 3)).is_some());
        drop(pending);
        assert!(pending_allocations.try_reserve_ip(ip).is_some());
    }
}
