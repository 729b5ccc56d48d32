//! The keys that reserve cluster IPs, and the services that own them.

use std::net::Ipv4Addr;

use api_object::{Status, Tree};
use bytes::Bytes;
use serde_json::{Value, json};
use store::{At, Entry, ExpectedKeyState, Item, Key, ListRequest, Prefix, ReadError, Revision};

use super::stored_cluster_ip;
use crate::rest::RequestContext;
use crate::server_state::ServerState;

/// The path of all reservations, below the prefix of the store.
const RESERVATIONS_PATH: &str = "ranges/serviceips";

/// The service that a reservation is for.
pub(super) struct ClusterIpOwner {
    /// `namespace/name`. Neither part contains a slash, so the text names one service only.
    service_name: String,
    uid: String,
}

/// A reservation to be written.
pub(super) struct ClusterIpReservation {
    pub(super) key: Key,
    pub(super) value: Bytes,
    pub(super) expected_revision: ExpectedKeyState,
}

impl ClusterIpOwner {
    pub(super) fn owner_of_service(service: &Tree) -> Self {
        let (namespace, name) = (api_object::namespace(service), api_object::name(service));
        Self {
            service_name: format!("{namespace}/{name}"),
            uid: api_object::uid(service).to_owned(),
        }
    }

    /// The stored form of a reservation for this service.
    pub(super) fn encode_ip_reservation(&self) -> Bytes {
        json!({"service": self.service_name, "uid": self.uid}).to_string().into()
    }

    /// Whether this is the service `default/kubernetes`, through which pods reach the API server.
    pub(super) fn is_kubernetes_service(&self) -> bool {
        self.service_name == "default/kubernetes"
    }

    /// Whether a stored reservation is for this service. Earlier versions stored no uid.
    pub(super) fn owns_ip_reservation(&self, reservation: &Entry) -> bool {
        let stored: Value = serde_json::from_slice(&reservation.value).unwrap_or_default();
        self.matches_reserved_name(reservation)
            && stored.get("uid").is_none_or(|uid| uid == self.uid.as_str())
    }

    /// Whether a stored reservation is for a service of this name, perhaps an earlier one.
    pub(super) fn matches_reserved_name(&self, reservation: &Entry) -> bool {
        service_of_ip_reservation(reservation).is_some_and(|service| service == self.service_name)
    }
}

/// The `namespace/name` of the service that a reservation is for.
pub(super) fn service_of_ip_reservation(reservation: &Entry) -> Option<String> {
    let stored: Value = serde_json::from_slice(&reservation.value).ok()?;
    stored.get("service")?.as_str().map(str::to_owned)
}

/// Whether a key reserves a cluster IP.
pub(crate) fn is_ip_reservation_key(prefix: &str, key: &Key) -> bool {
    let path = key.strip_prefix(prefix).and_then(|path| path.strip_prefix('/'));
    let name = path.and_then(|path| path.strip_prefix(RESERVATIONS_PATH));
    name.is_some_and(|name| name.starts_with('/'))
}

/// The address that the key of a reservation names.
pub(super) fn reserved_ip(reservation: &Item) -> Option<Ipv4Addr> {
    reservation.key.rsplit('/').next()?.parse().ok()
}

impl ServerState {
    pub(super) fn ip_reservation_key(&self, ip: Ipv4Addr) -> Option<Key> {
        Key::new(&format!("{}/{RESERVATIONS_PATH}/{ip}", self.store_key_prefix)).ok()
    }

    /// The reservation that a stored object owns: `None` unless the object is a service and the reservation
    /// of its address names it. A service does not release the reservation of another one, whatever address
    /// its spec contains.
    pub(crate) async fn find_owned_ip_reservation(
        &self,
        stored: &Tree,
    ) -> Result<Option<(Key, Revision)>, ReadError> {
        let member = |name: &str| api_object::string_member(stored, name);
        if (member("apiVersion"), member("kind")) != ("v1", "Service") {
            return Ok(None);
        }
        let key = stored_cluster_ip(stored).and_then(|ip| self.ip_reservation_key(ip));
        let Some(key) = key else { return Ok(None) };
        let entry = self.store.get(&key, At::Newest).await?.entry;
        let entry = entry
            .filter(|entry| ClusterIpOwner::owner_of_service(stored).owns_ip_reservation(entry));
        Ok(entry.map(|entry| (key, entry.mod_rev)))
    }

    pub(super) async fn list_ip_reservations(&self, at: At) -> Result<Vec<Item>, ReadError> {
        let Ok(prefix) = Prefix::new(&format!("{}/{RESERVATIONS_PATH}/", self.store_key_prefix))
        else {
            return Ok(Vec::new());
        };
        let request = ListRequest { at, ..ListRequest::default() };
        self.store.list(&prefix, request).await.map(|page| page.items)
    }
}

impl RequestContext<'_> {
    pub(super) async fn find_owned_ip_reservation(
        &self,
        stored: &Tree,
    ) -> Result<Option<(Key, Revision)>, Status> {
        let owned = self.server.find_owned_ip_reservation(stored).await;
        owned.map_err(|error| self.store_read_error_status("update", &error))
    }

    pub(super) async fn read_ip_reservation(&self, ip: Ipv4Addr) -> Result<Option<Entry>, Status> {
        let Some(key) = self.server.ip_reservation_key(ip) else { return Ok(None) };
        let got = self.server.store.get(&key, At::Newest).await;
        got.map(|got| got.entry).map_err(|error| self.store_read_error_status("create", &error))
    }

    pub(super) fn new_ip_reservation(
        &self,
        ip: Ipv4Addr,
        owner: &ClusterIpOwner,
        expect: ExpectedKeyState,
    ) -> Result<ClusterIpReservation, Status> {
        let key = self.server.ip_reservation_key(ip);
        let key = key.ok_or_else(|| Status::internal_error("an address cannot be reserved"))?;
        Ok(ClusterIpReservation {
            key,
            value: owner.encode_ip_reservation(),
            expected_revision: expect,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_keys_below_the_path_of_reservations_are_reservations() {
        for (key, want) in [
            ("/registry/ranges/serviceips/10.0.0.1", true),
            ("/registry/ranges/serviceips", false),
            ("/registry/ranges/serviceipsx/10.0.0.1", false),
            ("/registry/x/ranges/serviceips/10.0.0.1", false),
            ("/registryx/ranges/serviceips/10.0.0.1", false),
            ("/other/ranges/serviceips/10.0.0.1", false),
        ] {
            assert_eq!(is_ip_reservation_key("/registry", &Key::new(key).unwrap()), want, "{key}");
        }
    }
}
