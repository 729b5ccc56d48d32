//! Allocation of cluster IPs to services. A key in the store reserves each address, so that no two services
//! ever have the same one, whichever server creates them. The reservation names its service, and only that
//! service releases it.
//!
//! A service and its reservation are written in one transaction: the write that stores an address in the
//! service also reserves it, and the write that removes the address also releases it. A request that fails
//! or is aborted, and a server that is killed, leave nothing behind.
//! [`ServerState::repair_cluster_ips`](crate::server_state::ServerState::repair_cluster_ips) corrects data
//! of earlier versions.

mod cluster_ip_reservation;
mod ip_reservation_repair;
mod pending_ip_allocations;
mod service_ip_range;

use std::collections::HashSet;
use std::net::Ipv4Addr;

use api_object::{Status, Tree};
use field_errors::{BadValue, FieldErrors, FieldPath};
use serde_json::{Value, json};
use store::{ExpectedKeyState, Key, Revision, Transaction};

use self::cluster_ip_reservation::{ClusterIpOwner, ClusterIpReservation, reserved_ip};
use self::pending_ip_allocations::PendingIpAllocation;
use crate::rest::RequestContext;

pub(crate) use self::cluster_ip_reservation::is_ip_reservation_key;
pub(crate) use self::pending_ip_allocations::PendingIpAllocations;
pub use self::service_ip_range::{ServiceIpRange, ServiceIpRangeError};

/// How many random addresses are looked up one by one before all reservations are read.
const RANDOM_TRIES_MAX: usize = 8;

/// The reservations that a write makes and releases. They change in the transaction of the write.
#[must_use]
#[derive(Default)]
pub(crate) struct ClusterIpChange {
    new_ip_reservation: Option<ClusterIpReservation>,
    ip_reservation_to_release: Option<(Key, Revision)>,
    /// Keeps other requests of this server from choosing the address until the write is done.
    _pending_ip_allocation: Option<PendingIpAllocation>,
}

impl ClusterIpChange {
    /// Returns a change that releases this reservation; the change is empty for `None`.
    pub(crate) fn releasing_ip_reservation(released_reservation: Option<(Key, Revision)>) -> Self {
        Self { ip_reservation_to_release: released_reservation, ..Self::default() }
    }

    /// Adds the change to a transaction.
    pub(crate) fn add_ip_reservations_to_transaction(
        &self,
        mut transaction: Transaction,
    ) -> Transaction {
        if let Some((key, revision)) = &self.ip_reservation_to_release {
            transaction = transaction.add_delete(key.clone(), *revision);
        }
        if let Some(ClusterIpReservation { key, value, expected_revision: expect }) =
            &self.new_ip_reservation
        {
            transaction = transaction.add_put(key.clone(), value.clone(), Some(*expect));
        }
        transaction
    }
}

