//! The HTTPS clients for one service.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use admission::{ClientConfig, HookEndpoint};
use https_client::{
    BuildError, Client, Destination, Fault, FaultKind, HostPort, ResolveError, ServiceName,
    ServiceResolver, Target,
};

use crate::hook_connection::{ClusterServices, ExchangeError, HookEnvironment};
use crate::hook_target::hook_target;
use crate::service_credentials::ServiceCredentialsTable;

/// The `User-Agent` of calls.
const USER_AGENT: &str = "portcullis-admission";

/// The maximum number of endpoints of one service whose clients are pooled. Calls to a service with more endpoints
/// work, with more handshakes.
const ENDPOINTS_MAX: usize = 32;

/// The port of HTTPS.
const HTTPS_PORT: u16 = 443;

/// The HTTPS clients for one service.
pub(crate) enum HookClients {
    /// One client for a fixed host, or for a service that is resolved by its DNS name.
    Fixed(Arc<Client>),
    /// One client for each endpoint of a service; each call chooses an endpoint.
    Service(ServiceClients),
}

pub(crate) struct ServiceClients {
    cluster_services: Arc<dyn ClusterServices>,
    namespace: String,
    name: String,
    port: Option<u16>,
    /// The clients of the endpoints; the most recently used one is the last.
    clients: Mutex<Vec<EndpointClient>>,
}

struct EndpointClient {
    port: u16,
    at: HostPort,
    client: Arc<Client>,
}

impl HookClients {
    /// Builds the clients that need no endpoint. It opens no connection.
    pub(crate) fn new(
        config: &ClientConfig,
        environment: &HookEnvironment,
    ) -> Result<Self, ExchangeError> {
        let resolver: Option<Arc<dyn ServiceResolver>> =
            match (&config.hook_endpoint, &environment.cluster_services) {
                (HookEndpoint::Service { namespace, name, port }, Some(services)) => {
                    // Reports an unusable CA bundle now, although clients are built for each endpoint later.
                    hook_target(config, HTTPS_PORT).map_err(no_client_error)?;
                    return Ok(Self::Service(ServiceClients {
                        cluster_services: Arc::clone(services),
                        namespace: namespace.clone(),
                        name: name.clone(),
                        port: *port,
                        clients: Mutex::default(),
                    }));
                }
                (_, Some(services)) => Some(Arc::new(HostResolver(Arc::clone(services)))),
                (_, None) => None,
            };
        build_client(config, environment, HTTPS_PORT, resolver).map(Arc::new).map(Self::Fixed)
    }

    /// Returns the client for a call with this query.
    pub(crate) fn client_for_call(
        &self,
        config: &ClientConfig,
        environment: &HookEnvironment,
        query: &str,
    ) -> Result<Arc<Client>, ExchangeError> {
        match self {
            Self::Fixed(client) => Ok(Arc::clone(client)),
            Self::Service(service) => service.client_for_call(config, environment, query),
        }
    }
}

impl ServiceClients {
    /// Chooses an endpoint for a call and returns its client.
    fn client_for_call(
        &self,
        config: &ClientConfig,
        environment: &HookEnvironment,
        query: &str,
    ) -> Result<Arc<Client>, ExchangeError> {
        let port = self
            .resolve_port()
            .map_err(|error| self.unresolved_service_error(&error, HTTPS_PORT, config, query))?;
        let (namespace, name) = (self.namespace.clone(), self.name.clone());
        let name = ServiceName { namespace, name, port: Some(port) };
        // The connections to an endpoint that is no longer ready end with their running calls.
        self.lock().retain(|it| {
            it.port == port && self.cluster_services.is_current_endpoint(&name, &it.at)
        });
        let at = self.cluster_services.resolve_service(&name);
        let at = at.map_err(|error| self.unresolved_service_error(&error, port, config, query))?;
        let mut clients = self.lock();
        let known = clients.iter().position(|it| it.port == port && it.at == at);
        let found = match known {
            Some(idx) => clients.remove(idx),
            None => {
                let resolver: Arc<dyn ServiceResolver> =
                    Arc::new(FixedEndpointResolver(at.clone()));
                let client = build_client(config, environment, port, Some(resolver))?;
                EndpointClient { port, at, client: Arc::new(client) }
            }
        };
        let client = Arc::clone(&found.client);
        if clients.len() >= ENDPOINTS_MAX {
            clients.remove(0);
        }
        clients.push(found);
        Ok(client)
    }

    /// The configured port; otherwise the only port of the service, or 443 if it has several.
    fn resolve_port(&self) -> Result<u16, ResolveError> {
        if let Some(port) = self.port {
            return Ok(port);
        }
        match self.cluster_services.tcp_ports(&self.namespace, &self.name)?.as_slice() {
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

    /// The error of a call whose service cannot be resolved, in the words of Go's HTTP client.
    fn unresolved_service_error(
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

    fn lock(&self) -> MutexGuard<'_, Vec<EndpointClient>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Resolves every service to one endpoint.
struct FixedEndpointResolver(HostPort);

impl ServiceResolver for FixedEndpointResolver {
    fn resolve_service(&self, _: &ServiceName) -> Result<HostPort, ResolveError> {
        Ok(self.0.clone())
    }
}

/// Resolves the hosts of URLs with the service directory.
struct HostResolver(Arc<dyn ClusterServices>);

impl ServiceResolver for HostResolver {
    fn resolve_service(&self, service: &ServiceName) -> Result<HostPort, ResolveError> {
        self.0.resolve_service(service)
    }

    fn override_address(&self, host: &str, port: u16) -> Option<std::net::SocketAddr> {
        self.0.override_address(host, port)
    }
}

fn build_client(
    config: &ClientConfig,
    environment: &HookEnvironment,
    service_port: u16,
    resolver: Option<Arc<dyn ServiceResolver>>,
) -> Result<Client, ExchangeError> {
    let target = hook_target(config, service_port).map_err(no_client_error)?;
    let target = with_credentials(target, &environment.service_credentials);
    let target = Target { user_agent: USER_AGENT, ..target };
    let observer = Arc::clone(&environment.certificate_observer);
    Client::new(target, resolver, environment.client_limits.clone(), observer).map_err(|error| {
        let message = format!("could not get REST client: {error}");
        match error {
            // The client certificate belongs to this server; its file may be unreadable for now.
            BuildError::ClientCertificate(_) => {
                ExchangeError::Fault(Fault { kind: FaultKind::Local, message })
            }
            _ => ExchangeError::NoClient(message),
        }
    })
}

fn no_client_error(error: impl std::fmt::Display) -> ExchangeError {
    ExchangeError::NoClient(error.to_string())
}

fn with_credentials(target: Target, credentials: &ServiceCredentialsTable) -> Target {
    let (host, port) = match &target.destination {
        Destination::Url { host, port, .. } => (host.clone(), port.unwrap_or(HTTPS_PORT)),
        Destination::Service(service) => {
            (service.service_dns_name(), service.port.unwrap_or(HTTPS_PORT))
        }
    };
    let access = credentials.credentials_for_host(&host, port);
    Target {
        credentials: access.header_credentials,
        client_certificate: access.client_certificate,
        ..target
    }
}
