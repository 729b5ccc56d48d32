//! How many requests may be sent in a time.

use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How often the core server may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Requests in a second, in the long run.
    pub qps: NonZeroU32,
    /// Requests that may be sent at once after a while without any.
    pub burst: NonZeroU32,
}

impl Default for RateLimit {
    /// High, for whoever waits here waits for the whole extension server: 200 a second, 400 at once.
    fn default() -> Self {
        Self { qps: at_least_one(200), burst: at_least_one(400) }
    }
}

fn at_least_one(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN)
}

/// A bucket of tokens that fills up steadily; a request takes one, now or when it will be there.
///
/// Instead of tokens it keeps the time at which it will be full: a token that is taken makes that
/// one `interval` later, and one is there as long as that is not more than a whole bucket away.
pub(crate) struct Bucket {
    interval: Duration,
    capacity: Duration,
    created: Instant,
    /// Since `created`.
    full_at: Mutex<Duration>,
}

impl Bucket {
    /// A full bucket.
    pub(crate) fn new(rate: RateLimit) -> Self {
        let interval = Duration::from_secs(1) / rate.qps.get();
        let capacity = interval.saturating_mul(rate.burst.get());
        Self { interval, capacity, created: Instant::now(), full_at: Mutex::new(Duration::ZERO) }
    }

    /// Takes a token and tells how long to wait for it; `None`, and nothing is taken, if that is
    /// longer than `limit`.
    pub(crate) fn take(&self, now: Instant, limit: Duration) -> Option<Duration> {
        let now = now.saturating_duration_since(self.created);
        let mut full_at = self.full_at();
        let after = now.max(*full_at).saturating_add(self.interval);
        let wait = after.saturating_sub(self.capacity).saturating_sub(now);
        if wait > limit {
            return None;
        }
        *full_at = after;
        Some(wait)
    }

    /// Gives back a token that was not used. Those who wait already do not wait shorter for it.
    pub(crate) fn give_back(&self) {
        let mut full_at = self.full_at();
        *full_at = full_at.saturating_sub(self.interval);
    }

    fn full_at(&self) -> MutexGuard<'_, Duration> {
        self.full_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn bucket(qps: u32, burst: u32) -> Bucket {
        Bucket::new(RateLimit { qps: at_least_one(qps), burst: at_least_one(burst) })
    }

    /// How many tokens are there without a wait.
    fn drain(bucket: &Bucket, now: Instant) -> usize {
        std::iter::repeat_with(|| bucket.take(now, Duration::ZERO))
            .take_while(Option::is_some)
            .count()
    }

    #[test]
    fn the_default_is_that_of_kubernetes() {
        let rate = RateLimit::default();
        assert_eq!((rate.qps.get(), rate.burst.get()), (200, 400));
        let bucket = Bucket::new(rate);
        assert_eq!(drain(&bucket, bucket.created), 400);
        assert_eq!(drain(&bucket, bucket.created + SECOND), 200);
    }

    #[test]
    fn it_fills_up_and_not_further() {
        let bucket = bucket(10, 20);
        let begin = bucket.created;
        assert_eq!(drain(&bucket, begin), 20);
        assert_eq!(drain(&bucket, begin + Duration::from_millis(99)), 0);
        assert_eq!(drain(&bucket, begin + Duration::from_millis(100)), 1);
        assert_eq!(drain(&bucket, begin + 10 * SECOND), 20);
    }

    #[test]
    fn who_comes_later_waits_longer_but_not_longer_than_told() {
        let bucket = bucket(10, 1);
        let now = bucket.created;
        assert_eq!(bucket.take(now, SECOND), Some(Duration::ZERO));
        assert_eq!(bucket.take(now, SECOND), Some(Duration::from_millis(100)));
        assert_eq!(bucket.take(now, SECOND), Some(Duration::from_millis(200)));
        assert_eq!(bucket.take(now, Duration::from_millis(299)), None);
        assert_eq!(bucket.take(now, Duration::from_millis(300)), Some(Duration::from_millis(300)));
    }

    #[test]
    fn a_token_can_be_given_back() {
        let bucket = bucket(10, 1);
        let now = bucket.created;
        assert_eq!(drain(&bucket, now), 1);
        bucket.give_back();
        assert_eq!(drain(&bucket, now), 1);
        for _ in 0..3 {
            bucket.give_back();
        }
        assert_eq!(drain(&bucket, now), 1);
    }

    #[test]
    fn no_number_is_too_large() {
        for (qps, burst) in [(1, u32::MAX), (u32::MAX, 1), (u32::MAX, u32::MAX)] {
            let bucket = bucket(qps, burst);
            let late = bucket.created + Duration::from_secs(1 << 32);
            assert_eq!(bucket.take(late, Duration::ZERO), Some(Duration::ZERO));
        }
    }
}