impl RequestContext<'_> {
    /// Allocates a cluster IP to a service that needs another one than it has: the requested one, or a free one.
    /// The change must be written together with the service. A dry run reserves nothing: it shows an address that
    /// the service might get, and refuses an address that no service can have.
    ///
    /// # Errors
    /// 422 if the address is outside of the range or allocated to another service, 500 if none is free.
    pub(crate) async fn allocate_cluster_ip(
        &self,
        new: &mut Tree,
        old: Option<&Tree>,
        is_dry_run: bool,
    ) -> Result<ClusterIpChange, Status> {
        if !self.is_service_resource() {
            return Ok(ClusterIpChange::default());
        }
        let mut change = ClusterIpChange::default();
        let requested = requested_cluster_ip(new);
        if let (RequestedClusterIp::None, Some(old)) = (&requested, old)
            && !is_dry_run
        {
            change = ClusterIpChange::releasing_ip_reservation(
                self.find_owned_ip_reservation(old).await?,
            );
        }
        let Some(range) = self.server.api_settings.service_ip_range else { return Ok(change) };
        self.check_service_is_single_stack(new, old)?;
        let current_ip = old.and_then(stored_cluster_ip);
        match requested {
            RequestedClusterIp::None => {}
            RequestedClusterIp::Any if old.is_some() && api_object::is_terminating(new) => {}
            RequestedClusterIp::Any => {
                let ip = match is_dry_run {
                    true => range.nth_cluster_ip(u32::from_be_bytes(self.server.random_bytes())),
                    false => self.choose_cluster_ip(range, new, &mut change).await?,
                };
                let spec = api_object::object_member_mut(new, "spec");
                spec.insert("clusterIP".to_owned(), ip.to_string().into());
                spec.insert("clusterIPs".to_owned(), json!([ip.to_string()]));
            }
            RequestedClusterIp::Exactly(text) => {
                let ip = text.parse().ok();
                if ip.is_some() && ip == current_ip {
                    return Ok(change);
                }
                let Some(ip) = ip.filter(|ip| range.contains(*ip)) else {
                    let detail = format!("the provided IP is not in the valid range {range}");
                    return Err(self.invalid_ip_status(new, &text, &detail));
                };
                if is_dry_run {
                    return Ok(change);
                }
                if self.read_ip_reservation(ip).await?.is_some() {
                    let detail = "provided IP is already allocated";
                    return Err(self.invalid_ip_status(new, &text, detail));
                }
                if let Some(old) = old {
                    change.ip_reservation_to_release = self.find_owned_ip_reservation(old).await?;
                }
                let owner = ClusterIpOwner::owner_of_service(new);
                change.new_ip_reservation =
                    Some(self.new_ip_reservation(ip, &owner, ExpectedKeyState::Absent)?);
            }
        }
        Ok(change)
    }

    /// The range has addresses of one family, so a service has one address. A second address that an
    /// earlier version has stored stays.
    fn check_service_is_single_stack(&self, new: &Tree, old: Option<&Tree>) -> Result<(), Status> {
        let second_ip = |tree: &Tree| tree.get("spec")?.get("clusterIPs")?.get(1).cloned();
        match second_ip(new) {
            Some(ip) if old.and_then(second_ip).as_ref() != Some(&ip) => {
                let mut errors = FieldErrors::new();
                let root = FieldPath::root("spec");
                let path = root.child("clusterIPs");
                let text = ip.as_str().unwrap_or_default();
                errors.push(path.index(1).invalid(text, "not configured on this cluster"));
                Err(Status::invalid_object(&self.group_kind(), api_object::name(new), &errors))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Chooses a free address and records its reservation in the change.
    async fn choose_cluster_ip(
        &self,
        range: ServiceIpRange,
        service: &Tree,
        change: &mut ClusterIpChange,
    ) -> Result<Ipv4Addr, Status> {
        let owner = ClusterIpOwner::owner_of_service(service);
        let (ip, expect) = if owner.is_kubernetes_service() {
            let first = range.first_cluster_ip();
            let expect = match self.read_ip_reservation(first).await? {
                None => ExpectedKeyState::Absent,
                // It was reserved for an earlier service of this name.
                Some(entry) if owner.matches_reserved_name(&entry) => {
                    ExpectedKeyState::At(entry.mod_rev)
                }
                Some(_) => return Err(ip_range_full_status()),
            };
            (first, expect)
        } else {
            (self.choose_random_cluster_ip(range, change).await?, ExpectedKeyState::Absent)
        };
        change.new_ip_reservation = Some(self.new_ip_reservation(ip, &owner, expect)?);
        Ok(ip)
    }

    /// Tries a few random addresses; if none of them is free, looks for one in the list of all
    /// reservations. An address that another request of this server is about to allocate is the last
    /// choice.
    async fn choose_random_cluster_ip(
        &self,
        range: ServiceIpRange,
        change: &mut ClusterIpChange,
    ) -> Result<Ipv4Addr, Status> {
        let pending_allocations = &self.server.pending_ip_allocations;
        for _ in 0..RANDOM_TRIES_MAX {
            let ip = range.nth_cluster_ip(u32::from_be_bytes(self.server.random_bytes()));
            if ip == range.first_cluster_ip() {
                continue;
            }
            let Some(pending) = pending_allocations.try_reserve_ip(ip) else { continue };
            if self.read_ip_reservation(ip).await?.is_none() {
                change._pending_ip_allocation = Some(pending);
                return Ok(ip);
            }
        }
        let reservations = self.server.list_ip_reservations(store::At::Newest).await;
        let reservations =
            reservations.map_err(|error| self.store_read_error_status("create", &error))?;
        let reserved: HashSet<Ipv4Addr> = reservations.iter().filter_map(reserved_ip).collect();
        let start = u32::from_be_bytes(self.server.random_bytes());
        let mut last_choice = None;
        for step in 0..range.len() {
            let ip = range.nth_cluster_ip(start.wrapping_add(step));
            if ip == range.first_cluster_ip() || reserved.contains(&ip) {
                continue;
            }
            if let Some(pending) = pending_allocations.try_reserve_ip(ip) {
                change._pending_ip_allocation = Some(pending);
                return Ok(ip);
            }
            last_choice = last_choice.or(Some(ip));
        }
        last_choice.ok_or_else(ip_range_full_status)
    }

    pub(crate) fn is_service_resource(&self) -> bool {
        self.resource.group.is_empty() && self.resource.kind == "Service"
    }

    fn invalid_ip_status(&self, service: &Tree, ip: &str, why: &str) -> Status {
        let spec = FieldPath::root("spec");
        let value = BadValue::Json(json!([ip]).to_string());
        let detail = format!("failed to allocate IP {ip}: {why}");
        let mut errors = FieldErrors::new();
        errors.push(spec.child("clusterIPs").invalid(value, &detail));
        Status::invalid_object(&self.resource.group_kind(), api_object::name(service), &errors)
    }
}

fn ip_range_full_status() -> Status {
    Status::internal_error("failed to allocate a serviceIP: range is full")
}

/// The cluster IP that a service asks for.
enum RequestedClusterIp {
    /// The service is of type ExternalName or headless.
    None,
    Any,
    Exactly(String),
}

fn requested_cluster_ip(service: &Tree) -> RequestedClusterIp {
    let spec = |member: &str| {
        let spec = service.get("spec").and_then(|spec| spec.get(member));
        spec.and_then(Value::as_str).unwrap_or_default()
    };
    match (spec("type"), spec("clusterIP")) {
        ("ExternalName", _) | (_, "None") => RequestedClusterIp::None,
        (_, "") => RequestedClusterIp::Any,
        (_, ip) => RequestedClusterIp::Exactly(ip.to_owned()),
    }
}

/// The cluster IP of a stored service.
fn stored_cluster_ip(service: &Tree) -> Option<Ipv4Addr> {
    match requested_cluster_ip(service) {
        RequestedClusterIp::Exactly(ip) => ip.parse().ok(),
        RequestedClusterIp::None | RequestedClusterIp::Any => None,
    }
}
