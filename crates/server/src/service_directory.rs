//! Where the services of the cluster are, for webhooks that run inside it.
//!
//! It is no part of the picture that decisions are made from: an address is looked up when a
//! connection is made, and then the newest is wanted.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::{OnceLock, PoisonError, RwLock};

use admission_hooks::Services;
use https_client::{HostPort, Resolve, ResolveError, ServiceName};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::Value;

/// How the name of a service becomes an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServiceRouting {
    /// A ready endpoint of the service, chosen anew for each connection.
    #[default]
    Endpoints,
    /// The address of the service itself, which something in the cluster has to forward.
    ClusterIp,
}

/// The services and their endpoints, as far as they are needed to connect to one.
#[derive(Debug)]
pub struct ServiceDirectory {
    routing: ServiceRouting,
    tables: RwLock<Tables>,
    /// The service `default/kubernetes` is this server, whatever is stored.
    own: OnceLock<SocketAddr>,
    rng: SystemRandom,
}

#[derive(Debug, Default)]
struct Tables {
    /// By `namespace/name`.
    services: HashMap<String, Service>,
    /// By `namespace/name` of the service, then by the name of the slice.
    slices: HashMap<String, BTreeMap<String, Slice>>,
    /// The service of a slice, by `namespace/name` of the slice.
    owners: HashMap<String, String>,
}

#[derive(Debug, Clone)]
struct Service {
    service_type: String,
    cluster_ip: String,
    external_name: String,
    first_family: String,
    /// Name and number.
    ports: Vec<(String, u16)>,
}

#[derive(Debug, Clone)]
struct Slice {
    family: String,
    /// Name and number.
    ports: Vec<(String, u16)>,
    /// The first address of each ready endpoint.
    ready: Vec<String>,
}

impl ServiceDirectory {
    /// A directory without services.
    #[must_use]
    pub fn new(routing: ServiceRouting) -> Self {
        Self { routing, tables: RwLock::default(), own: OnceLock::new(), rng: SystemRandom::new() }
    }

    /// Where this server listens. Only the first time counts.
    pub(crate) fn set_own(&self, address: SocketAddr) {
        let loopback = match address {
            SocketAddr::V4(_) => IpAddr::from([127, 0, 0, 1]),
            SocketAddr::V6(_) => IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
        };
        let ip = if address.ip().is_unspecified() { loopback } else { address.ip() };
        let _ = self.own.set(SocketAddr::new(ip, address.port()));
    }

    /// Forgets everything, before all objects are told again.
    pub(crate) fn clear(&self) {
        *self.tables.write().unwrap_or_else(PoisonError::into_inner) = Tables::default();
    }

    /// An object was stored or, without a value, removed. `path` is its key without the prefix.
    ///
    /// # Errors
    /// The value can not be read; the object counts as absent.
    pub(crate) fn apply(&self, path: &str, value: Option<&[u8]>) -> Result<(), String> {
        let object = value.map(|value| codec::from_stored(value).map(Value::Object)).transpose();
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(name) = path.strip_prefix(SERVICES_PATH) {
            tables.services.remove(name);
            if let Some(object) = object.map_err(|error| error.to_string())? {
                tables.services.insert(name.to_owned(), Service::read(&object));
            }
        } else if let Some(name) = path.strip_prefix(SLICES_PATH) {
            tables.remove_slice(name);
            if let Some(object) = object.map_err(|error| error.to_string())? {
                tables.add_slice(name, &object);
            }
        }
        Ok(())
    }

    fn locate(&self, tables: &Tables, service: &ServiceName) -> Result<HostPort, String> {
        let ServiceName { namespace, name, port } = service;
        let found = tables.services.get(&format!("{namespace}/{name}"));
        let found = found.ok_or_else(|| format!("services {name:?} not found"))?;
        match self.routing {
            ServiceRouting::ClusterIp => found.cluster_address(name, *port),
            ServiceRouting::Endpoints => {
                let slices = tables.slices.get(&format!("{namespace}/{name}"));
                found.endpoint(name, *port, slices, |n| self.below(n))
            }
        }
    }

    /// A number below another one, nobody knows which.
    fn below(&self, n: usize) -> usize {
        let mut bytes = [0; 8];
        // Without randomness always the first is taken, which is as ready as the others.
        let _ = self.rng.fill(&mut bytes);
        usize::from_le_bytes(bytes).checked_rem(n).unwrap_or_default()
    }
}

/// Where services are stored, below the prefix.
pub(crate) const SERVICES_PATH: &str = "services/specs/";
/// Where endpoint slices are.
pub(crate) const SLICES_PATH: &str = "endpointslices/";

impl Services for ServiceDirectory {
    fn tcp_ports(&self, namespace: &str, name: &str) -> Result<Vec<u16>, ResolveError> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        let found = tables.services.get(&format!("{namespace}/{name}"));
        let found = found.ok_or_else(|| ResolveError(format!("services {name:?} not found")))?;
        Ok(found.ports.iter().map(|(_, number)| *number).collect())
    }
}

