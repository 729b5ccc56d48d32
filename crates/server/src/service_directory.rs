//! Resolves the names of services to addresses, for webhooks that run inside the cluster.
//!
//! The directory is not part of the snapshot: an address is looked up when a connection is made, and the
//! newest one is used then.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::{OnceLock, PoisonError, RwLock};

use admission_hooks::ClusterServices;
use codec::JsonError;
use https_client::{HostPort, ResolveError, ServiceName, ServiceResolver};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::Value;

/// The storage path of Services, below the prefix.
pub(crate) const SERVICES_PATH: &str = "services/specs/";
/// The storage path of Endpoints, below the prefix.
pub(crate) const ENDPOINTS_PATH: &str = "services/endpoints/";
/// The storage path of EndpointSlices, below the prefix.
pub(crate) const SLICES_PATH: &str = "endpointslices/";

/// The port of a service with several ports, unless a webhook names another one.
const HTTPS_PORT: u16 = 443;

/// How the name of a service is resolved to an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServiceRouting {
    /// A ready endpoint of the service, chosen anew for each connection.
    #[default]
    Endpoints,
    /// The cluster IP of the service, which a proxy in the cluster has to forward.
    ClusterIp,
}

/// The services and their endpoints, as far as they are needed to connect to one.
#[derive(Debug)]
pub struct ServiceDirectory {
    service_routing: ServiceRouting,
    service_tables: RwLock<ServiceTables>,
    /// The address of this server, to which `default/kubernetes` resolves, whatever is stored.
    server_address: OnceLock<SocketAddr>,
    rng: SystemRandom,
}

/// A service cannot be resolved. The texts are those of Kubernetes.
#[derive(Debug, thiserror::Error)]
enum ServiceLookupError {
    #[error("services {service:?} not found")]
    NotFound { service: String },
    #[error("no service port {port} found for service {service:?}")]
    NoPort { service: String, port: u16 },
    #[error("service {service:?} has several ports and none of them is 443")]
    NoDefaultPort { service: String },
    #[error("cannot route to service with ClusterIP {cluster_ip:?}")]
    NoClusterIp { cluster_ip: String },
    #[error("unsupported service type {service_type:?}")]
    UnsupportedType { service_type: String },
    #[error("no endpoints available for service {service:?}")]
    NoEndpoints { service: String },
}

impl From<ServiceLookupError> for ResolveError {
    fn from(error: ServiceLookupError) -> Self {
        Self(error.to_string())
    }
}

#[derive(Debug, Default)]
struct ServiceTables {
    /// The services by `namespace/name`.
    services: HashMap<String, Service>,
    /// By `namespace/name` of the service, then by the name of the slice. The parts of an Endpoints object are slices, too.
    endpoint_slices: HashMap<String, BTreeMap<String, EndpointSlice>>,
    /// The service of a slice, by `namespace/name` of the slice.
    service_by_slice: HashMap<String, String>,
}

#[derive(Debug, Clone)]
struct Service {
    service_type: String,
    cluster_ip: String,
    external_name: String,
    preferred_ip_family: String,
    /// The name and the number of each TCP port.
    ports: Vec<(String, u16)>,
}

#[derive(Debug, Clone)]
struct EndpointSlice {
    ip_family: String,
    /// The name and the number of each TCP port.
    ports: Vec<(String, u16)>,
    /// The first address of each ready endpoint.
    ready_ips: Vec<String>,
}

impl ServiceDirectory {
    /// A directory without services.
    #[must_use]
    pub fn new(routing: ServiceRouting) -> Self {
        Self {
            service_routing: routing,
            service_tables: RwLock::default(),
            server_address: OnceLock::new(),
            rng: SystemRandom::new(),
        }
    }

    /// Sets the address that this server listens on. Only the first call has an effect.
    pub(crate) fn set_server_address(&self, address: SocketAddr) {
        let loopback = match address {
            SocketAddr::V4(_) => IpAddr::from([127, 0, 0, 1]),
            SocketAddr::V6(_) => IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
        };
        let ip = if address.ip().is_unspecified() { loopback } else { address.ip() };
        let _ = self.server_address.set(SocketAddr::new(ip, address.port()));
    }

    /// Removes all services, before they are loaded again.
    pub(crate) fn clear(&self) {
        *self.service_tables.write().unwrap_or_else(PoisonError::into_inner) =
            ServiceTables::default();
    }

