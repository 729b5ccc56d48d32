//! Addresses of services. Each is reserved by a key of its own in the store, so that no two services
//! ever have the same one, whichever server makes them. The reservation says whose it is, and only that
//! service frees it.
//!
//! A service and its reservation are written in one transaction: an address is taken with the write that
//! stores it in the service, and free with the write that removes it. A request that fails, is aborted or
//! is killed leaves nothing behind. [`Host::repair_addresses`](crate::server_state::Host::repair_addresses) brings
//! data in line that earlier versions left otherwise.

mod picked;
mod range;
mod repair;
mod reservation;

use std::collections::HashSet;
use std::net::Ipv4Addr;

use api_object::{Status, Tree};
use field_errors::{BadValue, FieldErrors, FieldPath};
use serde_json::{Value, json};
use store::{Expect, Key, Revision, Store, Transaction};

use self::picked::Picked;
use self::reservation::{Holder, Reservation, parse_address};
use crate::rest::RequestContext;

pub(crate) use self::picked::PickedAddresses;
pub use self::range::{ServiceRange, ServiceRangeError};
pub(crate) use self::reservation::is_reservation;

/// How many addresses are drawn and looked up one by one before all reservations are read.
const DRAWS: usize = 8;

/// The addresses that a write takes and gives up. Nothing of it happens before the write.
#[must_use]
#[derive(Default)]
pub(crate) struct AddressChange {
    taken: Option<Reservation>,
    given_up: Option<(Key, Revision)>,
    /// Keeps the address from other requests of this server until the write is done.
    _picked: Option<Picked>,
}

impl AddressChange {
    /// Frees a reservation.
    pub(crate) fn free(given_up: Option<(Key, Revision)>) -> Self {
        Self { given_up, ..Self::default() }
    }

    /// Has it happen with a write.
    pub(crate) fn attach(&self, mut transaction: Transaction) -> Transaction {
        if let Some((key, revision)) = &self.given_up {
            transaction = transaction.delete_beside(key.clone(), *revision);
        }
        if let Some(Reservation { key, value, expect }) = &self.taken {
            transaction = transaction.put_beside(key.clone(), value.clone(), Some(*expect));
        }
        transaction
    }
}

