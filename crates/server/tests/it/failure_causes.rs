//! A failure policy is applied to failures of the webhook and never to those of this server: every cause,
//! with both policies, for each kind of webhook.

mod admission;
mod admission_attacks;
mod authorization;

use crate::client::Answer;

/// The party that a failure is attributed to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Side {
    /// The webhook failed: its failure policy decides.
    Webhook,
    /// This server failed: the code of the answer, whatever the policy.
    Server(u16),
}

/// Every cause. A kind of webhook that has no scene for one of them fails its test.
pub(crate) const CAUSES: [(&str, Side); 12] = [
    ("connection refused", Side::Webhook),
    ("connection reset", Side::Webhook),
    ("connection closed", Side::Webhook),
    ("TLS", Side::Webhook),
    ("status 500", Side::Webhook),
    ("nonsense", Side::Webhook),
    ("timeout of the webhook", Side::Webhook),
    ("limit of calls", Side::Server(429)),
    ("limit of one user", Side::Server(429)),
    ("deadline of the request", Side::Server(504)),
    ("no descriptors", Side::Server(503)),
    ("lost call", Side::Server(503)),
];

/// The response to a request that the webhook would refuse.
pub(crate) struct Codes {
    /// If the policy lets it pass.
    pub(crate) passed: u16,
    /// If the policy does not.
    pub(crate) failed: u16,
}

/// Plays the scene of every cause with both policies: `scene(cause, policy)` is the answer to a request
/// that the webhook would refuse.
pub(crate) async fn check(
    [passing, failing]: [&str; 2],
    codes: &Codes,
    scene: impl AsyncFn(&str, &str) -> Answer,
) {
    for (cause, side) in CAUSES {
        for policy in [passing, failing] {
            let answer = scene(cause, policy).await;
            let want = match side {
                Side::Webhook if policy == passing => codes.passed,
                Side::Webhook => codes.failed,
                Side::Server(code) => code,
            };
            let text = String::from_utf8_lossy(&answer.bytes);
            assert_eq!(answer.code, want, "{cause}, {policy}: {text}");
            let has_retry_after = answer.headers.contains_key("retry-after");
            assert_eq!(has_retry_after, matches!(want, 429 | 503), "{cause}, {policy}: {text}");
        }
    }
}
