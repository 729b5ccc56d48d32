//! How initialization behaves.

use std::time::Duration;

use crate::order::PENDING_MAX;

/// How initialization behaves (admission §0.5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitializerOptions {
    /// Whether there are initializers at all. If not, what objects say about them is dropped.
    pub is_enabled: bool,
    /// How long an initializer may take once it can act. One that must not be skipped is looked up
    /// again as often.
    pub step_timeout: Duration,
    /// How often an initializer whose time is over is looked up while the configuration is stale.
    pub stale_retry: Duration,
    /// After this time nobody waits for an object any more: timers end, and reads may repair it.
    pub global_timeout: Duration,
    /// By how much the clocks of servers may differ; nothing if there is only one.
    pub clock_drift: Duration,
    /// How many initializers an object may wait for.
    pub pending_max: usize,
    /// How many objects may wait for initializers, and how large they may be.
    pub waiting_max: WaitingMax,
    /// How many of them one user may have created.
    pub waiting_per_user_max: WaitingMax,
}

/// How many objects may wait for initializers unless somebody says otherwise.
pub const WAITING_MAX: WaitingMax = WaitingMax { n_objects: 10_000, bytes: 128 << 20 };

/// How many of them may be one user's unless somebody says otherwise. No fewer than eight users reach the
/// limit for all.
pub const WAITING_PER_USER_MAX: WaitingMax = WaitingMax { n_objects: 1_000, bytes: 16 << 20 };

/// Bounds of the objects that wait for initializers at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingMax {
    /// Their number.
    pub n_objects: usize,
    /// The bytes of all of them together, as they are stored.
    pub bytes: usize,
}

impl Default for InitializerOptions {
    fn default() -> Self {
        Self {
            is_enabled: true,
            step_timeout: Duration::from_secs(5),
            stale_retry: Duration::from_secs(1),
            global_timeout: Duration::from_secs(600),
            clock_drift: Duration::from_secs(30),
            pending_max: PENDING_MAX,
            waiting_max: WAITING_MAX,
            waiting_per_user_max: WAITING_PER_USER_MAX,
        }
    }
}
