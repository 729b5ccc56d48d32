//! How a breaker is set, and how it stands.

use std::time::Duration;

/// When a service is left alone, and for how long.
///
/// The breaker opens after some calls failed in a row, whatever their number per second: a single
/// answer shows that the service lives. A ratio of failures would open it for a service that answers
/// some questions and not others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerOptions {
    /// Whether there is a breaker at all.
    pub is_enabled: bool,
    /// How many calls in a row have to fail.
    pub failures_to_open: u32,
    /// How long the service is left alone at first. Doubles with each probe that fails.
    pub open_min: Duration,
    /// How long it is left alone at most.
    pub open_max: Duration,
}

impl Default for BreakerOptions {
    fn default() -> Self {
        Self {
            is_enabled: true,
            failures_to_open: 10,
            open_min: Duration::from_secs(1),
            open_max: Duration::from_secs(30),
        }
    }
}

/// Whether a service is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BreakerState {
    /// It is.
    #[default]
    Closed,
    /// It is not: too many calls in a row failed, and it is given time.
    Open,
    /// One call is on its way to find out whether the service is back.
    HalfOpen,
}

impl BreakerState {
    /// All of them, in the order in which they are documented.
    pub const ALL: [Self; 3] = [Self::Closed, Self::Open, Self::HalfOpen];

    /// A name for labels and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}
