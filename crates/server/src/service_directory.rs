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
/// The storage path of EndpointSlices, below the prefix.
pub(crate) const SLICES_PATH: &str = "endpointslices/";

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
    routing: ServiceRouting,
    service_tables: RwLock<ServiceTables>,
    /// The address of this server, to which `default/kubernetes` resolves, whatever is stored.
    server_address: OnceLock<SocketAddr>,
    rng: SystemRandom,
}

/// A service can not be resolved. The texts are those of Kubernetes.
#[derive(Debug, thiserror::Error)]
enum LookupError {
    #[error("services {service:?} not found")]
    NotFound { service: String },
    #[error("no service port {port} found for service {service:?}")]
    NoPort { service: String, port: u16 },
    #[error("cannot route to service with ClusterIP {cluster_ip:?}")]
    NoClusterIp { cluster_ip: String },
    #[error("unsupported service type {service_type:?}")]
    UnsupportedType { service_type: String },
    #[error("no endpoints available for service {service:?}")]
    NoEndpoints { service: String },
}

impl From<LookupError> for ResolveError {
    fn from(error: LookupError) -> Self {
        Self(error.to_string())
    }
}

#[derive(Debug, Default)]
struct ServiceTables {
    /// The services by `namespace/name`.
    services: HashMap<String, Service>,
    /// By `namespace/name` of the service, then by the name of the slice.
    endpoint_slices: HashMap<String, BTreeMap<String, EndpointSlice>>,
    /// The service of a slice, by `namespace/name` of the slice.
    services_by_slice: HashMap<String, String>,
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
            routing,
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

    /// Stores a Service or an EndpointSlice, or removes it if there is no value. `path` is its key without
    /// the prefix.
    ///
    /// # Errors
    /// The value can not be decoded; the object counts as absent.
    pub(crate) fn apply_stored_object(
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
                service_tables.services.insert(name.to_owned(), Service::from_object(&object));
            }
        } else if let Some(name) = path.strip_prefix(SLICES_PATH) {
            service_tables.remove_endpoint_slice(name);
            if let Some(object) = object? {
                service_tables.add_endpoint_slice(name, &object);
            }
        }
        Ok(())
    }

    /// Resolves a service to its cluster IP or to one of its endpoints, as the routing of the server says.
    fn resolve_by_routing(
        &self,
        service_tables: &ServiceTables,
        service: &ServiceName,
    ) -> Result<HostPort, LookupError> {
        let ServiceName { namespace, name, port } = service;
        let found = service_tables.find_service(namespace, name)?;
        match self.routing {
            ServiceRouting::ClusterIp => found.resolve_by_cluster_ip(name, *port),
            ServiceRouting::Endpoints => {
                let endpoint_slices =
                    service_tables.endpoint_slices.get(&format!("{namespace}/{name}"));
                found.choose_ready_endpoint(name, *port, endpoint_slices, |n| self.random_below(n))
            }
        }
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
        if (service.namespace.as_str(), service.name.as_str(), service.port)
            == ("default", "kubernetes", 443)
            && let Some(address) = self.server_address.get()
        {
            return Ok(HostPort { host: address.ip().to_string(), port: address.port() });
        }
        let service_tables = self.service_tables.read().unwrap_or_else(PoisonError::into_inner);
        Ok(self.resolve_by_routing(&service_tables, service)?)
    }
}

impl ServiceTables {
    fn find_service(&self, namespace: &str, name: &str) -> Result<&Service, LookupError> {
        let service = self.services.get(&format!("{namespace}/{name}"));
        service.ok_or_else(|| LookupError::NotFound { service: name.to_owned() })
    }

    fn remove_endpoint_slice(&mut self, name: &str) {
        let Some(service) = self.services_by_slice.remove(name) else { return };
        if let Some(endpoint_slices) = self.endpoint_slices.get_mut(&service) {
            endpoint_slices.remove(name);
            if endpoint_slices.is_empty() {
                self.endpoint_slices.remove(&service);
            }
        }
    }

