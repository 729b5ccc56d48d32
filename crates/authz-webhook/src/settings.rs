//! The settings of a webhook.
//!
//! The constructor of each type checks the rule of its field, so that a value needs no further check. The reader of the
//! configuration has the messages about violated rules.

use std::path::Path;
use std::time::Duration;

use crate::match_conditions::MatchCondition;

/// The maximum number of match conditions of one webhook.
pub const MATCH_CONDITIONS_MAX: usize = 64;

/// The configuration of one webhook, except its name.
#[derive(Debug, Clone, PartialEq)]
pub struct WebhookSettings {
    /// The time limit of one attempt.
    pub timeout: Timeout,
    /// The cache of answers that allow.
    pub authorized_cache_settings: CacheSettings,
    /// The cache of all other well-formed answers.
    pub unauthorized_cache_settings: CacheSettings,
    /// The version of SubjectAccessReview that is sent and expected.
    pub subject_access_review_version: ReviewVersion,
    /// The decision after a failure.
    pub failure_policy: FailurePolicy,
    /// The connection to the service.
    pub connection_info: ConnectionInfo,
    /// The conditions under which the service is called.
    pub match_conditions: MatchConditions,
}

/// The time limit of one attempt: more than zero, at most [`Timeout::MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timeout(Duration);

impl Timeout {
    /// The longest timeout. A request waits for its authorization.
    pub const MAX: Duration = Duration::from_secs(30);

    /// A timeout, if it is in range.
    pub fn new(limit: Duration) -> Option<Self> {
        (!limit.is_zero() && limit <= Self::MAX).then_some(Self(limit))
    }

    /// The limit as a duration.
    pub fn get(self) -> Duration {
        self.0
    }
}

/// The lifetime of cached answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheSettings {
    ttl: Duration,
    is_cache_enabled: bool,
}

impl CacheSettings {
    /// Caches answers for `ttl` if enabled. A zero `ttl` caches nothing.
    ///
    /// The lifetime of a disabled cache has no effect; it is stored because the effective configuration shows it.
    pub fn new(ttl: Duration, is_enabled: bool) -> Self {
        Self { ttl, is_cache_enabled: is_enabled }
    }

    /// The lifetime of an answer; `None` if it must not be cached.
    pub fn effective_ttl(self) -> Option<Duration> {
        (self.is_cache_enabled && !self.ttl.is_zero()).then_some(self.ttl)
    }

    /// The configured lifetime, also of a disabled cache.
    pub fn ttl(self) -> Duration {
        self.ttl
    }

    /// Whether the cache is enabled.
    pub fn is_cache_enabled(self) -> bool {
        self.is_cache_enabled
    }
}

/// A version of `SubjectAccessReview`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewVersion {
    /// The version `authorization.k8s.io/v1` of the review.
    V1,
    /// `authorization.k8s.io/v1beta1`, which calls the groups `group`.
    V1beta1,
}

impl ReviewVersion {
    /// The names, in the order in which messages list them.
    pub const NAMES: [&str; 2] = ["v1", "v1beta1"];

    /// The version of that name.
    pub fn from_version_name(name: &str) -> Option<Self> {
        [Self::V1, Self::V1beta1].into_iter().find(|version| version.name() == name)
    }

    /// The name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V1beta1 => "v1beta1",
        }
    }
}

/// The decision after the service failed or a match condition could not be evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailurePolicy {
    /// The next authorizer decides.
    NoOpinion,
    /// The request is denied.
    Deny,
}

impl FailurePolicy {
    /// The names, in the order in which messages list them.
    pub const NAMES: [&str; 2] = ["NoOpinion", "Deny"];

    /// The policy of that name.
    pub fn from_policy_name(name: &str) -> Option<Self> {
        [Self::NoOpinion, Self::Deny].into_iter().find(|policy| policy.name() == name)
    }

    /// The name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoOpinion => "NoOpinion",
            Self::Deny => "Deny",
        }
    }
}

