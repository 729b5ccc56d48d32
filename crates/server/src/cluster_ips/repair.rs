//! Bringing reservations in line with services.
//!
//! A service and its reservation are written together, so this finds something to do only in data that
//! earlier versions wrote or that was changed behind the servers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use store::{
    At, Delete, Expect, Item, Key, ListRequest, Prefix, Put, ReadError, Store, WriteError,
};

use super::address_of;
use super::reservation::{Holder, holder_name, parse_address};
use crate::server_state::ServerState;

/// A service that has an address.
struct Held {
    item: Item,
    holder: Holder,
}

/// The services in one state of the store.
#[derive(Default)]
struct Services {
    by_address: BTreeMap<Ipv4Addr, Vec<Held>>,
    /// Namespace and name of those that can not be read: nobody knows which addresses they have.
    unreadable: BTreeSet<String>,
}

/// The changes that a pass has made.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Repaired {
    /// Reservations that no service holds.
    pub(crate) n_freed: usize,
    /// Addresses of services that were not reserved for them.
    pub(crate) n_reserved: usize,
}

impl<S: Store> ServerState<S> {
    /// Frees the addresses that no service has, reserves those that services have without a reservation, and
    /// logs which services share one.
    ///
    /// 1. Services and reservations are read in one state of the store.
    /// 2. A reservation that no service of that state holds is deleted, if it is still that version. A
    ///    service can not have taken the address since: it would have had to write the reservation.
    /// 3. An address that a service has and nobody holds is reserved for it, if the service is still that
    ///    version.
    ///
    /// # Errors
    /// The store can not be read. What could not be written is left to the next pass.
    pub(crate) async fn repair_addresses(&self) -> Result<Repaired, ReadError> {
        let mut repaired = Repaired::default();
        if self.options.service_range.is_none() {
            return Ok(repaired);
        }
        let Some(prefix) = self.services_prefix() else { return Ok(repaired) };
        let page = self.store.list(&prefix, ListRequest::default()).await?;
        let services = Services::read(page.items, &prefix);
        let mut reserved = BTreeSet::new();
        for item in self.reservations(At::Exactly(page.revision)).await? {
            let Some(address) = parse_address(&item) else { continue };
            match services.next_step(address, &item) {
                Step::Keep => drop(reserved.insert(address)),
                Step::Free => {
                    let expect = Expect::At(item.entry.mod_rev);
                    let delete = Delete { key: item.key, expect, shared_revision: None };
                    let freed = self.store.delete(delete).await.map(drop);
                    repaired.n_freed += self.count(address, freed);
                }
                Step::ReserveFor(held) => {
                    reserved.insert(address);
                    let expect = Expect::At(item.entry.mod_rev);
                    repaired.n_reserved += self.reserve_for(address, held, expect).await;
                }
            }
        }
        for (address, holders) in &services.by_address {
            if let [first, _, ..] = holders.as_slice() {
                let facts: [crate::log::Fact<'_>; 2] =
                    [("address", address), ("service", &first.item.key)];
                self.log.warn("several services have one address", &facts);
            }
            if let Some(held) = holders.first().filter(|_| !reserved.contains(address)) {
                repaired.n_reserved += self.reserve_for(*address, held, Expect::Absent).await;
            }
        }
        Ok(repaired)
    }

    async fn reserve_for(&self, address: Ipv4Addr, held: &Held, expect: Expect) -> usize {
        let Some(key) = self.address_key(address) else { return 0 };
        let value = held.holder.reservation();
        let put: store::Transaction =
            Put { key, value, expect, ttl: None, shared_revision: None }.into();
        let service: (Key, Expect) = (held.item.key.clone(), Expect::At(held.item.entry.mod_rev));
        let written = self.store.write(put.require(service.0, service.1)).await.map(drop);
        self.count(address, written)
    }

    /// A key that changed meanwhile is in line by what changed it, or is looked at by the next pass.
    fn count(&self, address: Ipv4Addr, written: Result<(), WriteError>) -> usize {
        match written {
            Ok(()) => 1,
            Err(WriteError::Conflict { .. } | WriteError::ConditionFailed { .. }) => 0,
            Err(error) => {
                let facts: [crate::log::Fact<'_>; 2] = [("address", &address), ("why", &error)];
                self.log.warn("the reservation of an address can not be repaired", &facts);
                0
            }
        }
    }

    fn services_prefix(&self) -> Option<Prefix> {
        let cluster = self.snapshot_cache.snapshot();
        let services = cluster.registry.resource("", "v1", "services")?;
        Prefix::new(&api_resources::prefix(&self.prefix, services, None)?).ok()
    }
}

/// The decision about a reservation.
enum Step<'a> {
    Keep,
    Free,
    ReserveFor(&'a Held),
}

impl Services {
    fn read(items: Vec<Item>, prefix: &Prefix) -> Self {
        let mut services = Self::default();
        for item in items {
            let Ok(tree) = codec::from_stored(&item.entry.value) else {
                let name = item.key.strip_prefix(prefix.as_str()).unwrap_or_default();
                services.unreadable.insert(name.to_owned());
                continue;
            };
            if let Some(address) = address_of(&tree) {
                let holder = Holder::of(&tree);
                services.by_address.entry(address).or_default().push(Held { item, holder });
            }
        }
        services
    }

    fn next_step(&self, address: Ipv4Addr, reservation: &Item) -> Step<'_> {
        let holders = self.by_address.get(&address).map_or(&[][..], Vec::as_slice);
        if holders.iter().any(|held| held.holder.holds(&reservation.entry)) {
            return Step::Keep;
        }
        let is_unknown = holder_name(&reservation.entry)
            .is_some_and(|service| self.unreadable.contains(&service));
        match holders.first() {
            _ if is_unknown => Step::Keep,
            Some(held) => Step::ReserveFor(held),
            None => Step::Free,
        }
    }
}
