//! Pools of connections to one target.
//!
//! A peer limits the requests that one HTTP/2 connection carries at the same time. One more waits in
//! this process until it is out of time, and to its caller that looks as if the peer were slow. So a
//! pool takes no more requests than a connection carries, and the next request opens another pool.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::Full;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::connect::Connector;
use crate::limits::{HEAD_BYTES_MIN, Limits};

/// The most requests in one pool. RFC 9113 recommends that a peer permits no fewer on a connection.
const REQUESTS_MAX: usize = 100;

type Http = legacy::Client<Connector, Full<Bytes>>;

/// As many pools as the requests at one time have needed.
pub(crate) struct Pools {
    limits: Limits,
    connector: Connector,
    all: Mutex<Vec<Arc<Pool>>>,
}

struct Pool {
    http: Http,
    n_requests: AtomicUsize,
}

/// A place for one request. Dropping it makes room for another.
pub(crate) struct Place(Arc<Pool>);

impl Pools {
    pub(crate) fn new(limits: &Limits, connector: Connector) -> Self {
        Self { limits: limits.clone(), connector, all: Mutex::default() }
    }

    /// A place in the first pool that has one.
    pub(crate) fn acquire(&self) -> Place {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        // Places are taken only while the pools are locked.
        let free = all.iter().find(|pool| pool.n_requests.load(Ordering::Relaxed) < REQUESTS_MAX);
        let pool = free.cloned().unwrap_or_else(|| {
            let http = builder(&self.limits).build(self.connector.clone());
            let pool = Arc::new(Pool { http, n_requests: AtomicUsize::new(0) });
            all.push(Arc::clone(&pool));
            pool
        });
        pool.n_requests.fetch_add(1, Ordering::Relaxed);
        Place(pool)
    }
}

impl Place {
    pub(crate) fn http(&self) -> &Http {
        &self.0.http
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.n_requests.fetch_sub(1, Ordering::Relaxed);
    }
}

fn builder(limits: &Limits) -> legacy::Builder {
    let head_bytes_max = limits.head_bytes_max.max(HEAD_BYTES_MIN);
    let mut builder = legacy::Client::builder(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(limits.idle_timeout)
        .pool_max_idle_per_host(limits.idle_connections_max)
        .http1_max_buf_size(head_bytes_max)
        .http1_max_headers(limits.headers_max)
        .http2_max_header_list_size(u32::try_from(head_bytes_max).unwrap_or(u32::MAX))
        .http2_keep_alive_interval(limits.ping_after)
        .http2_keep_alive_timeout(limits.ping_timeout)
        .http2_keep_alive_while_idle(true);
    builder
}
