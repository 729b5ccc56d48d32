//! What all requests share.

use std::sync::Arc;
use std::time::{Duration, Instant};

use admission::InitializerOptions;
use audit::Auditor;
use authn::{Authenticator, Impersonator, TokenIssuer};
use authz::User;
use concurrency_limit::ConcurrencyLimit;
use ring::rand::{SecureRandom, SystemRandom};

use https_server::{InFlight, Shutdown};

use crate::admission::{FreshnessBarrier, PolledConfigurationSlot};
use crate::audit_id::AuditIds;
use crate::clock::Clock;
use crate::cluster_ips::{PickedAddresses, ServiceRange};
use crate::health::Readiness;
use crate::initialize::{GetMode, InitializationTracker};
use crate::log::Log;
use crate::metrics::Metrics;
use crate::snapshot_cache::SnapshotCache;
use crate::undecodable::DecodableVersions;

/// The most checks of roles and bindings that run at one time beside those that take no time.
pub(crate) const ESCALATION_CHECKS_MAX: usize = 4;

/// How the server behaves.
#[derive(Debug, Clone)]
pub struct RequestOptions {
    /// How long an Event lives.
    pub event_ttl: Duration,
    /// Whether dependents of what is deleted are taken care of.
    pub has_garbage_collector: bool,
    /// Whether pods on nodes get time to end when they are deleted.
    pub has_graceful_pods: bool,
    /// How many objects of a collection are deleted at one time.
    pub delete_workers: usize,
    /// The addresses that services get; `None` gives them none.
    pub service_range: Option<ServiceRange>,
    /// Whether objects are refused that ask for something that nobody enforces.
    pub refuses_unenforced: bool,
    /// How long a request may take.
    pub request_timeout: Duration,
    /// How long the write of one object may take, whatever the client allows.
    pub write_timeout: Duration,
    /// How long a watch lasts at least when the client does not say; at most twice that.
    pub min_watch: Duration,
    /// How often a watch that has nothing to tell says how far it is. Clients count on once a
    /// minute.
    pub bookmark_every: Duration,
    /// What `/version` says: `1.34`.
    pub report_version: String,
    /// Where clients find the server: `127.0.0.1:6443`.
    pub advertised: String,
}

/// What all requests share.
pub(crate) struct ServerState<S> {
    pub(crate) store: Arc<S>,
    /// Of the keys in the store, without a slash at the end.
    pub(crate) prefix: String,
    pub(crate) snapshot_cache: Arc<SnapshotCache<S>>,
    /// Which versions of objects lists and watches can send as they are stored.
    pub(crate) decodable_versions: Arc<DecodableVersions>,
    pub(crate) options: RequestOptions,
    pub(crate) metrics: Metrics,
    pub(crate) log: Log,
    pub(crate) rng: SystemRandom,
    pub(crate) audit_ids: AuditIds,
    pub(crate) readiness: Readiness,
    /// Who the server is to itself.
    pub(crate) own_user: Arc<User>,
    pub(crate) authenticator: Authenticator,
    pub(crate) impersonator: Impersonator,
    pub(crate) issuer: TokenIssuer,
    /// `None` records nothing.
    pub(crate) auditor: Option<Auditor>,
    pub(crate) authorization_metrics: Arc<authz_metrics::Metrics>,
    pub(crate) admission_metrics: Arc<admission_metrics::Metrics>,
    /// Knows how new the configuration of admission is.
    pub(crate) barrier: FreshnessBarrier,
    /// When it began to read the store.
    pub(crate) started: Instant,
    /// Who this server is to the others, from its start to its end.
    pub(crate) server_id: String,
    /// The configuration of admission, where it is read at intervals.
    pub(crate) polled: PolledConfigurationSlot,
    /// How initialization behaves.
    pub(crate) initialization: InitializerOptions,
    /// The longest that a call of a hook may take.
    pub(crate) call_time_max: Duration,
    /// The addresses that hooks may have.
    pub(crate) hook_addresses: https_client::AddressPolicy,
    /// What who reads an uninitialized object gets to see.
    pub(crate) get_mode: GetMode,
    /// Follows objects that wait for initializers.
    pub(crate) initialization_tracker: InitializationTracker,
    /// What they wait by.
    pub(crate) clock: Clock,
    /// Which authorizers are in use, and how they fare.
    pub(crate) authorization_status: Arc<dyn Fn() -> serde_json::Value + Send + Sync>,
    pub(crate) in_flight: InFlight,
    /// Checks whether users hold what they grant, where that takes long.
    pub(crate) escalation_checks: Arc<ConcurrencyLimit>,
    /// The watches of all users who are not in `system:masters`.
    pub(crate) watches: Arc<ConcurrencyLimit>,
    pub(crate) shutdown: Shutdown,
    /// Addresses that services are about to take.
    pub(crate) picked_addresses: PickedAddresses,
}

impl<S> ServerState<S> {
    /// Bytes that nobody can guess. Where the system has none the server can not go on safely, and
    /// names and ids of zeros collide rather than leak.
    pub(crate) fn random<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        if self.rng.fill(&mut bytes).is_err() {
            self.log.error("the system gives no random numbers", &[]);
        }
        bytes
    }
}
