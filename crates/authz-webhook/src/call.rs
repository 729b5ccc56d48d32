//! One call: attempts, and the waits between them (chain §4.7, §4.8).

use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use foldhash::quality::RandomState;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use crate::decode::{ReviewStatus, decode};
use crate::error::CallError;
use crate::failure::retry_after_seconds;
use crate::guards::RetryOptions;
use crate::observe::{AttemptResult, Observe};
use crate::settings::ReviewVersion;
use crate::transport::{Fault, FaultKind, Reply, Transport};

/// How often a body is sent again within one attempt because the service asked for it.
const RESENDS_MAX: u32 = 10;

/// How much longer than its limit a transport may take before it is given up. The transport keeps
/// the limit itself and knows better what to say about it; this is for one that does not.
const GRACE: Duration = Duration::from_millis(250);

/// Makes calls.
pub(crate) struct Caller {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) observe: Arc<dyn Observe>,
    pub(crate) version: ReviewVersion,
    pub(crate) timeout: Duration,
    pub(crate) retry: RetryOptions,
}

/// How a call ended.
#[derive(Debug)]
pub(crate) struct CallEnd {
    pub(crate) outcome: Result<ReviewStatus, CallError>,
    pub(crate) n_attempts: u32,
    /// The HTTP status code of the last answer.
    pub(crate) status: Option<u16>,
    pub(crate) took: Duration,
}

/// What came of one attempt, with the HTTP status code if there was an answer.
type Attempted = Result<(ReviewStatus, u16), CallError>;

impl Caller {
    /// Asks until there is an answer, asking again would not help, or it was asked often enough.
    pub(crate) async fn call(&self, body: Bytes) -> CallEnd {
        let started = Instant::now();
        let mut wait = self.retry.wait;
        let mut n_attempts = 0;
        loop {
            n_attempts += 1;
            let (outcome, status) = match self.attempt(body.clone()).await {
                Ok((review_status, status)) => (Ok(review_status), Some(status)),
                Err(error) if error.is_retriable() && n_attempts < self.retry.attempts_max => {
                    sleep(with_jitter(wait, self.retry.jitter)).await;
                    wait = times(wait, self.retry.wait_factor);
                    continue;
                }
                Err(error) => {
                    let status = error.status();
                    (Err(error), status)
                }
            };
            return CallEnd { outcome, n_attempts, status, took: started.elapsed() };
        }
    }

    /// One attempt, which is counted also if nobody waits for its end.
    async fn attempt(&self, body: Bytes) -> Attempted {
        let counting = Counting { observe: &*self.observe, began: Instant::now(), is_over: false };
        let attempted = self.exchange(body).await;
        counting.over(match &attempted {
            Ok(_) => AttemptResult::Success,
            Err(error) => result_of(error),
        });
        attempted
    }

    /// Posts the review, and again after a while as long as the service asks for that.
    async fn exchange(&self, body: Bytes) -> Attempted {
        let began = Instant::now();
        let deadline = began.checked_add(self.timeout).unwrap_or(began);
        let mut n_resends = 0;
        loop {
            let reply = self.send(body.clone(), deadline).await?;
            match asks_to_resend(&reply) {
                Some(wait) if n_resends < RESENDS_MAX => {
                    n_resends += 1;
                    let now = Instant::now();
                    sleep_until(now.checked_add(wait).map_or(deadline, |end| end.min(deadline)))
                        .await;
                }
                _ => return Ok((decode(&reply, self.version)?, reply.status)),
            }
        }
    }

    async fn send(&self, body: Bytes, deadline: Instant) -> Result<Reply, Fault> {
        let limit = deadline.saturating_duration_since(Instant::now());
        if limit.is_zero() {
            return Err(self.deadline_exceeded());
        }
        let last = deadline.checked_add(GRACE).unwrap_or(deadline);
        match timeout_at(last, self.transport.send(body, limit)).await {
            Ok(sent) => sent,
            Err(_) => Err(self.deadline_exceeded()),
        }
    }

    fn deadline_exceeded(&self) -> Fault {
        let message = match self.transport.url() {
            "" => "context deadline exceeded".to_owned(),
            url => format!("Post {}: context deadline exceeded", go_compat::quote(url)),
        };
        Fault::new(FaultKind::Timeout, message)
    }
}

/// The label of a failed attempt.
pub(crate) fn result_of(error: &CallError) -> AttemptResult {
    if error.is_timeout() { AttemptResult::Timeout } else { AttemptResult::Error }
}

/// After what time the service wants the same again.
fn asks_to_resend(reply: &Reply) -> Option<Duration> {
    if reply.status != 429 && reply.status < 500 {
        return None;
    }
    let seconds = retry_after_seconds(reply)?;
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// A wait and a random part of it more.
fn with_jitter(wait: Duration, jitter: f64) -> Duration {
    // A fresh state has a seed of its own, which is all the randomness that is needed.
    let random = RandomState::default().hash_one(0_u8) >> 32;
    let part = random as f64 / f64::from(u32::MAX);
    times(wait, 1.0 + jitter * part)
}

/// A longer wait; the same where that is no time.
fn times(wait: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(wait.as_secs_f64() * factor).unwrap_or(wait)
}

/// Counts an attempt when it is over, or when it is dropped.
struct Counting<'a> {
    observe: &'a dyn Observe,
    began: Instant,
    is_over: bool,
}

impl Counting<'_> {
    fn over(mut self, result: AttemptResult) {
        self.is_over = true;
        self.observe.attempted(result, self.began.elapsed());
    }
}

impl Drop for Counting<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let is_fault = std::thread::panicking();
            let result = if is_fault { AttemptResult::Error } else { AttemptResult::Canceled };
            self.observe.attempted(result, self.began.elapsed());
        }
    }
}
