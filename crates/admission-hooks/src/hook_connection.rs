//! The connection to one service that hooks run in.

use std::sync::Arc;
use std::time::Duration;

use admission::ClientConfig;
use bytes::Bytes;
use concurrency_limit::ConcurrencyLimit;
use https_client::{Client, Fault, FaultKind, Limits, Reply, ResolveError, ServiceResolver};

use crate::client_pool::{ClientPool, PoolKey};
use crate::hook_clients::HookClients;
use crate::response_limits::{ResponseBytesPermit, new_response_bytes_limit};
use crate::service_credentials::ServiceCredentialsTable;

/// The default limit on the bytes of a response. The response to a long review may be longer, see
/// [`https_client::RESPONSE_SIZE_FACTOR`].
pub const RESPONSE_BYTES_MAX: usize = 4 << 20;

/// How many times longer than a review a response can be that repeats the object in a patch. Go escapes
/// each `<` with six characters, and base64 encodes three bytes as four.
const REPETITION_FACTOR: usize = 8;

/// The default limit on the calls in flight of one hook. One user has at most half of them. A server
/// processes some 200 writes at a time, so that one user with a slow hook leaves capacity for others.
pub const CALLS_IN_FLIGHT_MAX: usize = 256;

/// Resolves services of the cluster without I/O; see [`ServiceResolver`].
pub trait ClusterServices: ServiceResolver {
    /// Returns the TCP ports of a service. A v1alpha1 hook uses the only one.
    ///
    /// # Errors
    /// [`ResolveError`] if there is no such service.
    fn tcp_ports(&self, namespace: &str, name: &str) -> Result<Vec<u16>, ResolveError>;
}

/// The settings that all connections share.
pub struct HookEnvironment {
    /// Resolves services. Without it, services are resolved by their DNS names.
    pub cluster_services: Option<Arc<dyn ClusterServices>>,
    /// The credentials of this server for each service.
    pub service_credentials: ServiceCredentialsTable,
    /// The limits of each client.
    pub client_limits: Limits,
    /// The limit on the calls in flight of each hook.
    pub calls_in_flight_max: usize,
    /// Limits the bytes of the responses of all hooks that are being read; see [`new_response_bytes_limit`].
    pub response_bytes_limit: Arc<ConcurrencyLimit>,
    /// Receives reports about certificates.
    pub certificate_observer: Arc<dyn https_client::CertificateObserver>,
}

impl Default for HookEnvironment {
    fn default() -> Self {
        Self {
            cluster_services: None,
            service_credentials: ServiceCredentialsTable::default(),
            client_limits: Limits {
                response_body_bytes_max: RESPONSE_BYTES_MAX,
                ..Limits::default()
            },
            calls_in_flight_max: CALLS_IN_FLIGHT_MAX,
            response_bytes_limit: new_response_bytes_limit(RESPONSE_BYTES_MAX),
            certificate_observer: Arc::new(https_client::NoCertificateObserver),
        }
    }
}

/// The connection to one service, shared by all hooks that run in it.
pub(crate) struct HookConnection {
    pub(crate) client_config: ClientConfig,
    hook_environment: Arc<HookEnvironment>,
    /// Holds the clients that were used recently.
    client_pool: Arc<ClientPool<HookClients>>,
    key: PoolKey,
}

/// Why an exchange has no response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExchangeError {
    /// No client can be built from the configuration of the hook.
    #[error("{0}")]
    NoClient(String),
    /// The response to a long review is too long. The author of the object can cause that, so this is a
    /// limit of this server and no failure of the hook.
    #[error(transparent)]
    TooLarge(Fault),
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl HookConnection {
    /// Creates a connection without clients; the first call builds one.
    pub(crate) fn new(
        client_config: ClientConfig,
        environment: Arc<HookEnvironment>,
        pool: Arc<ClientPool<HookClients>>,
    ) -> Self {
        let key = pool.new_pool_key();
        Self { client_config, hook_environment: environment, client_pool: pool, key }
    }

    pub(crate) fn uses_environment(&self, environment: &Arc<HookEnvironment>) -> bool {
        Arc::ptr_eq(&self.hook_environment, environment)
    }

    /// Sends a body and waits for the response, whose bytes count for the user until the second value is dropped. It never
    /// sends a body twice.
    pub(crate) async fn exchange(
        &self,
        query: &str,
        body: Bytes,
        timeout: Duration,
        user: &str,
    ) -> Result<(Reply, ResponseBytesPermit), ExchangeError> {
        let client = self.client_for_call(query)?;
        let mut answer_bytes =
            ResponseBytesPermit::new(&self.hook_environment.response_bytes_limit, user);
        let was_last_evaluation_long = body.len()
            > self.hook_environment.client_limits.response_body_bytes_max / REPETITION_FACTOR;
        let reply = client.post_counting_bytes(query, body, timeout, &mut answer_bytes).await;
        let reply = reply.map_err(|fault| match fault.kind {
            FaultKind::TooLarge if was_last_evaluation_long => ExchangeError::TooLarge(fault),
            _ => ExchangeError::Fault(fault),
        })?;
        Ok((reply, answer_bytes))
    }

    /// Returns the client for a call. A failure to build one is not cached, because the files that a client
    /// is built from may change.
    fn client_for_call(&self, query: &str) -> Result<Arc<Client>, ExchangeError> {
        let clients = match self.client_pool.get(self.key) {
            Some(clients) => clients,
            None => self
                .client_pool
                .insert(self.key, HookClients::new(&self.client_config, &self.hook_environment)?),
        };
        clients.client_for_call(&self.client_config, &self.hook_environment, query)
    }
}

impl Drop for HookConnection {
    fn drop(&mut self) {
        self.client_pool.remove(self.key);
    }
}
