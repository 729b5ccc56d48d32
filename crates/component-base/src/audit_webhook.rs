//! The audit webhook: a sink of audit events that posts them as lists to a service.

use std::time::Duration;

use audit::{EventSink, SinkError, SinkFuture};
use bytes::Bytes;
use https_client::Client;

/// The name of the backend with the audit webhook, a label of metrics.
pub const AUDIT_WEBHOOK_BACKEND: &str = "webhook";

/// How long one call may take, as in Kubernetes.
const CALL_TIME_MAX: Duration = Duration::from_secs(30);

/// The query parameter in which Kubernetes sends its timeout to the webhook.
const TIMEOUT_QUERY: &str = "timeout=30s";

/// The number of attempts to send a batch, as in Kubernetes.
const ATTEMPTS_MAX: u32 = 5;

/// The factor by which the wait grows after each failed attempt.
const BACKOFF_FACTOR: f64 = 1.5;

/// The maximum number of batches in flight. More than one raises the throughput of a slow webhook; the bound limits
/// the connections that a hanging webhook holds.
const BATCHES_IN_FLIGHT_MAX: usize = 4;

/// Posts audit events to a service. It never follows redirects, and never logs what it sends.
#[derive(Debug)]
pub struct AuditWebhook {
    http_client: Client,
    initial_backoff: Duration,
}

impl AuditWebhook {
    /// The maximum size of the webhook's response. The server ignores its content.
    pub const RESPONSE_BYTES_MAX: usize = 64 << 10;

    /// Creates a sink that posts through this client. It waits for `initial_backoff` after the first failed call,
    /// and longer after each further one.
    pub fn new(client: Client, initial_backoff: Duration) -> Self {
        Self { http_client: client, initial_backoff }
    }

    async fn send_event_list(&self, list: Bytes) -> Result<(), AuditWebhookError> {
        match self.http_client.post(TIMEOUT_QUERY, list, CALL_TIME_MAX).await? {
            reply if (200..=206).contains(&reply.status) => Ok(()),
            reply => Err(AuditWebhookError::Status(reply.status)),
        }
    }
}

/// Why the webhook did not accept a list of events.
#[derive(Debug, thiserror::Error)]
enum AuditWebhookError {
    #[error(transparent)]
    Exchange(#[from] https_client::Fault),
    /// The response has an error status. Its body may come from any service, so it is not logged.
    #[error("the audit webhook answered with status {0}")]
    Status(u16),
}

impl EventSink for AuditWebhook {
    /// Sends all events in one list. Every failure is retried, as in Kubernetes.
    fn write_events<'a>(&'a self, lines: &'a [Bytes]) -> SinkFuture<'a> {
        Box::pin(async move {
            let list = Bytes::from(audit::encode_event_list(lines));
            let mut backoff = self.initial_backoff;
            let mut n_attempts = 1;
            loop {
                let Err(error) = self.send_event_list(list.clone()).await else { return Ok(()) };
                if n_attempts >= ATTEMPTS_MAX {
                    let message = error.to_string();
                    return Err(SinkError {
                        n_written_events: 0,
                        n_lost_events: lines.len(),
                        message,
                    });
                }
                n_attempts += 1;
                tokio::time::sleep(backoff).await;
                backoff = backoff.mul_f64(BACKOFF_FACTOR);
            }
        })
    }

    fn batches_in_flight_max(&self) -> usize {
        BATCHES_IN_FLIGHT_MAX
    }
}
