//! What is counted about a webhook.

use std::time::Duration;

use concurrency_limit::Busy;

/// How one attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttemptResult {
    /// With a well-formed answer, whatever it says.
    Success,
    /// Without an answer in time, here or behind the service.
    Timeout,
    /// Because nobody waited for it any more.
    Canceled,
    /// With any other failure.
    Error,
}

impl AttemptResult {
    /// All of them, in the order in which they are documented.
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

/// How the match conditions of one check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatchOutcome {
    /// All of them hold.
    Matched,
    /// One is false.
    Excluded,
    /// One is false, and one before it could not be evaluated.
    ExcludedAfterError,
    /// None is false, and at least one could not be evaluated.
    Failed,
}

impl MatchOutcome {
    /// Reports whether the webhook is skipped because a condition is false.
    pub const fn is_excluded(self) -> bool {
        matches!(self, Self::Excluded | Self::ExcludedAfterError)
    }

    /// Reports whether some condition could not be evaluated.
    pub const fn has_error(self) -> bool {
        matches!(self, Self::ExcludedAfterError | Self::Failed)
    }
}

/// What happened in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CacheEvent {
    /// An answer was found and used.
    Hit,
    /// No answer was found.
    Miss,
    /// An answer was found that was too old. A miss is counted as well.
    Expired,
    /// An answer was stored.
    Stored,
    /// An answer gave way to a newer one.
    Evicted,
    /// An answer was not stored because the question or the answer is too large.
    TooLarge,
}

impl CacheEvent {
    /// All of them, in the order in which they are documented.
    pub const ALL: [Self; 6] =
        [Self::Hit, Self::Miss, Self::Expired, Self::Stored, Self::Evicted, Self::TooLarge];

    /// A name for labels.
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

/// Why a webhook was not called although it should have been. The request is answered 429.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rejection {
    /// As many calls as allowed are in flight.
    TooManyInFlight,
    /// As many calls as one user may have are in flight for this user.
    TooManyOfUser,
}

impl Rejection {
    /// All of them, in the order in which they are documented.
    pub const ALL: [Self; 2] = [Self::TooManyInFlight, Self::TooManyOfUser];

    /// A name for labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TooManyInFlight => "too_many_in_flight",
            Self::TooManyOfUser => "too_many_in_flight_of_user",
        }
    }
}

impl From<Busy> for Rejection {
    fn from(busy: Busy) -> Self {
        match busy {
            Busy::Total { .. } => Self::TooManyInFlight,
            Busy::User { .. } => Self::TooManyOfUser,
        }
    }
}

/// What a webhook did wrong that its failure policy turned into no opinion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailOpenCause {
    /// There was no connection.
    Connect,
    /// There was no TLS connection.
    Tls,
    /// The connection ended before the answer did.
    ConnectionLost,
    /// There was no answer within the timeout of the webhook.
    Timeout,
    /// The answer has a status code that is no success.
    HttpStatus,
    /// The answer is no review, or too large.
    BadAnswer,
    /// A match condition could not be evaluated.
    MatchCondition,
}

impl FailOpenCause {
    /// All of them, in the order in which they are documented.
    pub const ALL: [Self; 7] = [
        Self::Connect,
        Self::Tls,
        Self::ConnectionLost,
        Self::Timeout,
        Self::HttpStatus,
        Self::BadAnswer,
        Self::MatchCondition,
    ];

    /// A name for labels and for the audit log.
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

/// Counts what one webhook does. One instance belongs to one webhook, so that labels are looked up
/// once. Every method does nothing unless it is implemented; all are called on the path of requests
/// and must neither block nor panic.
pub trait Observe: Send + Sync {
    /// One attempt ended.
    fn attempted(&self, result: AttemptResult, took: Duration) {
        let _ = (result, took);
    }

    /// A call ended without a well-formed answer, after all attempts. The text holds no secrets.
    fn failed(&self, why: &str) {
        let _ = why;
    }

    /// The failure policy turned a failure into no opinion. Without a result no call was made.
    fn failed_open(&self, cause: FailOpenCause, result: Option<AttemptResult>) {
        let _ = (cause, result);
    }

    /// The match conditions of one check were evaluated. Not called if there are none.
    fn matched(&self, took: Duration, outcome: MatchOutcome) {
        let _ = (took, outcome);
    }

    /// Something happened in the cache.
    fn cache(&self, event: CacheEvent) {
        let _ = event;
    }

    /// A check waits for the call of another one that asks the same.
    fn joined(&self) {}

    /// The webhook was not called although it should have been.
    fn rejected(&self, why: Rejection) {
        let _ = why;
    }
}

/// Counts nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observe for Unobserved {}
