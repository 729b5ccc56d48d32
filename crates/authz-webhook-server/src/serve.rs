//! Builds the webhook server from its options, starts its tasks, and stops it.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use audit::Auditor;
use authn::{Authenticator, Options};
use authz_chain::AuthorizerSlot;
use cluster_client::{ClusterClient, WatchIntervals};
use component_base::{
    AuditIdGenerator, AuditMetrics, CaFiles, CaReload, ConnectionMetrics, Log,
    connection_fault_reporter, log_audit_losses, reload_ca_files_periodically,
};
use concurrency_limit::ConcurrencyLimit;
use http::Response;
use https_server::{Body, DrainPlan, DrainResult, Limits, Listener, Shutdown, ShutdownPhase};
use manifests::rbac::RbacObject;
use metrics::AuthorizationMetrics;
use prometheus::Registry;
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::caller::CallerAuthenticator;
use crate::cluster_resource::ClusterResource;
use crate::cluster_watches::{WatchContext, follow_resource};
use crate::decision_id::DecisionIdGenerator;
use crate::freshness::Freshness;
use crate::policy_cache::{AuthorizersError, PolicyCache, PolicyOrigin};
use crate::recent_decisions::RecentDecisions;
use crate::request::{handle_request, health_response};
use crate::respond::status_response;
use crate::webhook_metrics::WebhookMetrics;

/// The health listener has this fraction of all connections, and at most [`HEALTH_CONNECTIONS_MAX`]. The probes of kubelet
/// need one or two.
const HEALTH_CONNECTIONS_FRACTION: usize = 8;

/// The most connections of the health listener.
const HEALTH_CONNECTIONS_MAX: usize = 256;

/// The options of a webhook server.
pub struct WebhookOptions {
    /// The path that reviews are posted to, such as `/authorize`.
    pub review_path: String,
    /// The authorizers to start with.
    pub authorizer_slots: Arc<[AuthorizerSlot]>,
    /// Reads the status of the authorizers.
    pub authorization_status: Arc<dyn Fn() -> Value + Send + Sync>,
    /// The metrics of the authorizers.
    pub authorization_metrics: Arc<AuthorizationMetrics>,
    /// The registry of all metrics.
    pub metrics_registry: Registry,
    /// Where the policy objects come from.
    pub policy_origin: PolicyOrigin,
    /// The objects of files at the start.
    pub file_objects: Vec<RbacObject>,
    /// The cluster whose objects are watched; `None` if the policy comes from files alone.
    pub cluster_client: Option<ClusterClient>,
    /// The age of the last proof of a cache at which the webhook stops to decide.
    pub proof_age_max: Duration,
    /// The authentication of callers: their certificate authorities, and nothing else.
    pub authentication: Options,
    /// The common names that callers may have; empty means any.
    pub allowed_client_names: Vec<String>,
    /// The CA file of callers, which is read again.
    pub ca_files: CaFiles,
    /// The audit policy and its backends.
    pub auditor: Option<Auditor>,
    /// The limits of requests.
    pub limits: WebhookLimits,
    /// The limits of the connections of both listeners together.
    pub connection_limits: Limits,
    /// A listener for health endpoints alone, on which clients need no certificate.
    pub health_listener: Option<Listener>,
    /// The log of the server.
    pub log: Log,
}

/// The limits of requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookLimits {
    /// The longest body of a review, in bytes.
    pub body_bytes_max: usize,
    /// The reviews in progress at one time.
    pub reviews_max: usize,
    /// The reviews in progress of one caller.
    pub reviews_per_caller_max: usize,
    /// The decisions that can be explained; 0 keeps none.
    pub recent_decisions_max: usize,
    /// The bytes of these decisions together.
    pub recent_decisions_bytes_max: usize,
}

impl Default for WebhookLimits {
    fn default() -> Self {
        Self {
            body_bytes_max: 1 << 20,
            reviews_max: 1_000,
            // Several API servers mostly share one name, and another caller must still get answers.
            reviews_per_caller_max: 750,
            recent_decisions_max: 1_000,
            recent_decisions_bytes_max: 16 << 20,
        }
    }
}

impl WebhookLimits {
    fn new_reviews_limit(&self) -> ConcurrencyLimit {
        ConcurrencyLimit::new_with_limit_per_user(self.reviews_max, self.reviews_per_caller_max)
    }
}

