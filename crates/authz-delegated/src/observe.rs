//! Who is told of the requests to the core server.

use std::sync::Arc;
use std::time::Duration;

use authz_webhook::{Sending, Transport};
use bytes::Bytes;
use tokio::time::Instant;

/// What is told of a request that had no answer.
const NO_CODE: &str = "<error>";

/// Is told of each HTTP request to the core server, for the numbers that operators see:
/// `apiserver_delegated_authz_request_total` and `apiserver_delegated_authz_request_duration_seconds`.
/// Answers that are still known make no request. It must be quick and must not block.
pub trait Observe: Send + Sync {
    /// A request has ended. The code is that of the answer, such as `201`, or `<error>` if there was
    /// none: nobody answered, the rate limit left no time to ask, or the asker has gone. The time
    /// includes the wait for the rate limit.
    fn requested(&self, code: &str, took: Duration);
}

/// Counts nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observe for Unobserved {
    fn requested(&self, _code: &str, _took: Duration) {}
}

/// Tells of each exchange.
///
/// Kubernetes counts a request once that was sent again because the answer asked for it by
/// `Retry-After`. Here each is one, for each is a request that the core server has to bear.
pub(crate) struct Counted<T> {
    pub(crate) inner: T,
    pub(crate) observe: Arc<dyn Observe>,
}

impl<T: Transport> Transport for Counted<T> {
    fn send(&self, body: Bytes, limit: Duration) -> Sending<'_> {
        Box::pin(async move {
            let mut exchange =
                Exchange { observe: &*self.observe, began: Instant::now(), status: None };
            let sent = self.inner.send(body, limit).await;
            exchange.status = sent.as_ref().ok().map(|reply| reply.status);
            sent
        })
    }

    fn url(&self) -> &str {
        self.inner.url()
    }
}

/// An exchange under way. It is told of when it is dropped, so that one counts that nobody waits for
/// any more.
struct Exchange<'a> {
    observe: &'a dyn Observe,
    began: Instant,
    status: Option<u16>,
}

impl Drop for Exchange<'_> {
    fn drop(&mut self) {
        let took = self.began.elapsed();
        match self.status {
            Some(status) => self.observe.requested(&status.to_string(), took),
            None => self.observe.requested(NO_CODE, took),
        }
    }
}
