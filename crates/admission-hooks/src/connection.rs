//! The way to one service that hooks are at.

use std::sync::Arc;
use std::time::Duration;

use admission::ClientConfig;
use bytes::Bytes;
use https_client::{Client, Fault, FaultKind, Limits, Reply, Resolve, ResolveError};

use crate::credentials::AccessTable;
use crate::pool::{Key, Pool};
use crate::way::Way;

/// The longest answer of a hook in bytes, unless told. An answer to a long question may be longer, see
/// [`https_client::RESPONSE_SIZE_FACTOR`].
pub const RESPONSE_BYTES_MAX: usize = 4 << 20;

/// How many times longer than a review an answer can become that repeats its object in a patch. Go escapes
/// each `<` with six characters, and base64 makes four of three.
const REPETITION_FACTOR: usize = 8;

/// The most calls of one hook that are in flight, unless told; one user has at most half of them. A
/// server works on some 200 writes at a time, so that one user with a slow hook leaves room for others.
pub const CALLS_IN_FLIGHT_MAX: usize = 256;

/// Knows the services of the cluster from memory; see [`Resolve`].
pub trait Services: Resolve {
    /// The TCP ports of a service, of which hooks of v1alpha1 take the only one.
    ///
    /// # Errors
    /// [`ResolveError`] if there is no such service.
    fn tcp_ports(&self, namespace: &str, name: &str) -> Result<Vec<u16>, ResolveError>;
}

/// What all connections have in common.
pub struct HookEnvironment {
    /// Where services are. Without it they are found by their DNS names.
    pub services: Option<Arc<dyn Services>>,
    /// Who we are to them.
    pub access: AccessTable,
    /// What bounds each client.
    pub limits: Limits,
    /// The most calls of each hook that are in flight.
    pub calls_in_flight_max: usize,
    /// Is told about certificates.
    pub observe: Arc<dyn https_client::CertificateObserver>,
}

impl Default for HookEnvironment {
    fn default() -> Self {
        Self {
            services: None,
            access: AccessTable::default(),
            limits: Limits { body_bytes_max: RESPONSE_BYTES_MAX, ..Limits::default() },
            calls_in_flight_max: CALLS_IN_FLIGHT_MAX,
            observe: Arc::new(https_client::NoCertificateObserver),
        }
    }
}

/// The way to one service, for all hooks that are there.
pub(crate) struct Connection {
    pub(crate) config: ClientConfig,
    surroundings: Arc<HookEnvironment>,
    /// Where the clients are, if they were used of late.
    pool: Arc<Pool<Way>>,
    key: Key,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExchangeError {
    /// The configuration of the hook leads nowhere.
    #[error("{0}")]
    NoClient(String),
    /// The answer to a long question is longer than permitted. Whoever wrote the object may have brought
    /// that about, so this is a limit of ours and no failure of the hook.
    #[error(transparent)]
    TooLarge(Fault),
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl Connection {
    /// Prepares nothing yet: there may be many hooks that are never called.
    pub(crate) fn new(
        config: ClientConfig,
        surroundings: Arc<HookEnvironment>,
        pool: Arc<Pool<Way>>,
    ) -> Self {
        let key = pool.new_key();
        Self { config, surroundings, pool, key }
    }

    pub(crate) fn is_in(&self, surroundings: &Arc<HookEnvironment>) -> bool {
        Arc::ptr_eq(&self.surroundings, surroundings)
    }

    /// Sends a body and waits for the answer, once: a call that was sent is never sent again.
    pub(crate) async fn exchange(
        &self,
        query: &str,
        body: Bytes,
        timeout: Duration,
    ) -> Result<Reply, ExchangeError> {
        let client = self.client(query)?;
        let is_long = body.len() > self.surroundings.limits.body_bytes_max / REPETITION_FACTOR;
        client.post(query, body, timeout).await.map_err(|fault| match fault.kind {
            FaultKind::TooLarge if is_long => ExchangeError::TooLarge(fault),
            _ => ExchangeError::Fault(fault),
        })
    }

    /// The client that makes this call. A failure to make one is not kept: what it is made of may be
    /// in files, which may change.
    fn client(&self, query: &str) -> Result<Arc<Client>, ExchangeError> {
        let way = match self.pool.get(self.key) {
            Some(way) => way,
            None => self.pool.put(self.key, Way::new(&self.config, &self.surroundings)?),
        };
        way.client(&self.config, &self.surroundings, query)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.pool.forget(self.key);
    }
}