    /// Stores a Service, an Endpoints object or an EndpointSlice, or removes it if there is no value. `path` is its key without
    /// the prefix.
    ///
    /// # Errors
    /// The value cannot be decoded; the object counts as absent.
    pub(crate) fn apply_service_or_endpoints(
        &self,
        path: &str,
        value: Option<&[u8]>,
    ) -> Result<(), JsonError> {
        let object =
            value.map(|value| codec::decode_stored_object(value).map(Value::Object)).transpose();
        let mut service_tables =
            self.service_tables.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(name) = path.strip_prefix(SERVICES_PATH) {
            service_tables.services.remove(name);
            if let Some(object) = object? {
                service_tables
                    .services
                    .insert(name.to_owned(), Service::from_service_json(&object));
            }
        } else if let Some(name) = path.strip_prefix(SLICES_PATH) {
            service_tables.remove_endpoint_slice(name);
            if let Some(object) = object? {
                service_tables.add_endpoint_slice(name, &object);
            }
        } else if let Some(name) = path.strip_prefix(ENDPOINTS_PATH) {
            service_tables.remove_endpoints(name);
            if let Some(object) = object? {
                service_tables.add_endpoints(name, &object);
            }
        }
        Ok(())
    }

    /// Resolves a service to its cluster IP or to one of its endpoints, as the routing of the server says.
    fn resolve_service_by_routing(
        &self,
        service_tables: &ServiceTables,
        service: &ServiceName,
    ) -> Result<HostPort, ServiceLookupError> {
        let ServiceName { namespace, name, .. } = service;
        let found = service_tables.find_service(namespace, name)?;
        let port = found.service_port_or_default(name, service.port)?;
        match self.service_routing {
            ServiceRouting::ClusterIp => found.resolve_by_cluster_ip(name, port),
            ServiceRouting::Endpoints => {
                let endpoint_slices = service_tables.endpoint_slices_of(service);
                found.choose_ready_endpoint(name, port, endpoint_slices, |n| self.random_below(n))
            }
        }
    }

    /// The address of this server, if the service is its own one.
    fn own_service_address(&self, service: &ServiceName) -> Option<HostPort> {
        let ServiceName { namespace, name, port } = service;
        let is_own = (namespace.as_str(), name.as_str()) == ("default", "kubernetes")
            && port.unwrap_or(HTTPS_PORT) == HTTPS_PORT;
        let address = self.server_address.get().filter(|_| is_own)?;
        Some(HostPort { host: address.ip().to_string(), port: address.port() })
    }

    /// A random number below `n`.
    fn random_below(&self, n: usize) -> usize {
        let mut bytes = [0; 8];
        // If the system returns no random bytes, the first endpoint is chosen.
        let _ = self.rng.fill(&mut bytes);
        usize::from_le_bytes(bytes).checked_rem(n).unwrap_or_default()
    }
}

impl ClusterServices for ServiceDirectory {
    fn tcp_ports(&self, namespace: &str, name: &str) -> Result<Vec<u16>, ResolveError> {
        let service_tables = self.service_tables.read().unwrap_or_else(PoisonError::into_inner);
        let service = service_tables.find_service(namespace, name)?;
        Ok(service.ports.iter().map(|(_, number)| *number).collect())
    }
}

impl ServiceResolver for ServiceDirectory {
    fn resolve_service(&self, service: &ServiceName) -> Result<HostPort, ResolveError> {
        if let Some(address) = self.own_service_address(service) {
            return Ok(address);
        }
        let service_tables = self.service_tables.read().unwrap_or_else(PoisonError::into_inner);
        Ok(self.resolve_service_by_routing(&service_tables, service)?)
    }

    fn is_current_endpoint(&self, service: &ServiceName, address: &HostPort) -> bool {
        if let Some(own) = self.own_service_address(service) {
            return own == *address;
        }
        let tables = self.service_tables.read().unwrap_or_else(PoisonError::into_inner);
        let ServiceName { namespace, name, .. } = service;
        let Ok(found) = tables.find_service(namespace, name) else { return false };
        let Ok(port) = found.service_port_or_default(name, service.port) else { return false };
        match self.service_routing {
            ServiceRouting::ClusterIp => {
                found.resolve_by_cluster_ip(name, port).is_ok_and(|at| at == *address)
            }
            ServiceRouting::Endpoints => {
                let Ok(service_port_name) = found.service_port_name(name, port) else {
                    return false;
                };
                let mut slices = tables.endpoint_slices_of(service).into_iter().flatten();
                slices.any(|(_, slice)| slice.has_ready_endpoint(service_port_name, address))
            }
        }
    }
}

