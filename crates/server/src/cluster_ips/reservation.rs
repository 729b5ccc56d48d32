//! The keys that reserve addresses, and whose they are.

use std::net::Ipv4Addr;

use api_object::{Status, Tree};
use bytes::Bytes;
use serde_json::{Value, json};
use store::{At, Entry, Expect, Item, Key, ListRequest, Prefix, ReadError, Revision, Store};

use super::address_of;
use crate::rest::Call;
use crate::server_state::ServerState;

/// Where reservations are stored, below the prefix of the store.
const PATH: &str = "ranges/serviceips";

/// A service by what its reservation says of it.
pub(super) struct Holder {
    /// Namespace and name. Neither has a slash, so no two services read alike.
    service: String,
    uid: String,
}

/// A reservation to be written.
pub(super) struct Reservation {
    pub(super) key: Key,
    pub(super) value: Bytes,
    pub(super) expect: Expect,
}

impl Holder {
    pub(super) fn of(service: &Tree) -> Self {
        let (namespace, name) = (api_object::namespace(service), api_object::name(service));
        Self { service: format!("{namespace}/{name}"), uid: api_object::uid(service).to_owned() }
    }

    pub(super) fn reservation(&self) -> Bytes {
        json!({"service": self.service, "uid": self.uid}).to_string().into()
    }

    /// Whether it is the service under which servers are found.
    pub(super) fn is_own_service(&self) -> bool {
        self.service == "default/kubernetes"
    }

    /// Whether a stored reservation is that of this service. Earlier versions stored no uid.
    pub(super) fn holds(&self, reservation: &Entry) -> bool {
        let stored: Value = serde_json::from_slice(&reservation.value).unwrap_or_default();
        self.is_named_in(reservation)
            && stored.get("uid").is_none_or(|uid| uid == self.uid.as_str())
    }

    /// Whether it is that of a service with this name, perhaps of an earlier one.
    pub(super) fn is_named_in(&self, reservation: &Entry) -> bool {
        holder_name(reservation).is_some_and(|service| service == self.service)
    }
}

/// The namespace and the name of the service that a reservation is for, with a slash in between.
pub(super) fn holder_name(reservation: &Entry) -> Option<String> {
    let stored: Value = serde_json::from_slice(&reservation.value).ok()?;
    stored.get("service")?.as_str().map(str::to_owned)
}

/// Whether a key reserves an address.
pub(crate) fn is_reservation(prefix: &str, key: &Key) -> bool {
    let path = key.strip_prefix(prefix).and_then(|path| path.strip_prefix('/'));
    path.and_then(|path| path.strip_prefix(PATH)).is_some_and(|name| name.starts_with('/'))
}

/// The address that is reserved.
pub(super) fn parse_address(reservation: &Item) -> Option<Ipv4Addr> {
    reservation.key.rsplit('/').next()?.parse().ok()
}

impl<S: Store> ServerState<S> {
    pub(super) fn address_key(&self, address: Ipv4Addr) -> Option<Key> {
        Key::new(&format!("{}/{PATH}/{address}", self.prefix)).ok()
    }

    /// The reservation that a stored service holds, if the object is one and does. A reservation of another
    /// service is not its to free, whatever it says of itself.
    pub(crate) async fn held_reservation(
        &self,
        stored: &Tree,
    ) -> Result<Option<(Key, Revision)>, ReadError> {
        let member = |name: &str| api_object::string_member(stored, name);
        if (member("apiVersion"), member("kind")) != ("v1", "Service") {
            return Ok(None);
        }
        let key = address_of(stored).and_then(|address| self.address_key(address));
        let Some(key) = key else { return Ok(None) };
        let entry = self.store.get(&key, At::Newest).await?.entry;
        let entry = entry.filter(|entry| Holder::of(stored).holds(entry));
        Ok(entry.map(|entry| (key, entry.mod_rev)))
    }

    /// All reservations.
    pub(super) async fn reservations(&self, at: At) -> Result<Vec<Item>, ReadError> {
        let Ok(prefix) = Prefix::new(&format!("{}/{PATH}/", self.prefix)) else {
            return Ok(Vec::new());
        };
        let request = ListRequest { at, ..ListRequest::default() };
        self.store.list(&prefix, request).await.map(|page| page.items)
    }
}

impl<S: Store> Call<'_, S> {
    pub(super) async fn held_reservation(
        &self,
        stored: &Tree,
    ) -> Result<Option<(Key, Revision)>, Status> {
        let held = self.server.held_reservation(stored).await;
        held.map_err(|error| self.read_failed("update", &error))
    }

    pub(super) async fn reservation(&self, address: Ipv4Addr) -> Result<Option<Entry>, Status> {
        let Some(key) = self.server.address_key(address) else { return Ok(None) };
        let got = self.server.store.get(&key, At::Newest).await;
        got.map(|got| got.entry).map_err(|error| self.read_failed("create", &error))
    }

    pub(super) fn reserve(
        &self,
        address: Ipv4Addr,
        holder: &Holder,
        expect: Expect,
    ) -> Result<Reservation, Status> {
        let key = self.server.address_key(address);
        let key = key.ok_or_else(|| Status::internal("an address can not be reserved"))?;
        Ok(Reservation { key, value: holder.reservation(), expect })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_are_told_from_other_keys() {
        for (key, want) in [
            ("/registry/ranges/serviceips/10.0.0.1", true),
            ("/registry/ranges/serviceips", false),
            ("/registry/ranges/serviceipsx/10.0.0.1", false),
            ("/registry/x/ranges/serviceips/10.0.0.1", false),
            ("/registryx/ranges/serviceips/10.0.0.1", false),
            ("/other/ranges/serviceips/10.0.0.1", false),
        ] {
            assert_eq!(is_reservation("/registry", &Key::new(key).unwrap()), want, "{key}");
        }
    }
}
