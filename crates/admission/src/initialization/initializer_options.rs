//! The options of initializers.

use std::time::Duration;

use crate::initializer_order::PENDING_INITIALIZERS_MAX;

/// The options of initializers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitializerOptions {
    /// Whether initializers are enabled. If not, `metadata.initializers` is removed from objects.
    pub are_initializers_enabled: bool,
    /// The time that an initializer may take once it can act. The configuration of an initializer with failure
    /// policy `Fail` is looked up again after each such time.
    pub initializer_step_timeout: Duration,
    /// The interval at which an expired initializer is looked up again while the configuration is stale.
    pub stale_configuration_retry_interval: Duration,
    /// The age of an object at which its timers end and reads may repair it.
    pub initialization_timeout: Duration,
    /// The maximum difference between the clocks of servers; zero if there is only one server.
    pub clock_drift_max: Duration,
    /// The maximum number of initializers that an object may wait for.
    pub pending_initializers_max: usize,
    /// The limits for all objects with pending initializers.
    pub waiting_object_limits: WaitingObjectLimits,
    /// The limits for the objects with pending initializers of one user.
    pub waiting_object_limits_per_user: WaitingObjectLimits,
}

/// The default limits for all objects with pending initializers.
pub const WAITING_OBJECTS_MAX: WaitingObjectLimits =
    WaitingObjectLimits { waiting_objects_max: 10_000, waiting_object_bytes_max: 128 << 20 };

/// The default limits for one user. At least eight users are needed to reach the limits for all.
pub const WAITING_OBJECTS_PER_USER_MAX: WaitingObjectLimits =
    WaitingObjectLimits { waiting_objects_max: 1_000, waiting_object_bytes_max: 16 << 20 };

/// Limits for the objects that have pending initializers at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingObjectLimits {
    /// The maximum number of objects.
    pub waiting_objects_max: usize,
    /// The maximum total size of all objects in their stored form, in bytes.
    pub waiting_object_bytes_max: usize,
}

impl Default for InitializerOptions {
    fn default() -> Self {
        Self {
            are_initializers_enabled: true,
            initializer_step_timeout: Duration::from_secs(5),
            stale_configuration_retry_interval: Duration::from_secs(1),
            initialization_timeout: Duration::from_secs(600),
            clock_drift_max: Duration::from_secs(30),
            pending_initializers_max: PENDING_INITIALIZERS_MAX,
            waiting_object_limits: WAITING_OBJECTS_MAX,
            waiting_object_limits_per_user: WAITING_OBJECTS_PER_USER_MAX,
        }
    }
}
