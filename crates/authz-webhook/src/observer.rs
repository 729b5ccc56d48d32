//! Events of a webhook for metrics.

use std::time::Duration;

use concurrency_limit::LimitReached;

use crate::settings::FailurePolicy;

/// The result of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttemptResult {
    /// A well-formed answer, whatever it decides.
    Success,
    /// A timeout, of this server or of a service behind the webhook.
    Timeout,
    /// The attempt was canceled, because no check waits for it.
    Canceled,
    /// Any failure other than a timeout or a cancellation.
    Error,
}

impl AttemptResult {
    /// All variants, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::Success, Self::Timeout, Self::Canceled, Self::Error];

    /// The value of the label `result`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Timeout => "timeout",
            Self::Canceled => "canceled",
            Self::Error => "error",
        }
    }
}

/// The result of the match conditions of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatchResultKind {
    /// All conditions are true.
    Matched,
    /// One condition is false, so the webhook is skipped.
    Excluded,
    /// One condition is false, and one before it could not be evaluated.
    ExcludedAfterError,
    /// No condition is false, and at least one could not be evaluated.
    Failed,
}

impl MatchResultKind {
    /// Reports whether the webhook is skipped because a condition is false.
    pub const fn is_webhook_skipped(self) -> bool {
        matches!(self, Self::Excluded | Self::ExcludedAfterError)
    }

    /// Reports whether some condition could not be evaluated.
    pub const fn has_condition_error(self) -> bool {
        matches!(self, Self::ExcludedAfterError | Self::Failed)
    }
}

/// An event of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CacheEvent {
    /// A cached answer was used.
    Hit,
    /// No answer was cached.
    Miss,
    /// A cached answer has expired. A miss is counted as well.
    Expired,
    /// An answer was cached.
    Stored,
    /// An answer was evicted for a newer one.
    Evicted,
    /// An answer was not cached because it or its request is too large.
    TooLarge,
}

impl CacheEvent {
    /// All variants, in the order of the documentation.
    pub const ALL: [Self; 6] =
        [Self::Hit, Self::Miss, Self::Expired, Self::Stored, Self::Evicted, Self::TooLarge];

    /// The value of the label.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Miss => "miss",
            Self::Expired => "expired",
            Self::Stored => "stored",
            Self::Evicted => "evicted",
            Self::TooLarge => "too_large",
        }
    }
}

/// The limit because of which a webhook was not called. The request gets status code 429.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallRejection {
    /// The limit on all calls in flight is reached.
    TooManyInFlight,
    /// The limit on calls in flight for one user is reached.
    TooManyOfUser,
}

impl CallRejection {
    /// All variants, in the order of the documentation.
    pub const ALL: [Self; 2] = [Self::TooManyInFlight, Self::TooManyOfUser];

    /// The value of the label.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TooManyInFlight => "too_many_in_flight",
            Self::TooManyOfUser => "too_many_in_flight_of_user",
        }
    }
}

impl From<LimitReached> for CallRejection {
    fn from(busy: LimitReached) -> Self {
        match busy {
            LimitReached::Total { .. } => Self::TooManyInFlight,
            LimitReached::User { .. } => Self::TooManyOfUser,
        }
    }
}

/// The failure of a webhook that its failure policy turned into no opinion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailOpenCause {
    /// The TCP connection could not be opened.
    Connect,
    /// The TLS handshake failed.
    Tls,
    /// The connection ended before the answer was complete.
    ConnectionLost,
    /// The webhook did not answer within its timeout.
    Timeout,
    /// The status code of the answer is not a success.
    HttpStatus,
    /// The answer is not a SubjectAccessReview, or is too large.
    BadAnswer,
    /// A match condition could not be evaluated.
    MatchCondition,
}

impl FailOpenCause {
    /// All variants, in the order of the documentation.
    pub const ALL: [Self; 7] = [
        Self::Connect,
        Self::Tls,
        Self::ConnectionLost,
        Self::Timeout,
        Self::HttpStatus,
        Self::BadAnswer,
        Self::MatchCondition,
    ];

    /// The value of the label and in the audit log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::ConnectionLost => "connection_lost",
            Self::Timeout => "timeout",
            Self::HttpStatus => "http_status",
            Self::BadAnswer => "bad_answer",
            Self::MatchCondition => "match_condition",
        }
    }
}

/// Observes one webhook, for metrics and logs. Each webhook has its own observer, which looks up labels once. Methods do
/// nothing by default. They run on the path of requests and must neither block nor panic.
pub trait WebhookObserver: Send + Sync {
    /// One attempt of a call ended.
    fn on_attempt_end(&self, result: AttemptResult, duration: Duration) {
        let _ = (result, duration);
    }

    /// A call ended without a well-formed answer, after all attempts. The text holds no secrets.
    fn on_call_failure(&self, why: &str) {
        let _ = why;
    }

    /// The failure policy turned a failure into no opinion. Without a result no call was made.
    fn on_fail_open(&self, cause: FailOpenCause, result: Option<AttemptResult>) {
        let _ = (cause, result);
    }

    /// The match conditions of one check were evaluated. Not called if there are none.
    fn on_conditions_evaluated(&self, duration: Duration, outcome: MatchResultKind) {
        let _ = (duration, outcome);
    }

    /// The failure policy decides, because no match condition is false and at least one cannot be evaluated. `error` is
    /// Kubernetes' message, with the expressions.
    fn on_condition_error(&self, error: &str, policy: FailurePolicy) {
        let _ = (error, policy);
    }

    /// The cache had an event.
    fn on_cache_event(&self, event: CacheEvent) {
        let _ = event;
    }

    /// A check shares the call of another check of the same request.
    fn on_shared_call(&self) {}

    /// A limit kept the webhook from being called.
    fn on_call_rejected(&self, why: CallRejection) {
        let _ = why;
    }
}

/// An observer that ignores every event.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl WebhookObserver for NoObserver {}
