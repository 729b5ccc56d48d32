//! The way to one service that hooks are at.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use admission::{ClientConfig, Endpoint};
use breaker::{Breaker, BreakerOptions, Halt, Sign};
use bytes::Bytes;
use remote::{
    Client, Fault, FaultKind, HostPort, Limits, Reply, Resolve, ResolveError, ServiceName, Target,
};
use tokio::time::Instant;

use crate::credentials::AccessTable;

/// The longest answer of a hook in bytes, unless told.
pub const RESPONSE_BYTES_MAX: usize = 4 << 20;

/// The most endpoints of one service that connections are kept to. A service with more is called
/// just as well, but with more handshakes.
const ENDPOINTS_MAX: usize = 32;

/// The port of HTTPS.
const HTTPS_PORT: u16 = 443;

/// Knows the services of the cluster from memory; see [`Resolve`].
pub trait Services: Resolve {
    /// The TCP ports of a service, of which hooks of v1alpha1 take the only one.
    ///
    /// # Errors
    /// [`ResolveError`] if there is no such service.
    fn tcp_ports(&self, namespace: &str, name: &str) -> Result<Vec<u16>, ResolveError>;
}

/// What all connections have in common.
pub struct Surroundings {
    /// Where services are. Without it they are found by their DNS names.
    pub services: Option<Arc<dyn Services>>,
    /// Who we are to them.
    pub access: AccessTable,
    /// What bounds each client.
    pub limits: Limits,
    /// When a service is left alone.
    pub breaker: BreakerOptions,
    /// Is told about certificates.
    pub observe: Arc<dyn remote::Observe>,
}

impl Default for Surroundings {
    fn default() -> Self {
        Self {
            services: None,
            access: AccessTable::default(),
            limits: Limits { body_bytes_max: RESPONSE_BYTES_MAX, ..Limits::default() },
            breaker: BreakerOptions::default(),
            observe: Arc::new(remote::Unobserved),
        }
    }
}

/// The way to one service, for all hooks that are there.
pub(crate) struct Connection {
    pub(crate) config: ClientConfig,
    surroundings: Arc<Surroundings>,
    way: Way,
    breaker: Arc<Breaker>,
}

enum Way {
    /// There is none, for this reason.
    None(String),
    /// A fixed host, or a service that is found by its DNS name.
    Fixed(Arc<Client>),
    /// A service whose endpoint is chosen anew for each call.
    Service(Service),
}

struct Service {
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

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExchangeError {
    #[error("{0}")]
    NoClient(String),
    #[error(transparent)]
    Halted(#[from] Halt),
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl Connection {
    /// Prepares the way; connects to nobody yet.
    pub(crate) fn new(config: ClientConfig, surroundings: Arc<Surroundings>) -> Self {
        let way = way(&config, &surroundings);
        let breaker = Arc::new(Breaker::new(surroundings.breaker, |_| {}));
        Self { config, surroundings, way, breaker }
    }

    pub(crate) fn is_for(&self, config: &ClientConfig, surroundings: &Arc<Surroundings>) -> bool {
        self.config == *config && Arc::ptr_eq(&self.surroundings, surroundings)
    }

    /// Sends a body and waits for the answer, once: a call that was sent is never sent again.
    ///
    /// A service that is nowhere is no matter of the breaker: finding that out takes no time, and it
    /// must not be left alone when it comes up.
    pub(crate) async fn exchange(
        &self,
        query: &str,
        body: Bytes,
        limit: Duration,
    ) -> Result<Reply, ExchangeError> {
        let client = self.client(query)?;
        let pass = self.breaker.admit(Instant::now().into_std())?;
        let outcome = client.post(query, body, limit).await;
        let sign = outcome.as_ref().map_or(Sign::Dead, |reply| Sign::of_status(reply.status));
        pass.ended(sign, Instant::now().into_std());
        Ok(outcome?)
    }

    /// The client that makes this call.
    fn client(&self, query: &str) -> Result<Arc<Client>, ExchangeError> {
        match &self.way {
            Way::None(why) => Err(ExchangeError::NoClient(why.clone())),
            Way::Fixed(client) => Ok(Arc::clone(client)),
            Way::Service(service) => service.client(&self.config, &self.surroundings, query),
        }
    }
}

impl Service {
    /// The client for the endpoint that is this call's.
    fn client(
        &self,
        config: &ClientConfig,
        surroundings: &Surroundings,
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
                let client = build(config, surroundings, name.port, Some(resolver))
                    .map_err(ExchangeError::NoClient)?;
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
                    gotext::quote(&service)
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
        let message = format!("Post {}: {error}", gotext::quote(&url));
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

fn way(config: &ClientConfig, surroundings: &Surroundings) -> Way {
    let built = match (&config.endpoint, &surroundings.services) {
        (Endpoint::Service { namespace, name, port }, Some(services)) => {
            // An unusable bundle is found now, though clients are made for endpoints only.
            return match config.target(HTTPS_PORT) {
                Err(error) => Way::None(error.to_string()),
                Ok(_) => Way::Service(Service {
                    services: Arc::clone(services),
                    namespace: namespace.clone(),
                    name: name.clone(),
                    port: *port,
                    clients: Mutex::default(),
                }),
            };
        }
        (_, Some(services)) => {
            let resolver: Arc<dyn Resolve> = Arc::new(HostsOnly(Arc::clone(services)));
            build(config, surroundings, HTTPS_PORT, Some(resolver))
        }
        (_, None) => build(config, surroundings, HTTPS_PORT, None),
    };
    built.map_or_else(Way::None, |client| Way::Fixed(Arc::new(client)))
}

fn build(
    config: &ClientConfig,
    surroundings: &Surroundings,
    service_port: u16,
    resolver: Option<Arc<dyn Resolve>>,
) -> Result<Client, String> {
    let target = config.target(service_port).map_err(|error| error.to_string())?;
    let target = with_access(target, &surroundings.access);
    let observe = Arc::clone(&surroundings.observe);
    let client = Client::new(target, resolver, surroundings.limits.clone(), observe);
    client.map_err(|error| format!("could not get REST client: {error}"))
}

fn with_access(target: Target, access: &AccessTable) -> Target {
    let (host, port) = match &target.place {
        remote::Place::Url { host, port, .. } => (host.clone(), port.unwrap_or(HTTPS_PORT)),
        remote::Place::Service(service) => (service.dns_name(), service.port),
    };
    let access = access.access(&host, port);
    Target { credentials: access.credentials, identity: access.identity, ..target }
}
