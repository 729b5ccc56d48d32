//! A token bucket that limits the rate of batches.

use std::time::Duration;

use tokio::time::Instant;

use super::BatchThrottle;

/// Tokens that a batch takes, and that come back with time.
#[derive(Debug)]
pub(super) struct TokenBucket {
    throttle: BatchThrottle,
    n_tokens: f64,
    refilled_at: Instant,
}

impl TokenBucket {
    pub(super) fn new(throttle: BatchThrottle, now: Instant) -> Self {
        Self { throttle, n_tokens: f64::from(throttle.burst), refilled_at: now }
    }

    /// Takes a token, and returns how long the caller has to wait before it uses it.
    pub(super) fn take_token(&mut self, now: Instant) -> Duration {
        let (qps, burst) = (f64::from(self.throttle.qps), f64::from(self.throttle.burst));
        let elapsed = now.saturating_duration_since(self.refilled_at).as_secs_f64();
        self.refilled_at = now;
        self.n_tokens = (self.n_tokens + elapsed * qps).min(burst) - 1.0;
        let missing = (-self.n_tokens).max(0.0);
        // A rate of zero or below would never return a token; such a rate is refused where flags are read.
        Duration::try_from_secs_f64(missing / qps).unwrap_or(Duration::from_secs(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_free_and_then_the_rate_holds() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(BatchThrottle { qps: 2.0, burst: 3 }, start);
        let waits: Vec<u128> = (0..5).map(|_| bucket.take_token(start).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 500, 1000]);
        // Two tokens are owed; three seconds later there are six more, of which three are kept.
        let later = start + Duration::from_secs(10);
        let waits: Vec<u128> = (0..4).map(|_| bucket.take_token(later).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 500]);
    }
}
