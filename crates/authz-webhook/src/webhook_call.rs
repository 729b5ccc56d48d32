//! One call of a webhook: its attempts and the waits between them.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use foldhash::quality::RandomState;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use crate::call_error::CallError;
use crate::decode_response::{ReviewStatus, check_probe_response, decode_response};
use crate::http_error::retry_after_seconds;
use crate::observer::{AttemptResult, WebhookObserver};
use crate::settings::ReviewVersion;
use crate::transport::{HttpResponse, Transport, TransportError, TransportErrorKind};
use crate::webhook_limits::RetryOptions;

/// The maximum number of times that a request is sent again within one attempt because of a header `Retry-After`.
const RESENDS_MAX: u32 = 10;

/// The time after the limit at which the caller cancels the transport. The transport enforces the limit itself and has
/// the better message; this is for a transport that does not.
const GRACE: Duration = Duration::from_millis(250);

/// Calls one webhook, with a timeout and retries.
pub(crate) struct WebhookCaller {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) webhook_observer: Arc<dyn WebhookObserver>,
    pub(crate) version: ReviewVersion,
    pub(crate) timeout: Duration,
    pub(crate) retry_options: RetryOptions,
}

/// The result of a call.
#[derive(Debug)]
pub(crate) struct CallResult {
    pub(crate) review_result: Result<ReviewStatus, CallError>,
    pub(crate) n_attempts: u32,
    /// The HTTP status code of the last response.
    pub(crate) status: Option<u16>,
    pub(crate) call_duration: Duration,
}

/// The result of one attempt, with the HTTP status code.
type AttemptAnswer = Result<(ReviewStatus, u16), CallError>;

impl WebhookCaller {
    /// Makes attempts until one succeeds, fails in a way that another attempt cannot change, or is the last allowed.
    pub(crate) async fn call_with_retries(&self, body: Bytes) -> CallResult {
        let started = Instant::now();
        let mut wait = self.retry_options.first_retry_wait;
        let mut n_attempts = 0;
        loop {
            n_attempts += 1;
            let (outcome, status) = match self.make_attempt(body.clone()).await {
                Ok((read_review_status, status)) => (Ok(read_review_status), Some(status)),
                Err(error)
                    if error.is_retriable() && n_attempts < self.retry_options.attempts_max =>
                {
                    sleep(add_jitter(wait, self.retry_options.jitter_fraction)).await;
                    wait = scale_duration(wait, self.retry_options.retry_wait_factor);
                    continue;
                }
                Err(error) => {
                    let status = error.status();
                    (Err(error), status)
                }
            };
            return CallResult {
                review_result: outcome,
                n_attempts,
                status,
                call_duration: started.elapsed(),
            };
        }
    }

    /// Posts a review once and checks that the answer is a review. The observer does not see the attempt.
    pub(crate) async fn probe(&self, body: Bytes) -> Result<(), CallError> {
        let started_at = Instant::now();
        let deadline = started_at.checked_add(self.timeout).unwrap_or(started_at);
        check_probe_response(&self.send(body, deadline).await?, self.version)
    }

    /// Makes one attempt. It is counted even if it is cancelled.
    async fn make_attempt(&self, body: Bytes) -> AttemptAnswer {
        let timer = AttemptTimer {
            webhook_observer: &*self.webhook_observer,
            attempt_started_at: Instant::now(),
            is_attempt_reported: false,
        };
        let attempted = self.send_with_resends(body).await;
        timer.stop(match &attempted {
            Ok(_) => AttemptResult::Success,
            Err(error) => attempt_result_of_error(error),
        });
        attempted
    }

    /// Posts the review, and again after the time in `Retry-After` if the response has that header.
    async fn send_with_resends(&self, body: Bytes) -> AttemptAnswer {
        let started_at = Instant::now();
        let deadline = started_at.checked_add(self.timeout).unwrap_or(started_at);
        let mut n_resends = 0;
        loop {
            let reply = self.send(body.clone(), deadline).await?;
            match requested_resend_delay(&reply) {
                Some(wait) if n_resends < RESENDS_MAX => {
                    n_resends += 1;
                    let now = Instant::now();
                    sleep_until(now.checked_add(wait).map_or(deadline, |end| end.min(deadline)))
                        .await;
                }
                _ => return Ok((decode_response(&reply, self.version)?, reply.status)),
            }
        }
    }

    async fn send(&self, body: Bytes, deadline: Instant) -> Result<HttpResponse, TransportError> {
        let limit = deadline.saturating_duration_since(Instant::now());
        if limit.is_zero() {
            return Err(self.deadline_error());
        }
        let last = deadline.checked_add(GRACE).unwrap_or(deadline);
        match timeout_at(last, self.transport.send(body, limit)).await {
            Ok(sent) => sent,
            Err(_) => Err(self.deadline_error()),
        }
    }

    fn deadline_error(&self) -> TransportError {
        let message = match self.transport.url() {
            "" => "context deadline exceeded".to_owned(),
            url => format!("Post {}: context deadline exceeded", go_compat::quote(url)),
        };
        TransportError::new(TransportErrorKind::Timeout, message)
    }
}

/// The label of a failed attempt.
pub(crate) fn attempt_result_of_error(error: &CallError) -> AttemptResult {
    if error.is_timeout() { AttemptResult::Timeout } else { AttemptResult::Error }
}

/// The delay after which the service wants to receive the same request again.
fn requested_resend_delay(reply: &HttpResponse) -> Option<Duration> {
    if reply.status != 429 && reply.status < 500 {
        return None;
    }
    let seconds = retry_after_seconds(reply)?;
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// A wait plus a random fraction of it.
fn add_jitter(wait: Duration, jitter: f64) -> Duration {
    // A new hasher state has a random seed, which is random enough for jitter.
    let random = RandomState::default().hash_one(0_u8) >> 32;
    let part = random as f64 / f64::from(u32::MAX);
    scale_duration(wait, 1.0 + jitter * part)
}

/// Multiplies a wait by a factor. Returns the wait itself if the product is not a valid duration.
fn scale_duration(wait: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(wait.as_secs_f64() * factor).unwrap_or(wait)
}

/// Counts an attempt when it ends or is dropped.
struct AttemptTimer<'a> {
    webhook_observer: &'a dyn WebhookObserver,
    attempt_started_at: Instant,
    is_attempt_reported: bool,
}

impl AttemptTimer<'_> {
    fn stop(mut self, result: AttemptResult) {
        self.is_attempt_reported = true;
        self.webhook_observer.on_attempt_end(result, self.attempt_started_at.elapsed());
    }
}

impl Drop for AttemptTimer<'_> {
    fn drop(&mut self) {
        if !self.is_attempt_reported {
            let is_fault = std::thread::panicking();
            let result = if is_fault { AttemptResult::Error } else { AttemptResult::Canceled };
            self.webhook_observer.on_attempt_end(result, self.attempt_started_at.elapsed());
        }
    }
}