impl<S: Store> RequestContext<'_, S> {
    /// Gives a service the address that it asks for, or a free one, if it needs another one than it has.
    /// The change must be written together with the service. A dry run reserves nothing: it shows an
    /// address that the service might get, and refuses what no service can have.
    ///
    /// # Errors
    /// 422 if the address is not in the range or somebody else's, 500 if there is none left.
    pub(crate) async fn take_address(
        &self,
        new: &mut Tree,
        old: Option<&Tree>,
        is_dry_run: bool,
    ) -> Result<AddressChange, Status> {
        if !self.is_service() {
            return Ok(AddressChange::default());
        }
        let mut change = AddressChange::default();
        let wanted = wanted(new);
        if let (Wanted::Nothing, Some(old)) = (&wanted, old)
            && !is_dry_run
        {
            change = AddressChange::free(self.held_reservation(old).await?);
        }
        let Some(range) = self.server.options.service_range else { return Ok(change) };
        self.check_single_stack(new, old)?;
        let held = old.and_then(address_of);
        match wanted {
            Wanted::Nothing => {}
            Wanted::Any if old.is_some() && api_object::is_terminating(new) => {}
            Wanted::Any => {
                let address = match is_dry_run {
                    true => range.get(u32::from_be_bytes(self.server.random())),
                    false => self.pick(range, &Holder::of(new), &mut change).await?,
                };
                let spec = api_object::object_mut(new, "spec");
                spec.insert("clusterIP".to_owned(), address.to_string().into());
                spec.insert("clusterIPs".to_owned(), json!([address.to_string()]));
            }
            Wanted::This(text) => {
                let address = text.parse().ok();
                if address.is_some() && address == held {
                    return Ok(change);
                }
                let Some(address) = address.filter(|own| range.contains(*own)) else {
                    let detail = format!("the provided IP is not in the valid range {range}");
                    return Err(self.bad_address(new, &text, &detail));
                };
                if is_dry_run {
                    return Ok(change);
                }
                if self.reservation(address).await?.is_some() {
                    let detail = "provided IP is already allocated";
                    return Err(self.bad_address(new, &text, detail));
                }
                if let Some(old) = old {
                    change.given_up = self.held_reservation(old).await?;
                }
                change.taken = Some(self.reserve(address, &Holder::of(new), Expect::Absent)?);
            }
        }
        Ok(change)
    }

    /// The range has addresses of one family, so a service has one address. A second one that an earlier
    /// version has stored stays.
    fn check_single_stack(&self, new: &Tree, old: Option<&Tree>) -> Result<(), Status> {
        let second = |tree: &Tree| tree.get("spec")?.get("clusterIPs")?.get(1).cloned();
        match second(new) {
            Some(address) if old.and_then(second).as_ref() != Some(&address) => {
                let mut errors = FieldErrors::new();
                let root = FieldPath::root("spec");
                let path = root.child("clusterIPs");
                let text = address.as_str().unwrap_or_default();
                errors.push(path.index(1).invalid(text, "not configured on this cluster"));
                Err(Status::invalid(&self.group_kind(), api_object::name(new), &errors))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Chooses a free address.
    async fn pick(
        &self,
        range: ServiceRange,
        holder: &Holder,
        change: &mut AddressChange,
    ) -> Result<Ipv4Addr, Status> {
        if holder.is_own_service() {
            let first = range.first();
            let expect = match self.reservation(first).await? {
                None => Expect::Absent,
                // It was reserved for an earlier service of this name.
                Some(entry) if holder.is_named_in(&entry) => Expect::At(entry.mod_rev),
                Some(_) => return Err(range_is_full()),
            };
            change.taken = Some(self.reserve(first, holder, expect)?);
            return Ok(first);
        }
        let address = self.draw(range, change).await?;
        change.taken = Some(self.reserve(address, holder, Expect::Absent)?);
        Ok(address)
    }

    /// Draws a few addresses; if none of them is free, looks for one in the list of all reservations. An
    /// address that another request of this server is about to take is the last choice.
    async fn draw(
        &self,
        range: ServiceRange,
        change: &mut AddressChange,
    ) -> Result<Ipv4Addr, Status> {
        for _ in 0..DRAWS {
            let address = range.get(u32::from_be_bytes(self.server.random()));
            if address == range.first() {
                continue;
            }
            let Some(picked) = self.server.picked_addresses.pick(address) else { continue };
            if self.reservation(address).await?.is_none() {
                change._picked = Some(picked);
                return Ok(address);
            }
        }
        let reserved = self.server.reservations(store::At::Newest).await;
        let reserved = reserved.map_err(|error| self.read_failed("create", &error))?;
        let reserved: HashSet<Ipv4Addr> = reserved.iter().filter_map(parse_address).collect();
        let start = u32::from_be_bytes(self.server.random());
        let mut last_choice = None;
        for step in 0..range.len() {
            let address = range.get(start.wrapping_add(step));
            if address == range.first() || reserved.contains(&address) {
                continue;
            }
            if let Some(picked) = self.server.picked_addresses.pick(address) {
                change._picked = Some(picked);
                return Ok(address);
            }
            last_choice = last_choice.or(Some(address));
        }
        last_choice.ok_or_else(range_is_full)
    }

    pub(crate) fn is_service(&self) -> bool {
        self.resource.group.is_empty() && self.resource.kind == "Service"
    }

    fn bad_address(&self, service: &Tree, address: &str, why: &str) -> Status {
        let spec = FieldPath::root("spec");
        let value = BadValue::Json(json!([address]).to_string());
        let detail = format!("failed to allocate IP {address}: {why}");
        let mut errors = FieldErrors::new();
        errors.push(spec.child("clusterIPs").invalid(value, &detail));
        Status::invalid(&self.resource.group_kind(), api_object::name(service), &errors)
    }
}

fn range_is_full() -> Status {
    Status::internal("failed to allocate a serviceIP: range is full")
}

/// Which address a service is to have.
enum Wanted {
    /// None: it is a name elsewhere, or has no address by its own wish.
    Nothing,
    /// Whichever is free.
    Any,
    /// The one it names.
    This(String),
}

fn wanted(service: &Tree) -> Wanted {
    let spec = |member: &str| {
        let spec = service.get("spec").and_then(|spec| spec.get(member));
        spec.and_then(Value::as_str).unwrap_or_default()
    };
    match (spec("type"), spec("clusterIP")) {
        ("ExternalName", _) | (_, "None") => Wanted::Nothing,
        (_, "") => Wanted::Any,
        (_, address) => Wanted::This(address.to_owned()),
    }
}

/// The address that a stored service has.
fn address_of(service: &Tree) -> Option<Ipv4Addr> {
    match wanted(service) {
        Wanted::This(address) => address.parse().ok(),
        Wanted::Nothing | Wanted::Any => None,
    }
}
