//! The state that all requests share.

use std::sync::Arc;
use std::time::{Duration, Instant};

use admission::InitializerOptions;
use arc_swap::ArcSwap;
use audit::Auditor;
use authn::{Authenticator, Impersonator, TokenIssuer};
use authz::User;
use component_base::{AuditIdGenerator, Log};
use concurrency_limit::{ConcurrencyLimit, FairCpuScheduler};
use flow_control::FlowController;
use ring::rand::{SecureRandom, SystemRandom};
use store::Store;

use https_server::Shutdown;

use crate::admission::{AdmissionPlugins, FreshnessBarrier, PolledAdmissionConfigSlot};
use crate::clock::Clock;
use crate::cluster_ips::{PendingIpAllocations, ServiceIpRange};
use crate::decodable_object_cache::DecodableObjectCache;
use crate::encoded_event_cache::EncodedEventCache;
use crate::health::ReadinessState;
use crate::initializers::{ObjectInitializationTracker, UninitializedGetMode};
use crate::memory_budget::MemoryBudget;
use crate::metrics::ServerMetrics;
use crate::peer_trust::PeerTrustComparison;
use crate::request_limits::RequestLimits;
use crate::response_bytes::ResponseBytesLimit;
use crate::snapshot_cache::SnapshotCache;
use crate::token_object_cache::TokenObjectCache;

/// The maximum number of requests whose bodies are read and dropped at the same time, and those of one user. Clients
/// without a user count as one.
pub(crate) const BODY_DISCARDS_MAX: usize = 256;
pub(crate) const BODY_DISCARDS_PER_USER_MAX: usize = 32;

/// The options of requests and loops.
#[derive(Debug, Clone)]
pub struct ApiSettings {
    /// The time to live of Events.
    pub event_ttl: Duration,
    /// Whether the garbage collector runs.
    pub has_garbage_collector: bool,
    /// Whether pods on nodes get a grace period when they are deleted.
    pub has_pod_grace_periods: bool,
    /// How many objects of a collection are deleted concurrently.
    pub delete_collection_workers: usize,
    /// The range of cluster IPs; `None` disables their allocation.
    pub service_ip_range: Option<ServiceIpRange>,
    /// Whether objects are rejected that use features which no component enforces.
    pub refuses_unenforced_features: bool,
    /// The timeout of requests.
    pub request_timeout: Duration,
    /// The timeout of the write of one object, whatever timeout the client sets.
    pub write_timeout: Duration,
    /// Watches without a timeout end after a random time between this value and twice this value.
    pub watch_duration_min: Duration,
    /// The interval of bookmarks in an idle watch. Clients expect one about every minute.
    pub bookmark_interval: Duration,
    /// The Kubernetes version that `/version` reports, such as `1.34`.
    pub reported_kubernetes_version: String,
    /// The address under which clients reach the server, such as `127.0.0.1:6443`.
    pub advertised_address: String,
}

