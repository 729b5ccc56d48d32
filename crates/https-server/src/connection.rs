//! The facts about a connection, and its current activity.

use std::any::Any;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustls_pki_types::CertificateDer;
use tokio::sync::Semaphore;

use crate::connection_occupancy::EvictionBlocker;
use crate::connection_table::{ConnectionSlot, TooManyConnections};
use crate::limits::Limits;

/// The negotiated HTTP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HttpProtocol {
    /// HTTP/1.1, with one request at a time.
    Http1,
    /// HTTP/2, with many requests at a time.
    Http2,
}

/// The bytes that a peer may send before its first request. The longest head, with its encoding, is shorter.
const BYTES_BEFORE_REQUESTS_MAX: u64 = 256 << 10;

/// The facts that all requests of one connection share.
#[derive(Debug)]
pub struct Connection {
    /// The address of the client.
    pub peer_address: SocketAddr,
    /// The HTTP version that both sides agreed on.
    pub protocol: HttpProtocol,
    /// The certificates that the peer sent, its own first; empty if it sent none. The handshake
    /// proved that the peer holds the key of the first one. Nothing else about them was verified.
    pub peer_certificates: Arc<[CertificateDer<'static>]>,
    /// The identity that the caller computed from the certificates. Its type is erased, so that this crate generates
    /// the code of a connection once, and not each crate that serves requests.
    cached_identity: Mutex<Option<Arc<dyn Any + Send + Sync>>>,
    pub(crate) connection_activity: Arc<ConnectionActivity>,
    pub(crate) connection_slot: Arc<ConnectionSlot>,
    /// The requests that may run at one time. Dropping the stream of a request frees its slot of HTTP/2 at
    /// once, but the request continues to run.
    pub(crate) request_permits: Arc<Semaphore>,
    /// The permits that the first authenticated request adds to `request_permits`.
    n_withheld_permits: usize,
}

impl Connection {
    /// A connection without activity, on which nobody has authenticated.
    pub(crate) fn new(
        peer: SocketAddr,
        protocol: HttpProtocol,
        certificates: Arc<[CertificateDer<'static>]>,
        slot: Arc<ConnectionSlot>,
        limits: &Limits,
    ) -> Self {
        let n_permits = (limits.concurrent_streams_max as usize).max(1);
        let n_first_permits = (limits.unauthenticated_streams_max as usize).clamp(1, n_permits);
        Self {
            peer_address: peer,
            protocol,
            peer_certificates: certificates,
            cached_identity: Mutex::default(),
            connection_activity: Arc::default(),
            connection_slot: slot,
            request_permits: Arc::new(Semaphore::new(n_first_permits)),
            n_withheld_permits: n_permits - n_first_permits,
        }
    }

    /// Records that a request of this connection was authenticated as a user who is not anonymous. The connection
    /// counts for the first such user, and no longer for its address. Administrators have no limit.
    ///
    /// # Errors
    /// [`TooManyConnections`] if the user has too many connections and none of them is idle, or if the connection
    /// belongs to the reserve for administrators. The caller refuses the request and closes the connection.
    pub fn record_authenticated_user(
        &self,
        user: &str,
        is_administrator: bool,
    ) -> Result<(), TooManyConnections> {
        if self.connection_slot.assign_connection_to_user(user, is_administrator)? {
            self.connection_activity.set_authenticated();
            self.request_permits.add_permits(self.n_withheld_permits);
        }
        Ok(())
    }

    /// The cached identity. `compute` derives it from the certificates for the first request, and
    /// again once `is_current` rejects the cached one; concurrent requests wait for it. An identity of another type
    /// counts as absent.
    pub fn get_or_compute_identity<T: Send + Sync + 'static>(
        &self,
        is_current: impl FnOnce(&T) -> bool,
        compute: impl FnOnce(&[CertificateDer<'static>]) -> T,
    ) -> Arc<T> {
        let mut cached = self.cached_identity.lock().unwrap_or_else(PoisonError::into_inner);
        let known = cached.clone().and_then(|known| known.downcast::<T>().ok());
        if let Some(known) = known.filter(|known| is_current(known)) {
            return known;
        }
        let identity = Arc::new(compute(&self.peer_certificates));
        *cached = Some(Arc::<T>::clone(&identity));
        identity
    }

    /// Requests the end of the connection after the active requests have their responses. HTTP/2
    /// peers receive GOAWAY, HTTP/1.1 peers `Connection: close`.
    pub fn close(&self) {
        self.connection_activity.is_close_requested.store(true, Ordering::Relaxed);
    }
}

/// Counters of the activity on a connection. Readers need recent and not ordered values, so all
/// accesses are relaxed.
#[derive(Debug, Default)]
pub(crate) struct ConnectionActivity {
    n_begun_requests: AtomicU64,
    n_active_requests: AtomicUsize,
    n_bytes_written: AtomicU64,
    /// The bytes that came before the first request.
    n_bytes_before_first_request: AtomicU64,
    is_authenticated: AtomicBool,
    is_write_blocked: AtomicBool,
    is_reading_request_head: AtomicBool,
    is_close_requested: AtomicBool,
    /// Set when a response body has passed on a watch event: other watches of the connection probably have
    /// the same event.
    expects_more_watch_events: AtomicBool,
}

/// A request that is active until its response is sent or abandoned.
#[derive(Debug)]
pub(crate) struct ActiveRequest {
    connection_activity: Arc<ConnectionActivity>,
    _eviction_blocker: EvictionBlocker,
}

impl ConnectionActivity {
    pub(crate) fn begin_request(self: &Arc<Self>, occupied: EvictionBlocker) -> ActiveRequest {
        self.is_reading_request_head.store(false, Ordering::Relaxed);
        self.n_begun_requests.fetch_add(1, Ordering::Relaxed);
        self.n_active_requests.fetch_add(1, Ordering::Relaxed);
        ActiveRequest { connection_activity: Arc::clone(self), _eviction_blocker: occupied }
    }

    /// Records bytes from the peer. Between requests they can only belong to the next request head.
    pub(crate) fn record_bytes_read(&self, count: usize) {
        if self.n_begun_requests() == 0 {
            self.n_bytes_before_first_request.fetch_add(count as u64, Ordering::Relaxed);
        }
        if self.n_active_requests() == 0 {
            self.is_reading_request_head.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn record_bytes_written(&self, count: usize) {
        self.n_bytes_written.fetch_add(count as u64, Ordering::Relaxed);
        self.is_write_blocked.store(false, Ordering::Relaxed);
    }

    pub(crate) fn set_write_blocked(&self, is_blocked: bool) {
        self.is_write_blocked.store(is_blocked, Ordering::Relaxed);
    }

    pub(crate) fn take_expects_more_watch_events(&self) -> bool {
        // Most polls find nothing, and a load is cheaper than a swap.
        self.expects_more_watch_events.load(Ordering::Relaxed)
            && self.expects_more_watch_events.swap(false, Ordering::Relaxed)
    }

    pub(crate) fn is_close_requested(&self) -> bool {
        self.is_close_requested.load(Ordering::Relaxed)
    }

    pub(crate) fn is_write_blocked(&self) -> bool {
        self.is_write_blocked.load(Ordering::Relaxed)
    }

    pub(crate) fn is_reading_request_head(&self) -> bool {
        self.is_reading_request_head.load(Ordering::Relaxed)
    }

    /// Records that somebody has authenticated.
    pub(crate) fn set_authenticated(&self) {
        self.is_authenticated.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_authenticated(&self) -> bool {
        self.is_authenticated.load(Ordering::Relaxed)
    }

    /// Whether the peer has sent more than the longest head of a request, and no request.
    pub(crate) fn has_sent_bytes_without_request(&self) -> bool {
        self.n_begun_requests() == 0
            && self.n_bytes_before_first_request.load(Ordering::Relaxed) > BYTES_BEFORE_REQUESTS_MAX
    }

    pub(crate) fn n_active_requests(&self) -> usize {
        self.n_active_requests.load(Ordering::Relaxed)
    }

    pub(crate) fn n_begun_requests(&self) -> u64 {
        self.n_begun_requests.load(Ordering::Relaxed)
    }

    pub(crate) fn n_bytes_written(&self) -> u64 {
        self.n_bytes_written.load(Ordering::Relaxed)
    }
}

impl ActiveRequest {
    /// Records that an event of a watch was handed over. An event mostly goes to many watches.
    pub(crate) fn record_watch_event(&self) {
        self.connection_activity.expects_more_watch_events.store(true, Ordering::Relaxed);
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.connection_activity.n_active_requests.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection_table::ConnectionTable;

    #[test]
    fn what_is_known_of_a_connection_is_made_again_when_it_is_old() {
        let peer = "127.0.0.1:1".parse().unwrap();
        let limits = Limits::default();
        let table = Arc::new(ConnectionTable::new(limits.clone(), Arc::new(|_| {})));
        let slot = Arc::new(table.admit_connection(peer).unwrap());
        let connection = Connection::new(peer, HttpProtocol::Http1, Arc::from([]), slot, &limits);
        let identity = |generation: u32| {
            *connection.get_or_compute_identity(|known| *known == generation, |_| generation)
        };
        assert_eq!([identity(1), identity(1), identity(2), identity(2)], [1, 1, 2, 2]);
        let kept = connection.get_or_compute_identity(|_| true, |_| 3_u32);
        assert_eq!(*kept, 2);
        let of_another_type = connection.get_or_compute_identity(|_| true, |_| "new");
        assert_eq!(*of_another_type, "new");
    }
}
