//! Addresses of services. Each is taken by a key of its own in the store, so that no two services
//! ever have the same one, whichever server makes them.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use field::{FieldErrors, FieldPath};
use object::{Status, Tree};
use serde_json::{Value, json};
use store::{At, Delete, Expect, Key, Put, Store, WriteError};

use crate::rest::Call;

/// How many addresses are tried before the range counts as full.
const TRIES_MAX: u32 = 65_536;

/// The addresses that services get: a network of version 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceRange {
    network: u32,
    bits: u32,
}

/// Why a text is no range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("want a network of IPv4 with 8 to 30 bits, such as 10.96.0.0/16")]
pub struct ServiceRangeError;

impl FromStr for ServiceRange {
    type Err = ServiceRangeError;

    fn from_str(text: &str) -> Result<Self, ServiceRangeError> {
        let (address, bits) = text.split_once('/').ok_or(ServiceRangeError)?;
        let address: Ipv4Addr = address.parse().map_err(|_| ServiceRangeError)?;
        let bits: u32 = bits.parse().map_err(|_| ServiceRangeError)?;
        if !(8..=30).contains(&bits) {
            return Err(ServiceRangeError);
        }
        let mask = u32::MAX << (32 - bits);
        Ok(Self { network: u32::from(address) & mask, bits })
    }
}

impl fmt::Display for ServiceRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from(self.network), self.bits)
    }
}

impl ServiceRange {
    /// The first address, which the service of the server itself has.
    #[must_use]
    pub fn first(self) -> Ipv4Addr {
        Ipv4Addr::from(self.network + 1)
    }

    /// How many addresses there are: all but that of the network and that for everybody.
    fn len(self) -> u32 {
        (1 << (32 - self.bits)) - 2
    }

    fn get(self, idx: u32) -> Ipv4Addr {
        Ipv4Addr::from(self.network + 1 + idx % self.len())
    }

    fn contains(self, address: Ipv4Addr) -> bool {
        let offset = u32::from(address).wrapping_sub(self.network);
        (1..=self.len()).contains(&offset)
    }
}

impl<S: Store> Call<'_, S> {
    /// Gives a new service its address: the one it asks for, or a free one. Returns what was taken, for
    /// [`Self::release_address`] if the service does not come about.
    pub(crate) async fn take_address(&self, tree: &mut Tree) -> Result<Option<Ipv4Addr>, Status> {
        let Some(range) = self.host.options.service_range else { return Ok(None) };
        if !self.is_service() {
            return Ok(None);
        }
        let (namespace, name) = (object::namespace(tree).to_owned(), object::name(tree).to_owned());
        let spec = object::object_mut(tree, "spec");
        if object::text(spec, "type") == "ExternalName" {
            return Ok(None);
        }
        let wanted = object::text(spec, "clusterIP").to_owned();
        let taken = match wanted.as_str() {
            "None" => return Ok(None),
            "" if (namespace.as_str(), name.as_str()) == ("default", "kubernetes") => {
                self.take(range.first(), &namespace, &name).await?.then_some(range.first())
            }
            "" => self.take_any(range, &namespace, &name).await?,
            text => {
                let address: Option<Ipv4Addr> = text.parse().ok();
                let Some(address) = address.filter(|own| range.contains(*own)) else {
                    let detail = format!(
                        "failed to allocate IP {text}: the provided IP is not in \
                                          the valid range {range}"
                    );
                    return Err(self.bad_address(&name, text, &detail));
                };
                if !self.take(address, &namespace, &name).await? {
                    let detail = format!(
                        "failed to allocate IP {text}: provided IP is already \
                                          allocated"
                    );
                    return Err(self.bad_address(&name, text, &detail));
                }
                Some(address)
            }
        };
        let Some(address) = taken else {
            return Err(Status::internal("failed to allocate a serviceIP: range is full"));
        };
        spec.insert("clusterIP".to_owned(), address.to_string().into());
        spec.insert("clusterIPs".to_owned(), json!([address.to_string()]));
        Ok(Some(address))
    }

    /// Lets go of the address of a service that is gone.
    pub(crate) async fn release_address_of(&self, tree: &Tree) {
        if self.host.options.service_range.is_none() || !self.is_service() {
            return;
        }
        let address = tree.get("spec").and_then(|spec| spec.get("clusterIP"));
        if let Some(address) = address.and_then(Value::as_str).and_then(|own| own.parse().ok()) {
            self.release_address(address).await;
        }
    }

    /// Lets go of an address. One that can not be let go of now stays taken, which wastes it and
    /// harms nobody.
    pub(crate) async fn release_address(&self, address: Ipv4Addr) {
        let Ok(key) = self.address_key(address) else { return };
        let got = self.host.store.get(&key, At::Newest).await;
        if let Ok(Some(entry)) = got.map(|got| got.entry) {
            let delete = Delete { key, expect: Expect::At(entry.mod_rev), mark: None };
            if let Err(error) = self.host.store.delete(delete).await {
                let facts: [crate::log::Fact<'_>; 2] = [("address", &address), ("why", &error)];
                self.host.log.warn("the address of a service stays taken", &facts);
            }
        }
    }

    async fn take_any(
        &self,
        range: ServiceRange,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Ipv4Addr>, Status> {
        let start = u32::from_be_bytes(self.host.random());
        for step in 0..range.len().min(TRIES_MAX) {
            let address = range.get(start.wrapping_add(step));
            if address != range.first() && self.take(address, namespace, name).await? {
                return Ok(Some(address));
            }
        }
        Ok(None)
    }

    /// Takes an address; `false` if somebody has it.
    async fn take(&self, address: Ipv4Addr, namespace: &str, name: &str) -> Result<bool, Status> {
        let value = json!({"service": format!("{namespace}/{name}")}).to_string().into();
        let key = self.address_key(address)?;
        let put = Put { key, value, expect: Expect::Absent, ttl: None, mark: None };
        match self.host.store.put(put).await {
            Ok(_) => Ok(true),
            Err(WriteError::Conflict { .. }) => Ok(false),
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

    fn bad_address(&self, name: &str, address: &str, detail: &str) -> Status {
        let spec = FieldPath::root("spec");
        let mut errors = FieldErrors::new();
        errors.push(spec.child("clusterIPs").index(0).invalid(address, detail));
        Status::invalid(&self.resource.group_kind(), name, &errors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_all_addresses_but_two() {
        let range: ServiceRange = "10.0.0.77/29".parse().unwrap();
        assert_eq!(range.to_string(), "10.0.0.72/29");
        assert_eq!((range.first(), range.len()), (Ipv4Addr::new(10, 0, 0, 73), 6));
        assert_eq!(range.get(5), Ipv4Addr::new(10, 0, 0, 78));
        assert_eq!(range.get(6), range.first());
        for (address, want) in [(72, false), (73, true), (78, true), (79, false)] {
            assert_eq!(range.contains(Ipv4Addr::new(10, 0, 0, address)), want, "{address}");
        }
        assert!(!range.contains(Ipv4Addr::new(9, 0, 0, 73)));
        for text in ["10.0.0.0", "10.0.0.0/31", "10.0.0.0/7", "::/64", "x/24"] {
            assert_eq!(text.parse::<ServiceRange>(), Err(ServiceRangeError), "{text}");
        }
    }
}
