//! Addresses of services. Each is reserved by a key of its own in the store, so that no two services
//! ever have the same one, whichever server makes them. The reservation says whose it is, and only that
//! service frees it.

mod range;

use std::net::Ipv4Addr;

use bytes::Bytes;
use field::{BadValue, FieldErrors, FieldPath};
use object::{Status, Tree};
use serde_json::{Value, json};
use store::{At, Delete, Entry, Expect, Key, Put, Store, WriteError};

pub use self::range::{ServiceRange, ServiceRangeError};
use crate::rest::{Call, NotWritten};
use crate::store_status;

/// How many addresses are tried before the range counts as full.
const TRIES_MAX: u32 = 65_536;

/// What a write does with addresses, to be settled when the outcome of the write is known.
#[must_use]
pub(crate) struct AddressChange {
    holder: Holder,
    /// Reserved for this write.
    taken: Option<Ipv4Addr>,
    /// Of no more use once the write is done.
    given_up: Option<Ipv4Addr>,
}

/// A service by what its reservation says of it.
struct Holder {
    /// Namespace and name. Neither has a slash, so no two services read alike.
    service: String,
    uid: String,
}

impl Holder {
    fn of(service: &Tree) -> Self {
        let (namespace, name) = (object::namespace(service), object::name(service));
        Self { service: format!("{namespace}/{name}"), uid: object::uid(service).to_owned() }
    }

    fn reservation(&self) -> Bytes {
        json!({"service": self.service, "uid": self.uid}).to_string().into()
    }

    /// Whether a stored reservation is that of this service. Earlier versions stored no uid.
    fn holds(&self, reservation: &Entry) -> bool {
        let stored: Value = serde_json::from_slice(&reservation.value).unwrap_or_default();
        self.is_named_in(reservation)
            && stored.get("uid").is_none_or(|uid| uid == self.uid.as_str())
    }

    /// Whether it is that of a service with this name, perhaps of an earlier one.
    fn is_named_in(&self, reservation: &Entry) -> bool {
        let stored: Value = serde_json::from_slice(&reservation.value).unwrap_or_default();
        stored["service"] == self.service.as_str()
    }
}

