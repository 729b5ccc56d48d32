//! Sends the reviews of a webhook to the ready endpoints of a Service.
//!
//! Every call chooses an endpoint, and every endpoint has a client with connections of its own. An endpoint that is no longer
//! ready loses its client before the next call: idle connections close at once, and others when their calls end.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use authz_webhook::{ResponseFuture, Transport, TransportError, TransportErrorKind};
use bytes::Bytes;
use https_client::{
    BuildError, CertificateObserver, Client, HostPort, Limits, ResolveError, ServiceName,
    ServiceResolver, Target,
};

use crate::webhook_transport::WebhookTransport;

/// The maximum number of endpoints of one webhook that have a client. The least recently used client is dropped first.
const ENDPOINTS_MAX: usize = 64;

/// Posts reviews to the endpoints of one Service.
pub(crate) struct ServiceTransport {
    service_name: ServiceName,
    service_resolver: Arc<dyn ServiceResolver>,
    connection_target: Target,
    connection_limits: Limits,
    certificate_observer: Arc<dyn CertificateObserver>,
    timeout: Duration,
    endpoint_url_for_messages: String,
    url: String,
    /// The clients by the address of the endpoint, the one that was used last at the end.
    clients_by_endpoint: Mutex<Vec<(HostPort, Arc<WebhookTransport>)>>,
}

impl ServiceTransport {
    /// Creates a transport. `endpoint` is the URL of the target, for messages.
    ///
    /// # Errors
    /// No client can be made for the target.
    pub(crate) fn new(
        service: ServiceName,
        resolver: Arc<dyn ServiceResolver>,
        target: Target,
        limits: Limits,
        observer: Arc<dyn CertificateObserver>,
        endpoint: &str,
        timeout: Duration,
    ) -> Result<Self, BuildError> {
        let (first_resolver, first_observer) = (Arc::clone(&resolver), Arc::clone(&observer));
        let client =
            Client::new(target.clone(), Some(first_resolver), limits.clone(), first_observer)?;
        let url = WebhookTransport::new(Arc::new(client), endpoint, timeout).url().to_owned();
        let endpoint = endpoint.to_owned();
        let clients = Mutex::default();
        Ok(Self {
            service_name: service,
            service_resolver: resolver,
            connection_target: target,
            connection_limits: limits,
            certificate_observer: observer,
            timeout,
            endpoint_url_for_messages: endpoint,
            url,
            clients_by_endpoint: clients,
        })
    }

    /// Chooses a ready endpoint and returns its transport.
    fn choose_endpoint_transport(&self) -> Result<Arc<WebhookTransport>, TransportError> {
        let mut clients = self.clients_by_endpoint.lock().unwrap_or_else(PoisonError::into_inner);
        clients.retain(|(at, _)| self.service_resolver.is_current_endpoint(&self.service_name, at));
        let at = self
            .service_resolver
            .resolve_service(&self.service_name)
            .map_err(|error| self.transport_error(TransportErrorKind::Connect, &error))?;
        let chosen = match clients.iter().position(|(own, _)| *own == at) {
            Some(idx) => clients.remove(idx),
            None => {
                let resolver = Arc::new(FixedEndpointResolver(at.clone()));
                let client = Client::new(
                    self.connection_target.clone(),
                    Some(resolver),
                    self.connection_limits.clone(),
                    Arc::clone(&self.certificate_observer),
                )
                .map_err(|error| self.transport_error(TransportErrorKind::Other, &error))?;
                let transport = WebhookTransport::new(
                    Arc::new(client),
                    &self.endpoint_url_for_messages,
                    self.timeout,
                );
                (at, Arc::new(transport))
            }
        };
        let transport = Arc::clone(&chosen.1);
        if clients.len() >= ENDPOINTS_MAX {
            clients.remove(0);
        }
        clients.push(chosen);
        Ok(transport)
    }

    fn transport_error(
        &self,
        kind: TransportErrorKind,
        error: &dyn std::fmt::Display,
    ) -> TransportError {
        TransportError::new(kind, format!("Post {}: {error}", go_compat::quote(&self.url)))
    }
}

impl Transport for ServiceTransport {
    fn send(&self, body: Bytes, limit: Duration) -> ResponseFuture<'_> {
        Box::pin(async move {
            let transport = self.choose_endpoint_transport()?;
            transport.send(body, limit).await
        })
    }

    fn url(&self) -> &str {
        &self.url
    }
}

/// Resolves the Service to the endpoint that was chosen for a client.
struct FixedEndpointResolver(HostPort);

impl ServiceResolver for FixedEndpointResolver {
    fn resolve_service(&self, _: &ServiceName) -> Result<HostPort, ResolveError> {
        Ok(self.0.clone())
    }
}