/// The state that all requests and loops share.
pub(crate) struct ServerState {
    pub(crate) store: Arc<dyn Store>,
    /// The prefix of the keys in the store, without a slash at the end.
    pub(crate) store_key_prefix: String,
    pub(crate) snapshot_cache: Arc<SnapshotCache>,
    /// The versions of objects that lists and watches can send as they are stored.
    pub(crate) decodable_object_cache: Arc<DecodableObjectCache>,
    pub(crate) api_settings: ApiSettings,
    pub(crate) metrics: ServerMetrics,
    pub(crate) log: Log,
    pub(crate) rng: SystemRandom,
    pub(crate) audit_id_generator: AuditIdGenerator,
    pub(crate) readiness: ReadinessState,
    /// The user of the server's own requests.
    pub(crate) loopback_user: Arc<User>,
    pub(crate) authenticator: Authenticator,
    pub(crate) impersonator: Impersonator,
    pub(crate) token_issuer: TokenIssuer,
    /// The issuer discovery documents, with which other parties verify tokens; `None` if the issuer cannot be
    /// discovered.
    pub(crate) issuer_discovery: Option<authn::IssuerDiscovery>,
    /// Writes audit events; `None` disables auditing.
    pub(crate) auditor: Option<Auditor>,
    pub(crate) authorization_metrics: Arc<metrics::AuthorizationMetrics>,
    pub(crate) admission_metrics: Arc<metrics::AdmissionMetrics>,
    /// The built-in admission plugins that are enabled.
    pub(crate) admission_plugins: AdmissionPlugins,
    /// Determines whether the admission configuration is current.
    pub(crate) admission_freshness_barrier: FreshnessBarrier,
    /// The time at which the server began to read the store.
    pub(crate) server_started_at: Instant,
    /// The id of this process among the servers of one store.
    pub(crate) server_id: String,
    /// The last comparison of the authorities and keys of this server with those of the other servers of the
    /// store.
    pub(crate) trust_comparison: ArcSwap<PeerTrustComparison>,
    /// The admission configuration that was polled last, in poll mode.
    pub(crate) polled_admission_config: PolledAdmissionConfigSlot,
    /// The options of initializers.
    pub(crate) initializer_options: InitializerOptions,
    /// The maximum duration of a call of a hook.
    pub(crate) hook_call_time_max: Duration,
    /// The addresses that hooks may have.
    pub(crate) hook_address_policy: https_client::AddressPolicy,
    /// The response to GET for an uninitialized object.
    pub(crate) uninitialized_get_mode: UninitializedGetMode,
    /// Tracks objects that wait for initializers.
    pub(crate) object_initialization_tracker: ObjectInitializationTracker,
    /// The clock of the timeouts of initializers.
    pub(crate) clock: Clock,
    /// Returns the JSON document of `/portcullis/authorization/status`.
    pub(crate) authorization_status_json: Arc<dyn Fn() -> serde_json::Value + Send + Sync>,
    /// Classifies requests and hands out their seats.
    pub(crate) flow_controller: Arc<FlowController>,
    pub(crate) request_limits: RequestLimits,
    /// Limits the bytes of the bodies of requests in progress.
    pub(crate) body_bytes_budget: MemoryBudget,
    /// Limits the bytes that these bodies take when they are decoded.
    pub(crate) decoded_body_bytes_budget: MemoryBudget,
    /// Limits the requests over HTTP/1.1 whose bodies are read and dropped after the response. Each holds a connection
    /// for up to two seconds.
    pub(crate) body_discards_limit: Arc<ConcurrencyLimit>,
    /// Limits the requests that wait for webhooks without a seat.
    pub(crate) webhook_waits_limit: Arc<ConcurrencyLimit>,
    /// The turns of requests that keep a processor for long.
    pub(crate) processor_turns: Arc<FairCpuScheduler>,
    /// Limits the watches of users who are not in `system:masters`.
    pub(crate) watch_limit: Arc<ConcurrencyLimit>,
    /// Limits the bytes of responses that wait for users who are not in `system:masters`.
    pub(crate) response_bytes_limit: Arc<ResponseBytesLimit>,
    /// The newest events in the form that watches send.
    pub(crate) encoded_event_cache: EncodedEventCache,
    /// The objects that the tokens of service accounts refer to.
    pub(crate) token_object_cache: TokenObjectCache,
    pub(crate) shutdown: Shutdown,
    /// Cluster IPs that requests are about to allocate.
    pub(crate) pending_ip_allocations: PendingIpAllocations,
}

impl ServerState {
    /// Random bytes. If the system returns none, the bytes are zero and the error is logged: generated names
    /// and ids then collide, and writes fail.
    pub(crate) fn random_bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        if self.rng.fill(&mut bytes).is_err() {
            self.log.error("the system returns no random bytes", &[]);
        }
        bytes
    }
}
