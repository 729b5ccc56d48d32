//! The limits of requests: seats, bodies, and waits for webhooks.

use https_server::MinimumBodyRate;

/// The limits of requests. One user has a part of each, and requests of an exempt priority level are never refused.
#[derive(Debug, Clone)]
pub struct RequestLimits {
    /// The seats of all priority levels together.
    pub seats_max: u32,
    /// The bytes of the bodies of all requests in progress.
    pub total_body_bytes_max: usize,
    /// The bytes of the bodies of one user's requests in progress.
    pub body_bytes_per_user_max: usize,
    /// The bytes that the decoded bodies of all requests in progress take.
    pub total_decoded_body_bytes_max: usize,
    /// The bytes that the decoded bodies of one user's requests in progress take.
    pub decoded_body_bytes_per_user_max: usize,
    /// The minimum rate at which a client must send a body.
    pub minimum_body_rate: MinimumBodyRate,
    /// The requests that wait for webhooks without a seat.
    pub webhook_waits_max: usize,
    /// The requests of one user that wait for webhooks without a seat.
    pub webhook_waits_per_user_max: usize,
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            seats_max: 600,
            total_body_bytes_max: 256 << 20,
            body_bytes_per_user_max: 32 << 20,
            total_decoded_body_bytes_max: 256 << 20,
            decoded_body_bytes_per_user_max: 64 << 20,
            minimum_body_rate: MinimumBodyRate::default(),
            webhook_waits_max: 1_024,
            webhook_waits_per_user_max: 256,
        }
    }
}