impl ServiceTables {
    fn find_service(&self, namespace: &str, name: &str) -> Result<&Service, ServiceLookupError> {
        let service = self.services.get(&format!("{namespace}/{name}"));
        service.ok_or_else(|| ServiceLookupError::NotFound { service: name.to_owned() })
    }

    fn endpoint_slices_of(
        &self,
        service: &ServiceName,
    ) -> Option<&BTreeMap<String, EndpointSlice>> {
        self.endpoint_slices.get(&format!("{}/{}", service.namespace, service.name))
    }

    /// Removes the slices of an Endpoints object, which has the name of its service.
    fn remove_endpoints(&mut self, service: &str) {
        if let Some(endpoint_slices) = self.endpoint_slices.get_mut(service) {
            endpoint_slices.retain(|name, _| !name.starts_with(ENDPOINTS_PATH));
            if endpoint_slices.is_empty() {
                self.endpoint_slices.remove(service);
            }
        }
    }

    /// Adds each subset of an Endpoints object as a slice. No controller mirrors Endpoints to slices here.
    fn add_endpoints(&mut self, service: &str, object: &Value) {
        let subsets = object.get("subsets").and_then(Value::as_array).into_iter().flatten();
        let slices: Vec<EndpointSlice> =
            subsets.flat_map(EndpointSlice::from_endpoints_subset).collect();
        if slices.is_empty() {
            return;
        }
        let endpoint_slices = self.endpoint_slices.entry(service.to_owned()).or_default();
        for (idx, slice) in slices.into_iter().enumerate() {
            // The name of a slice never contains a slash after its namespace.
            endpoint_slices.insert(format!("{ENDPOINTS_PATH}{service}/{idx}"), slice);
        }
    }

    fn remove_endpoint_slice(&mut self, name: &str) {
        let Some(service) = self.service_by_slice.remove(name) else { return };
        if let Some(endpoint_slices) = self.endpoint_slices.get_mut(&service) {
            endpoint_slices.remove(name);
            if endpoint_slices.is_empty() {
                self.endpoint_slices.remove(&service);
            }
        }
    }

    fn add_endpoint_slice(&mut self, name: &str, object: &Value) {
        let service = string_at_pointer(object, "/metadata/labels/kubernetes.io~1service-name");
        let Some((namespace, _)) = name.split_once('/') else { return };
        if service.is_empty() {
            return;
        }
        let service = format!("{namespace}/{service}");
        self.service_by_slice.insert(name.to_owned(), service.clone());
        let endpoint_slices = self.endpoint_slices.entry(service).or_default();
        endpoint_slices.insert(name.to_owned(), EndpointSlice::from_endpoint_slice_json(object));
    }
}

impl Service {
    fn from_service_json(object: &Value) -> Self {
        let service_type = match string_at_pointer(object, "/spec/type") {
            "" => "ClusterIP",
            service_type => service_type,
        };
        Self {
            service_type: service_type.to_owned(),
            cluster_ip: string_at_pointer(object, "/spec/clusterIP").to_owned(),
            external_name: string_at_pointer(object, "/spec/externalName").to_owned(),
            preferred_ip_family: string_at_pointer(object, "/spec/ipFamilies/0").to_owned(),
            ports: tcp_ports(object.pointer("/spec/ports")),
        }
    }

    /// The port that is asked for; otherwise the only port of the service, or 443 if it has several.
    fn service_port_or_default(
        &self,
        service: &str,
        port: Option<u16>,
    ) -> Result<u16, ServiceLookupError> {
        match (port, self.ports.as_slice()) {
            (Some(port), _) => Ok(port),
            (None, [(_, only)]) => Ok(*only),
            (None, several) if several.iter().any(|(_, number)| *number == HTTPS_PORT) => {
                Ok(HTTPS_PORT)
            }
            // An external name may have no port.
            (None, []) => Ok(HTTPS_PORT),
            (None, _) => Err(ServiceLookupError::NoDefaultPort { service: service.to_owned() }),
        }
    }

    fn service_port_name(&self, service: &str, port: u16) -> Result<&str, ServiceLookupError> {
        let found = self.ports.iter().find(|(_, number)| *number == port);
        let name = found.map(|(name, _)| name.as_str());
        name.ok_or_else(|| ServiceLookupError::NoPort { service: service.to_owned(), port })
    }

