//! Repair of reservations that do not match the services.
//!
//! A service and its reservation are written together, so the repair finds something to do only in data
//! that earlier versions wrote or that another program changed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use store::{At, Delete, ExpectedKeyState, Item, ListRequest, Prefix, Put, ReadError, WriteError};

use super::cluster_ip_reservation::{ClusterIpOwner, reserved_ip, service_of_ip_reservation};
use super::stored_cluster_ip;
use crate::server_state::ServerState;

/// A service that has a cluster IP.
struct ServiceWithIp {
    service_item: Item,
    ip_reservation_owner: ClusterIpOwner,
}

/// The services at one revision of the store.
#[derive(Default)]
struct ServicesByIp {
    services_by_ip: BTreeMap<Ipv4Addr, Vec<ServiceWithIp>>,
    /// The `namespace/name` of each service that cannot be decoded: its cluster IP is unknown.
    undecodable_services: BTreeSet<String>,
}

/// How many reservations a repair has changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct IpReservationRepairSummary {
    /// Deleted reservations that no service owned.
    pub(crate) n_freed_ip_reservations: usize,
    /// Number of reservations created for service addresses that had none.
    pub(crate) n_new_ip_reservations: usize,
}

impl ServerState {
    /// Makes the reservations match the services, and logs services that share an address.
    ///
    /// 1. Read services and reservations at one revision of the store.
    /// 2. Delete each reservation that no service of that revision owns, if it is still the same version. A
    ///    service cannot have allocated the address since: it would have had to write the reservation.
    /// 3. Reserve each address that a service has without a reservation, if the service is still the same
    ///    version.
    ///
    /// # Errors
    /// The store cannot be read. A write that fails is left to the next repair.
    pub(crate) async fn repair_cluster_ips(&self) -> Result<IpReservationRepairSummary, ReadError> {
        let mut summary = IpReservationRepairSummary::default();
        if self.api_settings.service_ip_range.is_none() {
            return Ok(summary);
        }
        let Some(prefix) = self.services_key_prefix() else { return Ok(summary) };
        let page = self.store.list(&prefix, ListRequest::default()).await?;
        let services = ServicesByIp::from_service_items(page.items, &prefix);
        let mut reserved = BTreeSet::new();
        for item in self.list_ip_reservations(At::Exactly(page.revision)).await? {
            let Some(ip) = reserved_ip(&item) else { continue };
            match services.ip_reservation_repair_action(ip, &item) {
                IpReservationRepairAction::Keep => drop(reserved.insert(ip)),
                IpReservationRepairAction::Free => {
                    let expect = ExpectedKeyState::At(item.entry.mod_rev);
                    let delete = Delete {
                        key: item.key,
                        expected_state: expect,
                        key_group_revision_action: None,
                    };
                    let freed = self.store.delete(delete).await.map(drop);
                    summary.n_freed_ip_reservations += self.one_if_written_or_log(ip, freed);
                }
                IpReservationRepairAction::ReserveFor(service) => {
                    reserved.insert(ip);
                    let expect = ExpectedKeyState::At(item.entry.mod_rev);
                    summary.n_new_ip_reservations +=
                        self.reserve_ip_for_service(ip, service, expect).await;
                }
            }
        }
        for (ip, owners) in &services.services_by_ip {
            if let [first, _, ..] = owners.as_slice() {
                let fields: [component_base::LogField<'_>; 2] =
                    [("address", ip), ("service", &first.service_item.key)];
                self.log.warn("several services have one address", &fields);
            }
            if let Some(service) = owners.first().filter(|_| !reserved.contains(ip)) {
                summary.n_new_ip_reservations +=
                    self.reserve_ip_for_service(*ip, service, ExpectedKeyState::Absent).await;
            }
        }
        Ok(summary)
    }

    async fn reserve_ip_for_service(
        &self,
        ip: Ipv4Addr,
        service: &ServiceWithIp,
        expect: ExpectedKeyState,
    ) -> usize {
        let Some(key) = self.ip_reservation_key(ip) else { return 0 };
        let value = service.ip_reservation_owner.encode_ip_reservation();
        let put: store::Transaction =
            Put { key, value, expected_state: expect, ttl: None, key_group_revision_action: None }
                .into();
        let expect_service = ExpectedKeyState::At(service.service_item.entry.mod_rev);
        let written = self
            .store
            .write(put.add_condition(service.service_item.key.clone(), expect_service))
            .await
            .map(drop);
        self.one_if_written_or_log(ip, written)
    }

    /// Returns 1 for a successful write. A key that changed in the meantime is left to the next repair.
    fn one_if_written_or_log(&self, ip: Ipv4Addr, written: Result<(), WriteError>) -> usize {
        match written {
            Ok(()) => 1,
            Err(WriteError::Conflict { .. } | WriteError::ConditionFailed { .. }) => 0,
            Err(error) => {
                let fields: [component_base::LogField<'_>; 2] = [("address", &ip), ("why", &error)];
                self.log.warn("the reservation of an address cannot be repaired", &fields);
                0
            }
        }
    }

    fn services_key_prefix(&self) -> Option<Prefix> {
        let cluster = self.snapshot_cache.snapshot();
        let services = cluster.resource_registry.resource("", "v1", "services")?;
        Prefix::new(&api_resources::list_key_prefix(&self.store_key_prefix, services, None)?).ok()
    }
}

/// The decision about one reservation.
enum IpReservationRepairAction<'a> {
    Keep,
    Free,
    ReserveFor(&'a ServiceWithIp),
}

impl ServicesByIp {
    fn from_service_items(items: Vec<Item>, prefix: &Prefix) -> Self {
        let mut services = Self::default();
        for item in items {
            let Ok(tree) = codec::decode_stored_object(&item.entry.value) else {
                let name = item.key.strip_prefix(prefix.as_str()).unwrap_or_default();
                services.undecodable_services.insert(name.to_owned());
                continue;
            };
            if let Some(ip) = stored_cluster_ip(&tree) {
                let owner = ClusterIpOwner::owner_of_service(&tree);
                services
                    .services_by_ip
                    .entry(ip)
                    .or_default()
                    .push(ServiceWithIp { service_item: item, ip_reservation_owner: owner });
            }
        }
        services
    }

    fn ip_reservation_repair_action(
        &self,
        ip: Ipv4Addr,
        reservation: &Item,
    ) -> IpReservationRepairAction<'_> {
        let services = self.services_by_ip.get(&ip).map_or(&[][..], Vec::as_slice);
        if services
            .iter()
            .any(|service| service.ip_reservation_owner.owns_ip_reservation(&reservation.entry))
        {
            return IpReservationRepairAction::Keep;
        }
        let is_unknown = service_of_ip_reservation(&reservation.entry)
            .is_some_and(|service| self.undecodable_services.contains(&service));
        match services.first() {
            _ if is_unknown => IpReservationRepairAction::Keep,
            Some(service) => IpReservationRepairAction::ReserveFor(service),
            None => IpReservationRepairAction::Free,
        }
    }
}
