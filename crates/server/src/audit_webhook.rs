//! The audit webhook: a sink of audit events that posts them as lists to a service.

use std::time::Duration;

use audit::{EventSink, SinkError, SinkFuture};
use bytes::Bytes;
use https_client::Client;

/// The name of the backend with the audit webhook, a label of metrics.
pub const AUDIT_WEBHOOK_BACKEND: &str = "webhook";

/// How long one call may take, as in Kubernetes.
const CALL_TIME_MAX: Duration = Duration::from_secs(30);

/// The query with which Kubernetes announces how long it waits.
const TIMEOUT_QUERY: &str = "timeout=30s";

/// The number of attempts to send a batch, as in Kubernetes.
const ATTEMPTS_MAX: u32 = 5;

/// How much longer each wait between attempts is than the one before.
const BACKOFF_FACTOR: f64 = 1.5;

/// The number of batches in flight. A slow webhook then takes more events, and one that hangs holds few
/// connections.
const BATCHES_IN_FLIGHT_MAX: usize = 4;

/// Posts audit events to a service. It never follows redirects, and never logs what it sends.
#[derive(Debug)]
pub struct AuditWebhook {
    client: Client,
    initial_backoff: Duration,
}

impl AuditWebhook {
    /// The limit on the response of a webhook, whose content nobody reads.
    pub const RESPONSE_BYTES_MAX: usize = 64 << 10;

    /// A webhook behind this client. After a failed call it waits for `initial_backoff`, and longer after each
    /// further one.
    pub fn new(client: Client, initial_backoff: Duration) -> Self {
        Self { client, initial_backoff }
    }

    async fn send_list(&self, list: Bytes) -> Result<(), SendError> {
        match self.client.post(TIMEOUT_QUERY, list, CALL_TIME_MAX).await? {
            reply if (200..=206).contains(&reply.status) => Ok(()),
            reply => Err(SendError::Status(reply.status)),
        }
    }
}

/// The webhook did not take a list.
#[derive(Debug, thiserror::Error)]
enum SendError {
    #[error(transparent)]
    Exchange(#[from] https_client::Fault),
    /// The body may be that of any service, so it stays out of the log.
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
                let Err(error) = self.send_list(list.clone()).await else { return Ok(()) };
                if n_attempts >= ATTEMPTS_MAX {
                    let message = error.to_string();
                    return Err(SinkError { n_written: 0, n_lost: lines.len(), message });
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