/// The server cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The authorizers cannot be used by a webhook.
    #[error(transparent)]
    Authorizers(#[from] AuthorizersError),
    /// The authorities of callers cannot be used.
    #[error("authentication")]
    Authentication(#[from] authn::AuthenticatorOptionsError),
    /// A metric cannot be registered.
    #[error("metrics")]
    Metrics(#[from] prometheus::Error),
}

/// The state that all requests share.
pub(crate) struct WebhookState {
    pub(crate) review_path: String,
    pub(crate) callers: CallerAuthenticator,
    pub(crate) policy_cache: Arc<PolicyCache>,
    pub(crate) freshness: Arc<Freshness>,
    pub(crate) recent_decisions: RecentDecisions,
    pub(crate) decision_ids: DecisionIdGenerator,
    pub(crate) audit_ids: AuditIdGenerator,
    pub(crate) auditor: Option<Auditor>,
    pub(crate) reviews_limit: Arc<ConcurrencyLimit>,
    pub(crate) body_bytes_max: usize,
    pub(crate) authorization_status: Arc<dyn Fn() -> Value + Send + Sync>,
    pub(crate) authorization_metrics: Arc<AuthorizationMetrics>,
    pub(crate) metrics: Arc<WebhookMetrics>,
    pub(crate) audit_metrics: AuditMetrics,
    pub(crate) connection_metrics: ConnectionMetrics,
    pub(crate) metrics_registry: Registry,
    pub(crate) shutdown: Shutdown,
    pub(crate) log: Log,
}

impl WebhookState {
    /// Whether a signal has stopped the program.
    pub(crate) fn is_stopping(&self) -> bool {
        self.shutdown.current_phase() > ShutdownPhase::Serving
    }
}

/// A running webhook server with its tasks.
pub struct WebhookServer {
    state: Arc<WebhookState>,
    address: SocketAddr,
    connection_tasks: JoinSet<()>,
    background_tasks: JoinSet<()>,
}

impl WebhookServer {
    /// Begins to listen and to watch the cluster. The server is not ready before every cache has synced.
    ///
    /// # Errors
    /// An option is invalid.
    pub fn start(listener: Listener, options: WebhookOptions) -> Result<Self, StartError> {
        let policy_cache = PolicyCache::new(options.policy_origin, options.authorizer_slots)?;
        policy_cache.replace_file_objects(options.file_objects);
        let policy_cache = Arc::new(policy_cache);
        let resources: &[ClusterResource] = match &options.cluster_client {
            Some(_) => &ClusterResource::ALL,
            None => &[],
        };
        let freshness = Arc::new(Freshness::new(resources, options.proof_age_max));
        let metrics = Arc::new(WebhookMetrics::new(&options.metrics_registry)?);
        let limits = options.limits;
        let log = options.log;
        let state = Arc::new(WebhookState {
            review_path: options.review_path,
            callers: CallerAuthenticator {
                authenticator: Authenticator::new(options.authentication)?,
                allowed_names: options.allowed_client_names,
            },
            policy_cache: Arc::clone(&policy_cache),
            freshness: Arc::clone(&freshness),
            recent_decisions: RecentDecisions::new(
                limits.recent_decisions_max,
                limits.recent_decisions_bytes_max,
            ),
            decision_ids: DecisionIdGenerator::new(),
            audit_ids: AuditIdGenerator::new(random_bytes()),
            auditor: options.auditor,
            reviews_limit: Arc::new(limits.new_reviews_limit()),
            body_bytes_max: limits.body_bytes_max,
            authorization_status: options.authorization_status,
            authorization_metrics: options.authorization_metrics,
            metrics: Arc::clone(&metrics),
            audit_metrics: AuditMetrics::new(&options.metrics_registry)?,
            connection_metrics: ConnectionMetrics::new(&options.metrics_registry)?,
            metrics_registry: options.metrics_registry,
            shutdown: Shutdown::new(),
            log,
        });
        let mut background_tasks = JoinSet::new();
        if let Some(client) = options.cluster_client {
            let client = Arc::new(client);
            let intervals = WatchIntervals::for_proof_age(options.proof_age_max);
            for resource in ClusterResource::ALL {
                let ctx = WatchContext {
                    policy_cache: Arc::clone(&policy_cache),
                    freshness: Arc::clone(&freshness),
                    metrics: Arc::clone(&metrics),
                    log,
                };
                let client = Arc::clone(&client);
                background_tasks.spawn(follow_resource(client, resource, intervals, ctx));
            }
        }
        background_tasks.spawn(reload_ca_files_periodically(ca_reload(&state), options.ca_files));
        let auditing = Arc::clone(&state);
        background_tasks.spawn(async move {
            log_audit_losses(auditing.auditor.as_ref(), auditing.log).await;
        });
        let address = listener.bound_address();
        let mut connection_tasks = JoinSet::new();
        let report = || connection_fault_reporter(state.connection_metrics.clone(), log);
        let shutdown = state.shutdown.clone();
        let (review_limits, health_limits) = match &options.health_listener {
            Some(_) => split_connection_limits(options.connection_limits),
            None => (options.connection_limits.clone(), options.connection_limits),
        };
        let serving = Arc::clone(&state);
        connection_tasks.spawn(https_server::serve(
            listener,
            review_limits,
            shutdown.clone(),
            report(),
            move |request, connection| handle_request(Arc::clone(&serving), request, connection),
        ));
        if let Some(listener) = options.health_listener {
            let serving = Arc::clone(&state);
            connection_tasks.spawn(https_server::serve(
                listener,
                health_limits,
                shutdown,
                report(),
                move |request, _| {
                    let serving = Arc::clone(&serving);
                    async move { serve_health(&serving, request.uri()) }
                },
            ));
        }
        Ok(Self { state, address, connection_tasks, background_tasks })
    }

    /// The address that the server listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The first part of the ids of all decisions of this process.
    #[must_use]
    pub fn instance(&self) -> String {
        self.state.decision_ids.instance()
    }

    /// Returns a function that replaces the authorizers. Requests in progress keep those that they began with.
    pub fn authorizer_replacer(
        &self,
    ) -> impl Fn(&Arc<[AuthorizerSlot]>) -> Result<(), AuthorizersError> + Send + Sync + 'static
    {
        let policy_cache = Arc::clone(&self.state.policy_cache);
        move |slots| policy_cache.replace_authorizers(slots)
    }

    /// Returns a function that replaces the objects of files.
    pub fn file_object_replacer(&self) -> impl Fn(Vec<RbacObject>) + Send + Sync + 'static {
        let policy_cache = Arc::clone(&self.state.policy_cache);
        move |objects| policy_cache.replace_file_objects(objects)
    }

    /// Stops the server: readiness fails, then new connections are refused, reviews in progress get their answers, and audit
    /// events that wait are written.
    pub fn stop(mut self, plan: DrainPlan) -> Pin<Box<dyn Future<Output = DrainResult> + Send>> {
        Box::pin(async move {
            let drained = self.state.shutdown.drain(plan).await;
            while self.connection_tasks.join_next().await.is_some() {}
            self.background_tasks.shutdown().await;
            let (auditor, log) = (self.state.auditor.as_ref(), self.state.log);
            component_base::flush_audit_events(auditor, log).await;
            drained
        })
    }
}

/// Divides connections into those for reviews and those for health. The process has descriptors for the sum alone, and clients
/// of the health listener need no certificate, so they get a small part, from which no address takes more than a quarter.
fn split_connection_limits(limits: Limits) -> (Limits, Limits) {
    let health_connections_max =
        (limits.connections_max / HEALTH_CONNECTIONS_FRACTION).clamp(1, HEALTH_CONNECTIONS_MAX);
    let health_limits = Limits {
        connections_max: health_connections_max,
        unauthenticated_per_address_max: health_connections_max.div_ceil(4),
        connections_per_user_max: health_connections_max.div_ceil(4),
        handshakes_max: health_connections_max.div_ceil(4),
        loopback_reserve_connections_max: 0,
        ..limits.clone()
    };
    let connections_max = limits.connections_max.saturating_sub(health_connections_max).max(1);
    (Limits { connections_max, ..limits }, health_limits)
}

/// Serves the health listener, which has no other path.
fn serve_health(server: &WebhookState, uri: &http::Uri) -> Response<Body> {
    health_response(server, uri.path(), uri.query().unwrap_or_default())
        .unwrap_or_else(|| status_response(&api_object::Status::unknown_resource()))
}

fn ca_reload(state: &Arc<WebhookState>) -> CaReload {
    let (authenticating, counting) = (Arc::clone(state), Arc::clone(state));
    CaReload {
        replace_authorities: Box::new(move |kind, certificates| {
            authenticating.callers.authenticator.replace_authorities(kind, certificates)
        }),
        count_reload: Box::new(move |file, status| counting.metrics.count_ca_reload(file, status)),
        log: state.log,
    }
}

fn random_bytes() -> [u8; 16] {
    let mut bytes = [0; 16];
    // Audit ids are unique within this process even if the system has no random bytes.
    let _ = SystemRandom::new().fill(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_health_port_takes_a_small_part_of_the_connections() {
        for (connections_max, want_reviews, want_health, want_per_address) in [
            (10_000, 9_744, 256, 64),
            (2_048, 1_792, 256, 64),
            (800, 700, 100, 25),
            (8, 7, 1, 1),
            (2, 1, 1, 1),
            (1, 1, 1, 1),
        ] {
            let all = Limits { connections_max, ..Limits::default() };
            let (reviews, health) = split_connection_limits(all);
            assert_eq!(
                (reviews.connections_max, health.connections_max),
                (want_reviews, want_health)
            );
            assert_eq!(health.unauthenticated_per_address_max, want_per_address);
            assert_eq!(health.handshakes_max, want_per_address);
            assert_eq!(health.loopback_reserve_connections_max, 0);
        }
    }

    /// One caller that posts reviews without end leaves room for another one.
    #[test]
    fn reviews_of_one_caller_leave_room_for_others() {
        let limits = WebhookLimits::default();
        let limit = Arc::new(limits.new_reviews_limit());
        let permits: Vec<_> = (0..limits.reviews_per_caller_max)
            .map(|_| limit.acquire_permit("one").unwrap())
            .collect();
        assert!(limit.acquire_permit("one").is_err());
        assert!(limit.acquire_permit("other").is_ok());
        drop(permits);
        assert!(limit.acquire_permit("one").is_ok());
    }
}
