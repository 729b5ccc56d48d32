//! Asking no more often than permitted.

use std::time::Duration;

use authz::Unavailable;
use authz_webhook::{Fault, FaultKind, Sending, Transport};
use bytes::Bytes;
use tokio::time::{Instant, sleep};

use crate::bucket::Bucket;

/// What is said when there is no time to wait for a turn; the words are those of Kubernetes' client.
const NO_TIME: &str = "client rate limiter Wait returned an error: rate: Wait(n=1) would exceed \
                       context deadline";

/// Makes exchanges wait for their turn. The wait is part of their time; one that would have to wait
/// longer than it has time fails at once.
pub(crate) struct Throttled<T> {
    pub(crate) inner: T,
    pub(crate) bucket: Bucket,
}

impl<T: Transport> Transport for Throttled<T> {
    fn send(&self, body: Bytes, limit: Duration) -> Sending<'_> {
        Box::pin(async move {
            let began = Instant::now();
            let wait = self.bucket.take(began, limit);
            let wait = wait.ok_or_else(no_time)?;
            if !wait.is_zero() {
                let mut turn = Turn(Some(&self.bucket));
                sleep(wait).await;
                turn.0 = None;
            }
            self.inner.send(body, limit.saturating_sub(began.elapsed())).await
        })
    }

    fn url(&self) -> &str {
        self.inner.url()
    }
}

/// The limit is one of this server, so that no failure policy applies.
fn no_time() -> Fault {
    Fault::new(FaultKind::Local(Unavailable::TooManyCalls), NO_TIME)
}

/// A token that somebody waits for. Who stops waiting before it is there gives it back.
struct Turn<'a>(Option<&'a Bucket>);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(bucket) = self.0 {
            bucket.give_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::sync::Mutex;

    use authz_webhook::Reply;
    use tokio::time::timeout;

    use super::*;
    use crate::bucket::RateLimit;

    /// Answers at once, and keeps the time that it was given.
    #[derive(Default)]
    struct Quick(Mutex<Vec<Duration>>);

    impl Transport for Quick {
        fn send(&self, _body: Bytes, limit: Duration) -> Sending<'_> {
            self.0.lock().unwrap().push(limit);
            Box::pin(async { Ok(Reply::default()) })
        }
    }

    const SECOND: Duration = Duration::from_secs(1);

    /// One request in a second.
    fn throttled() -> Throttled<Quick> {
        let rate = RateLimit { qps: NonZeroU32::MIN, burst: NonZeroU32::MIN };
        Throttled { inner: Quick::default(), bucket: Bucket::new(rate) }
    }

    #[tokio::test(start_paused = true)]
    async fn the_wait_is_part_of_the_time() {
        let transport = throttled();
        let began = Instant::now();
        for _ in 0..3 {
            transport.send(Bytes::new(), 10 * SECOND).await.unwrap();
        }
        assert_eq!(began.elapsed().as_secs(), 2);
        let limits: Vec<u64> = transport
            .inner
            .0
            .lock()
            .unwrap()
            .iter()
            .map(|limit| limit.as_millis() as u64)
            .collect();
        assert!(matches!(limits[..], [10_000, 8_990..=9_000, 8_990..=9_000]), "{limits:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_no_time_to_wait_fails_at_once() {
        let transport = throttled();
        transport.send(Bytes::new(), SECOND / 2).await.unwrap();
        let began = Instant::now();
        let fault = transport.send(Bytes::new(), SECOND / 2).await.unwrap_err();
        assert_eq!(fault, no_time());
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert_eq!(transport.inner.0.lock().unwrap().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn who_stops_waiting_takes_nothing() {
        let transport = throttled();
        transport.send(Bytes::new(), SECOND).await.unwrap();
        let given_up = timeout(SECOND / 2, transport.send(Bytes::new(), SECOND)).await;
        assert!(given_up.is_err());
        let began = Instant::now();
        transport.send(Bytes::new(), SECOND).await.unwrap();
        assert!(began.elapsed() <= Duration::from_millis(510), "{:?}", began.elapsed());
        assert_eq!(transport.inner.0.lock().unwrap().len(), 2);
    }
}
