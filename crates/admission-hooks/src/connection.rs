//! The way to one service that hooks are at.

use std::sync::Arc;
use std::time::Duration;

use admission::ClientConfig;
use breaker::{Breaker, BreakerOptions, Halt, Sign};
use bytes::Bytes;
use remote::{Client, Fault, Limits, Reply, Resolve, ResolveError};
use tokio::time::Instant;

use crate::credentials::AccessTable;
use crate::pool::{Key, Pool};
use crate::way::Way;

/// The longest answer of a hook in bytes, unless told.
pub const RESPONSE_BYTES_MAX: usize = 4 << 20;

/// The most idle connections to one service. Hooks of one request are asked at the same time, so that
/// ten hooks take ten connections for each request that is under way, and whoever finds none that is idle
/// pays for a handshake, which costs more than all the rest of a call.
const IDLE_CONNECTIONS_MAX: usize = 128;

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
            limits: Limits {
                body_bytes_max: RESPONSE_BYTES_MAX,
                idle_connections_max: IDLE_CONNECTIONS_MAX,
                ..Limits::default()
            },
            breaker: BreakerOptions::default(),
            observe: Arc::new(remote::Unobserved),
        }
    }
}

/// The way to one service, for all hooks that are there.
pub(crate) struct Connection {
    pub(crate) config: ClientConfig,
    surroundings: Arc<Surroundings>,
    breaker: Arc<Breaker>,
    /// Where the clients are, if they were used of late.
    pool: Arc<Pool<Way>>,
    key: Key,
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
    /// Prepares nothing yet: there may be many hooks that are never called.
    pub(crate) fn new(
        config: ClientConfig,
        surroundings: Arc<Surroundings>,
        pool: Arc<Pool<Way>>,
    ) -> Self {
        let breaker = Arc::new(Breaker::new(surroundings.breaker, |_| {}));
        let key = pool.new_key();
        Self { config, surroundings, breaker, pool, key }
    }

    pub(crate) fn is_in(&self, surroundings: &Arc<Surroundings>) -> bool {
        Arc::ptr_eq(&self.surroundings, surroundings)
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
