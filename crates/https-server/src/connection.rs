//! What is known of a connection, and what is going on in it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustls_pki_types::CertificateDer;

/// How requests are carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// One request after the other.
    Http1,
    /// Many requests at one time.
    Http2,
}

/// The facts that all requests of one connection share.
///
/// `T` is what the caller finds out from them and keeps for later requests, such as the user that a client
/// certificate stands for.
#[derive(Debug)]
pub struct Connection<T> {
    /// The address of the other side.
    pub peer: SocketAddr,
    /// The protocol that both sides agreed on.
    pub protocol: Protocol,
    /// The certificates that the peer sent, its own first; empty if it sent none. The peer has
    /// proved to hold the key of the first one. Nothing else about them was verified.
    pub certificates: Arc<[CertificateDer<'static>]>,
    identity: Mutex<Option<Arc<T>>>,
    pub(crate) activity: Arc<Activity>,
}

impl<T> Connection<T> {
    /// A connection with nothing going on in it.
    pub fn new(
        peer: SocketAddr,
        protocol: Protocol,
        certificates: Arc<[CertificateDer<'static>]>,
    ) -> Self {
        Self { peer, protocol, certificates, identity: Mutex::default(), activity: Arc::default() }
    }

    /// What `compute` makes of the certificates. It runs for the first request, and again when what
    /// was made is no longer current; requests that arrive meanwhile wait for it.
    pub fn identity(
        &self,
        is_current: impl FnOnce(&T) -> bool,
        compute: impl FnOnce(&[CertificateDer<'static>]) -> T,
    ) -> Arc<T> {
        let mut identity = self.identity.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = identity.as_ref().filter(|known| is_current(known)) {
            return Arc::clone(known);
        }
        Arc::clone(identity.insert(Arc::new(compute(&self.certificates))))
    }

    /// Asks for the end of the connection once the requests that are under way have their
    /// answers. HTTP/2 peers are told by GOAWAY, HTTP/1.1 peers by `Connection: close`.
    pub fn close(&self) {
        self.activity.close.store(true, Ordering::Relaxed);
    }
}

/// What goes on in a connection. Readers want a recent picture, not an ordered one, so all
/// accesses are relaxed.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    requests_begun: AtomicU64,
    requests_active: AtomicUsize,
    bytes_written: AtomicU64,
    is_write_blocked: AtomicBool,
    is_reading_head: AtomicBool,
    close: AtomicBool,
}

/// A request that is under way until its answer is sent or given up.
#[derive(Debug)]
pub(crate) struct ActiveRequest(Arc<Activity>);

impl Activity {
    pub(crate) fn begin_request(self: &Arc<Self>) -> ActiveRequest {
        self.is_reading_head.store(false, Ordering::Relaxed);
        self.requests_begun.fetch_add(1, Ordering::Relaxed);
        self.requests_active.fetch_add(1, Ordering::Relaxed);
        ActiveRequest(Arc::clone(self))
    }

    /// Notes bytes from the peer. Between requests they can only belong to the next head.
    pub(crate) fn bytes_read(&self) {
        if self.requests_active() == 0 {
            self.is_reading_head.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn bytes_written(&self, count: usize) {
        self.bytes_written.fetch_add(count as u64, Ordering::Relaxed);
        self.is_write_blocked.store(false, Ordering::Relaxed);
    }

    pub(crate) fn write_blocked(&self, is_blocked: bool) {
        self.is_write_blocked.store(is_blocked, Ordering::Relaxed);
    }

    pub(crate) fn is_close_requested(&self) -> bool {
        self.close.load(Ordering::Relaxed)
    }

    pub(crate) fn is_write_blocked(&self) -> bool {
        self.is_write_blocked.load(Ordering::Relaxed)
    }

    pub(crate) fn is_reading_head(&self) -> bool {
        self.is_reading_head.load(Ordering::Relaxed)
    }

    pub(crate) fn requests_active(&self) -> usize {
        self.requests_active.load(Ordering::Relaxed)
    }

    pub(crate) fn requests_begun(&self) -> u64 {
        self.requests_begun.load(Ordering::Relaxed)
    }

    pub(crate) fn total_bytes_written(&self) -> u64 {
        self.bytes_written.load(Ordering::Relaxed)
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.0.requests_active.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_a_connection_is_made_again_when_it_is_old() {
        let peer = "127.0.0.1:1".parse().unwrap();
        let connection = Connection::new(peer, Protocol::Http1, Arc::from([]));
        let identity =
            |generation: u32| *connection.identity(|known| *known == generation, |_| generation);
        assert_eq!([identity(1), identity(1), identity(2), identity(2)], [1, 1, 2, 2]);
        let kept = connection.identity(|_| true, |_| 3);
        assert_eq!(*kept, 2);
    }
}
