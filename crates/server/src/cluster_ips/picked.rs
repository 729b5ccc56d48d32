//! Addresses that requests of this server are about to take.

use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

/// The addresses that were chosen for services and are not stored yet. They are a hint that spares
/// concurrent requests a second admission; the store decides who gets an address.
#[derive(Debug, Clone, Default)]
pub(crate) struct PickedAddresses(Arc<Mutex<HashSet<Ipv4Addr>>>);

/// An address that others leave alone until this is dropped.
pub(crate) struct Picked {
    all: PickedAddresses,
    address: Ipv4Addr,
}

impl PickedAddresses {
    /// Picks an address, unless another request has.
    pub(super) fn pick(&self, address: Ipv4Addr) -> Option<Picked> {
        let mut picked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        picked.insert(address).then(|| Picked { all: self.clone(), address })
    }
}

impl Drop for Picked {
    fn drop(&mut self) {
        let mut picked = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        picked.remove(&self.address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_picked_once_at_a_time() {
        let all = PickedAddresses::default();
        let address = Ipv4Addr::new(10, 0, 0, 2);
        let picked = all.pick(address).unwrap();
        assert!(all.pick(address).is_none());
        assert!(all.pick(Ipv4Addr::new(10, 0, 0, 3)).is_some());
        drop(picked);
        assert!(all.pick(address).is_some());
    }
}