impl Resolve for ServiceDirectory {
    fn resolve(&self, service: &ServiceName) -> Result<HostPort, ResolveError> {
        if (service.namespace.as_str(), service.name.as_str(), service.port)
            == ("default", "kubernetes", 443)
            && let Some(own) = self.own.get()
        {
            return Ok(HostPort { host: own.ip().to_string(), port: own.port() });
        }
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        self.locate(&tables, service).map_err(ResolveError)
    }
}

impl Tables {
    fn remove_slice(&mut self, name: &str) {
        let Some(owner) = self.owners.remove(name) else { return };
        if let Some(slices) = self.slices.get_mut(&owner) {
            slices.remove(name);
            if slices.is_empty() {
                self.slices.remove(&owner);
            }
        }
    }

    fn add_slice(&mut self, name: &str, object: &Value) {
        let service = text(&object["metadata"]["labels"]["kubernetes.io/service-name"]);
        let Some((namespace, _)) = name.split_once('/') else { return };
        if service.is_empty() {
            return;
        }
        let owner = format!("{namespace}/{service}");
        self.owners.insert(name.to_owned(), owner.clone());
        self.slices.entry(owner).or_default().insert(name.to_owned(), Slice::read(object));
    }
}

impl Service {
    fn read(object: &Value) -> Self {
        let spec = &object["spec"];
        let service_type = match text(&spec["type"]) {
            "" => "ClusterIP",
            own => own,
        };
        Self {
            service_type: service_type.to_owned(),
            cluster_ip: text(&spec["clusterIP"]).to_owned(),
            external_name: text(&spec["externalName"]).to_owned(),
            first_family: text(&spec["ipFamilies"][0]).to_owned(),
            ports: ports(&spec["ports"]),
        }
    }

    fn port(&self, service: &str, number: u16) -> Result<&str, String> {
        let found = self.ports.iter().find(|(_, own)| *own == number);
        let found = found.map(|(name, _)| name.as_str());
        found.ok_or_else(|| format!("no service port {number} found for service {service:?}"))
    }

    fn cluster_address(&self, service: &str, port: u16) -> Result<HostPort, String> {
        match self.service_type.as_str() {
            "ExternalName" => Ok(HostPort { host: self.external_name.clone(), port }),
            "ClusterIP" | "NodePort" | "LoadBalancer" => {
                if matches!(self.cluster_ip.as_str(), "" | "None") {
                    let ip = &self.cluster_ip;
                    return Err(format!("cannot route to service with ClusterIP {ip:?}"));
                }
                self.port(service, port)?;
                Ok(HostPort { host: self.cluster_ip.clone(), port })
            }
            other => Err(format!("unsupported service type {other:?}")),
        }
    }

    fn endpoint(
        &self,
        service: &str,
        port: u16,
        slices: Option<&BTreeMap<String, Slice>>,
        below: impl Fn(usize) -> usize,
    ) -> Result<HostPort, String> {
        if !matches!(self.service_type.as_str(), "ClusterIP" | "NodePort" | "LoadBalancer") {
            return Err(format!("unsupported service type {:?}", self.service_type));
        }
        let port_name = self.port(service, port)?;
        let candidates = |is_preferred: bool| {
            let slices = slices.into_iter().flatten().map(|(_, slice)| slice);
            slices
                .filter(move |slice| (slice.family == self.first_family) == is_preferred)
                .flat_map(move |slice| {
                    let named = slice.ports.iter().find(|(name, _)| name == port_name);
                    let ready = named.map(|(_, number)| (slice.ready.iter(), *number));
                    ready.into_iter().flat_map(|(ready, number)| ready.map(move |ip| (ip, number)))
                })
        };
        for is_preferred in [true, false] {
            let count = candidates(is_preferred).count();
            if count > 0
                && let Some((host, port)) = candidates(is_preferred).nth(below(count))
            {
                return Ok(HostPort { host: host.clone(), port });
            }
        }
        Err(format!("no endpoints available for service {service:?}"))
    }
}

impl Slice {
    fn read(object: &Value) -> Self {
        let endpoints = object["endpoints"].as_array().into_iter().flatten();
        let ready = endpoints
            .filter(|endpoint| endpoint["conditions"]["ready"].as_bool() != Some(false))
            .map(|endpoint| text(&endpoint["addresses"][0]).to_owned())
            .filter(|address| !address.is_empty());
        Self {
            family: text(&object["addressType"]).to_owned(),
            ports: ports(&object["ports"]),
            ready: ready.collect(),
        }
    }
}

fn ports(list: &Value) -> Vec<(String, u16)> {
    let ports = list.as_array().into_iter().flatten();
    let read = |port: &Value| {
        if !matches!(text(&port["protocol"]), "" | "TCP") {
            return None;
        }
        let number = port["port"].as_u64().and_then(|number| u16::try_from(number).ok())?;
        Some((text(&port["name"]).to_owned(), number))
    };
    ports.filter_map(read).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests;