impl<S: Store> Call<'_, S> {
    /// Gives a service the address that it asks for, or a free one, if it needs another one than it has.
    /// The change must be settled by [`Self::settle_addresses`]. A dry run reserves nothing: it shows an
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
        let mut change = AddressChange { holder: Holder::of(new), taken: None, given_up: None };
        let Some(range) = self.host.options.service_range.filter(|_| self.is_service()) else {
            return Ok(change);
        };
        self.check_single_stack(new, old)?;
        let held = old.and_then(address_of);
        match wanted(new) {
            Wanted::Nothing => change.given_up = held,
            Wanted::Any if old.is_some() && object::is_terminating(new) => {}
            Wanted::Any => {
                let address = match is_dry_run {
                    true => range.get(u32::from_be_bytes(self.host.random())),
                    false => self.take_any(range, &mut change).await?,
                };
                let spec = object::object_mut(new, "spec");
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
                if !is_dry_run && !self.take(address, &change.holder).await? {
                    let detail = "provided IP is already allocated";
                    return Err(self.bad_address(new, &text, detail));
                }
                (change.taken, change.given_up) = (Some(address), held);
            }
        }
        if is_dry_run {
            (change.taken, change.given_up) = (None, None);
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
                Err(Status::invalid(&self.group_kind(), object::name(new), &errors))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Ends what [`Self::take_address`] began. While it is unknown whether the service was stored, both
    /// addresses stay reserved: that wastes one and harms nobody.
    pub(crate) async fn settle_addresses<T>(
        &self,
        change: AddressChange,
        outcome: &Result<T, NotWritten>,
    ) {
        let unused = match outcome {
            Ok(_) => change.given_up,
            Err(NotWritten::Unknown(_)) => None,
            Err(_) => change.taken,
        };
        if let Some(address) = unused {
            self.release(address, &change.holder).await;
        }
    }

    /// Lets go of the address of a service that is gone.
    pub(crate) async fn release_address_of(&self, service: &Tree) {
        if self.host.options.service_range.is_none() || !self.is_service() {
            return;
        }
        if let Some(address) = address_of(service) {
            self.release(address, &Holder::of(service)).await;
        }
    }

    /// Frees an address, if the service holds it. A reservation of somebody else stays, whatever the
    /// service says of itself; so does one that can not be freed now, which wastes it and harms nobody.
    async fn release(&self, address: Ipv4Addr, holder: &Holder) {
        let Ok(key) = self.address_key(address) else { return };
        let reservation = self.reservation(address).await;
        let Some(entry) = reservation.filter(|entry| holder.holds(entry)) else { return };
        let delete = Delete { key, expect: Expect::At(entry.mod_rev), mark: None };
        if let Err(error) = self.host.store.delete(delete).await {
            let facts: [crate::log::Fact<'_>; 2] = [("address", &address), ("why", &error)];
            self.host.log.warn("the address of a service stays taken", &facts);
        }
    }

    async fn reservation(&self, address: Ipv4Addr) -> Option<Entry> {
        let key = self.address_key(address).ok()?;
        self.host.store.get(&key, At::Newest).await.ok()?.entry
    }

    async fn take_any(
        &self,
        range: ServiceRange,
        change: &mut AddressChange,
    ) -> Result<Ipv4Addr, Status> {
        let AddressChange { holder, taken, .. } = change;
        if holder.service == "default/kubernetes" {
            let first = range.first();
            if self.take(first, holder).await? {
                *taken = Some(first);
                return Ok(first);
            }
            // When the server starts again, the address is reserved for the service that exists.
            let reservation = self.reservation(first).await;
            return match reservation.is_some_and(|entry| holder.is_named_in(&entry)) {
                true => Ok(first),
                false => Err(range_is_full()),
            };
        }
        let start = u32::from_be_bytes(self.host.random());
        for step in 0..range.len().min(TRIES_MAX) {
            let address = range.get(start.wrapping_add(step));
            if address != range.first() && self.take(address, holder).await? {
                *taken = Some(address);
                return Ok(address);
            }
        }
        Err(range_is_full())
    }

    /// Takes an address; `false` if somebody has it.
    async fn take(&self, address: Ipv4Addr, holder: &Holder) -> Result<bool, Status> {
        let (key, value) = (self.address_key(address)?, holder.reservation());
        let put = Put { key, value, expect: Expect::Absent, ttl: None, mark: None };
        match self.host.store.put(put).await {
            Ok(_) => Ok(true),
            Err(WriteError::Conflict { .. }) => Ok(false),
            Err(WriteError::NoSpace { share }) => Err(store_status::no_space(share.as_deref())),
            Err(WriteError::Throttled { share, retry_after }) => {
                Err(store_status::throttled(&share, retry_after))
            }
            Err(error) => {
                self.host.log.error("an address can not be taken", &[("why", &error)]);
                Err(Status::server_timeout(&self.resource.group_resource(), "create"))
            }
        }
    }

    fn address_key(&self, address: Ipv4Addr) -> Result<Key, Status> {
        let text = format!("{}/ranges/serviceips/{address}", self.host.prefix);
        Key::new(&text).map_err(|error| Status::internal(&error.to_string()))
    }

    fn is_service(&self) -> bool {
        self.resource.group.is_empty() && self.resource.kind == "Service"
    }

    fn bad_address(&self, service: &Tree, address: &str, why: &str) -> Status {
        let spec = FieldPath::root("spec");
        let value = BadValue::Json(json!([address]).to_string());
        let detail = format!("failed to allocate IP {address}: {why}");
        let mut errors = FieldErrors::new();
        errors.push(spec.child("clusterIPs").invalid(value, &detail));
        Status::invalid(&self.resource.group_kind(), object::name(service), &errors)
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