    fn add_endpoint_slice(&mut self, name: &str, object: &Value) {
        let service = text_at(object, "/metadata/labels/kubernetes.io~1service-name");
        let Some((namespace, _)) = name.split_once('/') else { return };
        if service.is_empty() {
            return;
        }
        let service = format!("{namespace}/{service}");
        self.services_by_slice.insert(name.to_owned(), service.clone());
        let endpoint_slices = self.endpoint_slices.entry(service).or_default();
        endpoint_slices.insert(name.to_owned(), EndpointSlice::from_object(object));
    }
}

impl Service {
    fn from_object(object: &Value) -> Self {
        let service_type = match text_at(object, "/spec/type") {
            "" => "ClusterIP",
            service_type => service_type,
        };
        Self {
            service_type: service_type.to_owned(),
            cluster_ip: text_at(object, "/spec/clusterIP").to_owned(),
            external_name: text_at(object, "/spec/externalName").to_owned(),
            preferred_ip_family: text_at(object, "/spec/ipFamilies/0").to_owned(),
            ports: tcp_ports(object.pointer("/spec/ports")),
        }
    }

    fn port_name(&self, service: &str, port: u16) -> Result<&str, LookupError> {
        let found = self.ports.iter().find(|(_, number)| *number == port);
        let name = found.map(|(name, _)| name.as_str());
        name.ok_or_else(|| LookupError::NoPort { service: service.to_owned(), port })
    }

    fn resolve_by_cluster_ip(&self, service: &str, port: u16) -> Result<HostPort, LookupError> {
        match self.service_type.as_str() {
            "ExternalName" => Ok(HostPort { host: self.external_name.clone(), port }),
            "ClusterIP" | "NodePort" | "LoadBalancer" => {
                if matches!(self.cluster_ip.as_str(), "" | "None") {
                    return Err(LookupError::NoClusterIp { cluster_ip: self.cluster_ip.clone() });
                }
                self.port_name(service, port)?;
                Ok(HostPort { host: self.cluster_ip.clone(), port })
            }
            other => Err(LookupError::UnsupportedType { service_type: other.to_owned() }),
        }
    }

    /// Chooses a ready endpoint, of the preferred IP family if there is one.
    fn choose_ready_endpoint(
        &self,
        service: &str,
        port: u16,
        endpoint_slices: Option<&BTreeMap<String, EndpointSlice>>,
        random_below: impl Fn(usize) -> usize,
    ) -> Result<HostPort, LookupError> {
        if !matches!(self.service_type.as_str(), "ClusterIP" | "NodePort" | "LoadBalancer") {
            return Err(LookupError::UnsupportedType { service_type: self.service_type.clone() });
        }
        let port_name = self.port_name(service, port)?;
        let candidates = |is_preferred: bool| {
            let endpoint_slices = endpoint_slices.into_iter().flatten().map(|(_, slice)| slice);
            endpoint_slices
                .filter(move |slice| (slice.ip_family == self.preferred_ip_family) == is_preferred)
                .flat_map(move |slice| {
                    let found = slice.ports.iter().find(|(name, _)| name == port_name);
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
        Err(LookupError::NoEndpoints { service: service.to_owned() })
    }
}

impl EndpointSlice {
    fn from_object(object: &Value) -> Self {
        let endpoints = object.get("endpoints").and_then(Value::as_array).into_iter().flatten();
        let ready_ips = endpoints
            .filter(|endpoint| endpoint.pointer("/conditions/ready") != Some(&Value::Bool(false)))
            .map(|endpoint| text_at(endpoint, "/addresses/0").to_owned())
            .filter(|address| !address.is_empty());
        Self {
            ip_family: text_at(object, "/addressType").to_owned(),
            ports: tcp_ports(object.get("ports")),
            ready_ips: ready_ips.collect(),
        }
    }
}

/// The TCP ports of a Service or an EndpointSlice.
fn tcp_ports(list: Option<&Value>) -> Vec<(String, u16)> {
    let ports = list.and_then(Value::as_array).into_iter().flatten();
    let read = |port: &Value| {
        if !matches!(text_at(port, "/protocol"), "" | "TCP") {
            return None;
        }
        let number = port
            .get("port")
            .and_then(Value::as_u64)
            .and_then(|number| u16::try_from(number).ok())?;
        Some((text_at(port, "/name").to_owned(), number))
    };
    ports.filter_map(read).collect()
}

/// The text at a JSON pointer; empty if there is none.
fn text_at<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
