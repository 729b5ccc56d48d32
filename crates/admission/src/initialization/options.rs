//! The options of initializers.

use std::time::Duration;

use crate::initializer_order::PENDING_INITIALIZERS_MAX;

/// The options of initializers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitializerOptions {
    /// Whether initializers are enabled. If not, `metadata.initializers` is removed from objects.
    pub is_enabled: bool,
    /// The time that an initializer may take once it can act. The configuration of an initializer with failure
    /// policy `Fail` is looked up again after each such time.
    pub step_timeout: Duration,
    /// The interval at which an expired initializer is looked up again while the configuration is stale.
    pub stale_retry_interval: Duration,
    /// The age of an object at which its timers end and reads may repair it.
    pub global_timeout: Duration,
    /// The most by which the clocks of servers may differ; zero if there is only one server.
    pub clock_drift: Duration,
    /// The most initializers that an object may wait for.
    pub pending_initializers_max: usize,
    /// The limits for all objects with pending initializers.
    pub waiting_objects_max: WaitingObjectsMax,
    /// The limits for the objects with pending initializers of one user.
    pub waiting_objects_per_user_max: WaitingObjectsMax,
}

/// The default limits for all objects with pending initializers.
pub const WAITING_OBJECTS_MAX: WaitingObjectsMax =
    WaitingObjectsMax { n_objects: 10_000, n_bytes: 128 << 20 };

/// The default limits for one user. At least eight users are needed to reach the limits for all.
pub const WAITING_OBJECTS_PER_USER_MAX: WaitingObjectsMax =
    WaitingObjectsMax { n_objects: 1_000, n_bytes: 16 << 20 };

/// Limits for the objects that have pending initializers at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingObjectsMax {
    /// The highest number of objects.
    pub n_objects: usize,
    /// The most bytes of all objects together, as they are stored.
    pub n_bytes: usize,
}

impl Default for InitializerOptions {
    fn default() -> Self {
        Self {
            is_enabled: true,
            step_timeout: Duration::from_secs(5),
            stale_retry_interval: Duration::from_secs(1),
            global_timeout: Duration::from_secs(600),
            clock_drift: Duration::from_secs(30),
            pending_initializers_max: PENDING_INITIALIZERS_MAX,
            waiting_objects_max: WAITING_OBJECTS_MAX,
            waiting_objects_per_user_max: WAITING_OBJECTS_PER_USER_MAX,
        }
    }
}