/// The connection to a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionInfo {
    /// The kubeconfig file at this path has the address and the credentials.
    KubeConfigFile(AbsolutePath),
    /// By the service account of the pod that the server runs in.
    InClusterConfig,
}

impl ConnectionInfo {
    /// The names of the types of connection, in the order in which messages list them.
    pub const TYPE_NAMES: [&str; 2] = ["InClusterConfig", "KubeConfigFile"];

    /// The name of its type.
    pub fn connection_type_name(&self) -> &'static str {
        match self {
            Self::KubeConfigFile(_) => "KubeConfigFile",
            Self::InClusterConfig => "InClusterConfig",
        }
    }
}

/// The absolute path of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbsolutePath(String);

impl AbsolutePath {
    /// The path, if it is absolute.
    pub fn new(path: &str) -> Option<Self> {
        Path::new(path).is_absolute().then(|| Self(path.to_owned()))
    }

    /// The path as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path as a [`Path`], for file operations.
    pub fn as_path(&self) -> &Path {
        Path::new(&self.0)
    }
}

/// The conditions that must all hold for the service to be called.
#[derive(Debug, Clone)]
pub enum MatchConditions {
    /// The configuration has no version for conditions, and so no conditions.
    Unversioned,
    /// Conditions over the `v1` review. Without any, every request matches.
    V1(Vec<MatchCondition>),
}

impl MatchConditions {
    /// The versions of the review that conditions may use.
    pub const VERSION_NAMES: [&str; 1] = ["v1"];

    /// The conditions, in the order of the configuration.
    pub fn as_slice(&self) -> &[MatchCondition] {
        match self {
            Self::Unversioned => &[],
            Self::V1(conditions) => conditions,
        }
    }
}

/// Conditions are equal when their texts are: compiling one twice gives the same program.
impl PartialEq for MatchConditions {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Unversioned, Self::Unversioned) => true,
            (Self::V1(ours), Self::V1(theirs)) => ours
                .iter()
                .map(MatchCondition::expression)
                .eq(theirs.iter().map(MatchCondition::expression)),
            (Self::Unversioned, Self::V1(_)) | (Self::V1(_), Self::Unversioned) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_positive_and_at_most_thirty_seconds() {
        assert_eq!(Timeout::new(Duration::ZERO), None);
        assert!(Timeout::new(Duration::from_nanos(1)).is_some());
        assert!(Timeout::new(Timeout::MAX).is_some());
        assert_eq!(Timeout::new(Timeout::MAX + Duration::from_nanos(1)), None);
    }

    #[test]
    fn only_an_enabled_cache_with_a_time_keeps_answers() {
        let minute = Duration::from_secs(60);
        assert_eq!(CacheSettings::new(minute, true).effective_ttl(), Some(minute));
        assert_eq!(CacheSettings::new(minute, false).effective_ttl(), None);
        assert_eq!(CacheSettings::new(minute, false).ttl(), minute);
        assert_eq!(CacheSettings::new(Duration::ZERO, true).effective_ttl(), None);
    }

    #[test]
    fn names_lead_back_to_their_values() {
        for name in ReviewVersion::NAMES {
            assert_eq!(ReviewVersion::from_version_name(name).map(ReviewVersion::name), Some(name));
        }
        for name in FailurePolicy::NAMES {
            assert_eq!(FailurePolicy::from_policy_name(name).map(FailurePolicy::name), Some(name));
        }
        assert_eq!(ReviewVersion::from_version_name("V1"), None);
        assert_eq!(FailurePolicy::from_policy_name("deny"), None);
    }

    #[test]
    fn paths_are_absolute() {
        assert!(AbsolutePath::new("/etc/hook.yaml").is_some());
        for path in ["", "hook.yaml", "../hook.yaml", "./hook.yaml", "~/hook.yaml"] {
            assert_eq!(AbsolutePath::new(path), None, "{path}");
        }
    }
}
