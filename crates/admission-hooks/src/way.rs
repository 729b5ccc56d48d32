//! Clients that lead to one service.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use admission::{ClientConfig, Endpoint};
use https_client::{
    BuildError, Client, Destination, Fault, FaultKind, HostPort, Resolve, ResolveError,
    ServiceName, Target,
};

use crate::connection::{ExchangeError, HookEnvironment, Services};
use crate::credentials::AccessTable;
use crate::hook_target::hook_target;

/// Who we say we are to hooks.
const USER_AGENT: &str = "portcullis-admission";

/// The most endpoints of one service that connections are kept to. A service with more is called
/// just as well, but with more handshakes.
const ENDPOINTS_MAX: usize = 32;

/// The port of HTTPS.
const HTTPS_PORT: u16 = 443;

/// Clients that lead to one service.
pub(crate) enum Way {
    /// A fixed host, or a service that is found by its DNS name.
    Fixed(Arc<Client>),
    /// A service whose endpoint is chosen anew for each call.
    Service(Service),
}

pub(crate) struct Service {
    services: Arc<dyn Services>,
    namespace: String,
    name: String,
    port: Option<u16>,
    /// Most recently used last.
    clients: Mutex<Vec<ToEndpoint>>,
}

struct ToEndpoint {
    port: u16,
    at: HostPort,
    client: Arc<Client>,
}

impl Way {
    /// Prepares the way; connects to nobody yet.
    pub(crate) fn new(
        config: &ClientConfig,
        surroundings: &HookEnvironment,
    ) -> Result<Self, ExchangeError> {
        let resolver: Option<Arc<dyn Resolve>> = match (&config.endpoint, &surroundings.services) {
            (Endpoint::Service { namespace, name, port }, Some(services)) => {
                // An unusable bundle is found now, though clients are made for endpoints only.
                hook_target(config, HTTPS_PORT).map_err(no_client)?;
                return Ok(Self::Service(Service {
                    services: Arc::clone(services),
                    namespace: namespace.clone(),
                    name: name.clone(),
                    port: *port,
                    clients: Mutex::default(),
                }));
            }
            (_, Some(services)) => Some(Arc::new(HostsOnly(Arc::clone(services)))),
            (_, None) => None,
        };
        build(config, surroundings, HTTPS_PORT, resolver).map(Arc::new).map(Self::Fixed)
    }

    /// The client that makes a call with this query.
    pub(crate) fn client(
        &self,
        config: &ClientConfig,
        surroundings: &HookEnvironment,
        query: &str,
    ) -> Result<Arc<Client>, ExchangeError> {
        match self {
            Self::Fixed(client) => Ok(Arc::clone(client)),
            Self::Service(service) => service.client(config, surroundings, query),
        }
    }
}

impl Service {
    /// The client for the endpoint that is this call's.
    fn client(
        &self,
        config: &ClientConfig,
        surroundings: &HookEnvironment,
        query: &str,
    ) -> Result<Arc<Client>, ExchangeError> {
        let name = ServiceName {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            port: self
                .port()
                .map_err(|error| self.unresolved(&error, HTTPS_PORT, config, query))?,
        };
        let at = self.services.resolve(&name);
        let at = at.map_err(|error| self.unresolved(&error, name.port, config, query))?;
        let mut clients = self.lock();
        let known = clients.iter().position(|it| it.port == name.port && it.at == at);
        let found = match known {
            Some(idx) => clients.remove(idx),
            None => {
                let resolver: Arc<dyn Resolve> = Arc::new(Settled(at.clone()));
                let client = build(config, surroundings, name.port, Some(resolver))?;
                ToEndpoint { port: name.port, at, client: Arc::new(client) }
            }
        };
        let client = Arc::clone(&found.client);
        if clients.len() >= ENDPOINTS_MAX {
            clients.remove(0);
        }
        clients.push(found);
        Ok(client)
    }

    /// The port that the configuration names; else the only one of the service, or 443 of several.
    fn port(&self) -> Result<u16, ResolveError> {
        if let Some(port) = self.port {
            return Ok(port);
        }
        match self.services.tcp_ports(&self.namespace, &self.name)?.as_slice() {
            [only] => Ok(*only),
            several if several.contains(&HTTPS_PORT) => Ok(HTTPS_PORT),
            _ => {
                let service = format!("{}/{}", self.namespace, self.name);
                Err(ResolveError(format!(
                    "service {} exposes several ports and none of them is 443",
                    go_compat::quote(&service)
                )))
            }
        }
    }

    /// In the words for any call that does not come to a connection.
    fn unresolved(
        &self,
        error: &ResolveError,
        port: u16,
        config: &ClientConfig,
        query: &str,
    ) -> ExchangeError {
        let path = if config.path.is_empty() { "/" } else { &config.path };
        let (name, namespace) = (&self.name, &self.namespace);
        let url = format!("https://{name}.{namespace}.svc:{port}{path}?{query}");
        let message = format!("Post {}: {error}", go_compat::quote(&url));
        ExchangeError::Fault(Fault { kind: FaultKind::Dns, message })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ToEndpoint>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Knows one endpoint, which was chosen before.
struct Settled(HostPort);

impl Resolve for Settled {
    fn resolve(&self, _: &ServiceName) -> Result<HostPort, ResolveError> {
        Ok(self.0.clone())
    }
}

/// Finds hosts of URLs as the services know them, and services by their names.
struct HostsOnly(Arc<dyn Services>);

impl Resolve for HostsOnly {
    fn resolve(&self, service: &ServiceName) -> Result<HostPort, ResolveError> {
        self.0.resolve(service)
    }

    fn address(&self, host: &str, port: u16) -> Option<std::net::SocketAddr> {
        self.0.address(host, port)
    }
}

fn build(
    config: &ClientConfig,
    surroundings: &HookEnvironment,
    service_port: u16,
    resolver: Option<Arc<dyn Resolve>>,
) -> Result<Client, ExchangeError> {
    let target = hook_target(config, service_port).map_err(no_client)?;
    let target = with_access(target, &surroundings.access);
    let target = Target { user_agent: USER_AGENT, ..target };
    let observe = Arc::clone(&surroundings.observe);
    Client::new(target, resolver, surroundings.limits.clone(), observe).map_err(|error| {
        let message = format!("could not get REST client: {error}");
        match error {
            // The certificate is this server's own, and may be in a file that can not be opened now.
            BuildError::ClientCertificate(_) => {
                ExchangeError::Fault(Fault { kind: FaultKind::Local, message })
            }
            _ => ExchangeError::NoClient(message),
        }
    })
}

fn no_client(error: impl std::fmt::Display) -> ExchangeError {
    ExchangeError::NoClient(error.to_string())
}

fn with_access(target: Target, access: &AccessTable) -> Target {
    let (host, port) = match &target.destination {
        Destination::Url { host, port, .. } => (host.clone(), port.unwrap_or(HTTPS_PORT)),
        Destination::Service(service) => (service.dns_name(), service.port),
    };
    let access = access.access(&host, port);
    Target { credentials: access.credentials, client_certificate: access.identity, ..target }
}