    fn resolve_by_cluster_ip(
        &self,
        service: &str,
        port: u16,
    ) -> Result<HostPort, ServiceLookupError> {
        match self.service_type.as_str() {
            "ExternalName" => Ok(HostPort { host: self.external_name.clone(), port }),
            "ClusterIP" | "NodePort" | "LoadBalancer" => {
                if matches!(self.cluster_ip.as_str(), "" | "None") {
                    return Err(ServiceLookupError::NoClusterIp {
                        cluster_ip: self.cluster_ip.clone(),
                    });
                }
                self.service_port_name(service, port)?;
                Ok(HostPort { host: self.cluster_ip.clone(), port })
            }
            other => Err(ServiceLookupError::UnsupportedType { service_type: other.to_owned() }),
        }
    }

    /// Chooses a ready endpoint, of the preferred IP family if there is one.
    fn choose_ready_endpoint(
        &self,
        service: &str,
        port: u16,
        endpoint_slices: Option<&BTreeMap<String, EndpointSlice>>,
        random_below: impl Fn(usize) -> usize,
    ) -> Result<HostPort, ServiceLookupError> {
        if !matches!(self.service_type.as_str(), "ClusterIP" | "NodePort" | "LoadBalancer") {
            return Err(ServiceLookupError::UnsupportedType {
                service_type: self.service_type.clone(),
            });
        }
        let service_port_name = self.service_port_name(service, port)?;
        let candidates = |is_preferred: bool| {
            let endpoint_slices = endpoint_slices.into_iter().flatten().map(|(_, slice)| slice);
            endpoint_slices
                .filter(move |slice| (slice.ip_family == self.preferred_ip_family) == is_preferred)
                .flat_map(move |slice| {
                    let found = slice.ports.iter().find(|(name, _)| name == service_port_name);
                    let ready = found.map(|(_, number)| (slice.ready_ips.iter(), *number));
                    ready.into_iter().flat_map(|(ips, number)| ips.map(move |ip| (ip, number)))
                })
        };
        for is_preferred in [true, false] {
            let count = candidates(is_preferred).count();
            if count > 0
                && let Some((host, port)) = candidates(is_preferred).nth(random_below(count))
            {
                return Ok(HostPort { host: host.clone(), port });
            }
        }
        Err(ServiceLookupError::NoEndpoints { service: service.to_owned() })
    }
}

impl EndpointSlice {
    fn from_endpoint_slice_json(object: &Value) -> Self {
        let endpoints = object.get("endpoints").and_then(Value::as_array).into_iter().flatten();
        let ready_ips = endpoints
            .filter(|endpoint| endpoint.pointer("/conditions/ready") != Some(&Value::Bool(false)))
            .map(|endpoint| string_at_pointer(endpoint, "/addresses/0").to_owned())
            .filter(|address| !address.is_empty());
        Self {
            ip_family: string_at_pointer(object, "/addressType").to_owned(),
            ports: tcp_ports(object.get("ports")),
            ready_ips: ready_ips.collect(),
        }
    }

    /// The ready addresses of one subset of an Endpoints object, one slice for each IP family.
    fn from_endpoints_subset(subset: &Value) -> Vec<Self> {
        let addresses = subset.get("addresses").and_then(Value::as_array).into_iter().flatten();
        let ips =
            addresses.map(|address| string_at_pointer(address, "/ip")).filter(|ip| !ip.is_empty());
        let (v6, v4): (Vec<&str>, Vec<&str>) = ips.partition(|ip| ip.contains(':'));
        let slices = [("IPv4", v4), ("IPv6", v6)].into_iter().filter(|(_, ips)| !ips.is_empty());
        slices
            .map(|(ip_family, ips)| Self {
                ip_family: ip_family.to_owned(),
                ports: tcp_ports(subset.get("ports")),
                ready_ips: ips.into_iter().map(str::to_owned).collect(),
            })
            .collect()
    }

    fn has_ready_endpoint(&self, service_port_name: &str, address: &HostPort) -> bool {
        self.ports.iter().any(|(name, number)| name == service_port_name && *number == address.port)
            && self.ready_ips.contains(&address.host)
    }
}

/// The TCP ports of a Service or an EndpointSlice.
fn tcp_ports(list: Option<&Value>) -> Vec<(String, u16)> {
    let ports = list.and_then(Value::as_array).into_iter().flatten();
    let read = |port: &Value| {
        if !matches!(string_at_pointer(port, "/protocol"), "" | "TCP") {
            return None;
        }
        let number = port
            .get("port")
            .and_then(Value::as_u64)
            .and_then(|number| u16::try_from(number).ok())?;
        Some((string_at_pointer(port, "/name").to_owned(), number))
    };
    ports.filter_map(read).collect()
}

/// The text at a JSON pointer; empty if there is none.
fn string_at_pointer<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
