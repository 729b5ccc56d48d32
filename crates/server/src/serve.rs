//! Builds the server from its options, starts its loops, and stops it.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use admission::InitializerOptions;
use admission_hooks::{
    CALL_TIME_MAX, CALLS_IN_FLIGHT_MAX, HookEnvironment, RESPONSE_BYTES_MAX,
    ServiceCredentialsTable,
};
use arc_swap::ArcSwap;
use audit::Auditor;
use authn::{Authenticator, Impersonator, TokenIssuer};
use authz_chain::AuthorizerSlot;
use component_base::{
    AuditIdGenerator, CaFiles, CaReload, Log, connection_fault_reporter,
    reload_ca_files_periodically,
};
use concurrency_limit::ConcurrencyLimit;
use flow_control::FlowController;
use https_client::AddressPolicy;
use https_server::{DrainPlan, DrainResult, Limits, Listener, Shutdown};
use ring::rand::SystemRandom;
use store::{ReadError, Store};
use tokio::task::JoinSet;

use crate::admission::ConfiguredHooks;
use crate::admission::{
    AdmissionConfigSyncOptions, AdmissionPlugins, FreshnessBarrier, PolledAdmissionConfig,
};
use crate::background_loops;
use crate::bootstrap::{BootstrapError, bootstrap, retry_bootstrap};
use crate::clock::Clock;
use crate::cluster_ips::PendingIpAllocations;
use crate::cluster_snapshot::ClusterSnapshot;
use crate::decodable_object_cache::DecodableObjectCache;
use crate::encoded_event_cache::EncodedEventCache;
use crate::health::ReadinessState;
use crate::initializers::{
    ObjectInitializationTracker, UninitializedGetMode, run_object_initialization_jobs,
    sweep_abandoned_initializations,
};
use crate::loopback::loopback_user;
use crate::memory_budget::MemoryBudget;
use crate::metrics::ServerMetrics;
use crate::processor_turns;
use crate::request;
use crate::request_limits::RequestLimits;
use crate::response_bytes::ResponseBytesLimit;
use crate::server_state::{
    ApiSettings, BODY_DISCARDS_MAX, BODY_DISCARDS_PER_USER_MAX, ServerState,
};
use crate::service_directory::ServiceDirectory;
use crate::snapshot_cache::SnapshotCache;
use crate::token_object_cache::TokenObjectCache;

/// The options of a server, apart from its store and its listener.
pub struct ServerOptions {
    /// The settings of the API.
    pub api_settings: ApiSettings,
    /// The prefix of its keys in the store, without a slash at the end.
    pub store_key_prefix: String,
    /// The authorizers, in order.
    pub authorizer_slots: Arc<[AuthorizerSlot]>,
    /// Returns the JSON document of `/portcullis/authorization/status`.
    pub authorization_status_json: Arc<dyn Fn() -> serde_json::Value + Send + Sync>,
    /// The addresses of services, for webhooks that run inside the cluster. The server updates it.
    pub service_directory: Arc<ServiceDirectory>,
    /// The registry that the server adds its metrics to.
    pub metrics_registry: prometheus::Registry,
    /// Counts the decisions of the authorizers.
    pub authorization_metrics: Arc<metrics::AuthorizationMetrics>,
    /// The options of dynamic admission.
    pub admission_options: AdmissionOptions,
    /// The policy of the node authorizer, with an empty graph.
    pub node_authorizer_policy: authz_node::Snapshot,
    /// The options of authentication.
    pub authentication_options: authn::Options,
    /// Signs the tokens of service accounts.
    pub token_issuer: TokenIssuer,
    /// The CA bundles that are reloaded while the server runs.
    pub ca_files: CaFiles,
    /// Writes audit events; `None` disables auditing.
    pub auditor: Option<Auditor>,
    /// The limits of requests.
    pub request_limits: RequestLimits,
    /// The maximum number of open watches; 0 disables the limit. Watches of members of `system:masters` are not
    /// counted.
    pub watches_max: usize,
    /// The maximum number of open watches of one user; 0 disables the limit.
    pub watches_per_user_max: usize,
    /// The maximum number of bytes of responses that wait for their clients; one user has at most a quarter of them, and
    /// 0 disables the limit. Responses to members of `system:masters` are not counted.
    pub response_bytes_max: usize,
    /// The limits of connections.
    pub connection_limits: Limits,
    /// The log of the server.
    pub log: Log,
}

/// The options of dynamic admission.
#[derive(Debug, Clone)]
pub struct AdmissionOptions {
    /// The built-in plugins that are enabled.
    pub admission_plugins: AdmissionPlugins,
    /// How fresh the configuration must be.
    pub admission_config_sync: AdmissionConfigSyncOptions,
    /// The options of initializers.
    pub initializer_options: InitializerOptions,
    /// The response to GET for an uninitialized object.
    pub uninitialized_get_mode: UninitializedGetMode,
    /// The clock of the timeouts of initializers.
    pub clock: Clock,
    /// The credentials that the server presents to hooks.
    pub hook_credentials: ServiceCredentialsTable,
    /// The maximum size of a hook's response to a request that is smaller.
    pub hook_response_bytes_max: usize,
    /// The maximum number of calls of one hook in flight; one user has at most half of them.
    pub hook_calls_in_flight_max: usize,
    /// The maximum duration of a call of a hook, whatever its `timeoutSeconds`.
    pub hook_call_time_max: Duration,
    /// The timeout of connecting to a hook.
    pub hook_connect_timeout: Duration,
    /// The addresses that hooks may have.
    pub hook_address_policy: AddressPolicy,
}

impl Default for AdmissionOptions {
    fn default() -> Self {
        Self {
            admission_plugins: AdmissionPlugins::default(),
            admission_config_sync: AdmissionConfigSyncOptions::default(),
            initializer_options: InitializerOptions::default(),
            uninitialized_get_mode: UninitializedGetMode::default(),
            clock: Clock::default(),
            hook_credentials: ServiceCredentialsTable::default(),
            hook_response_bytes_max: RESPONSE_BYTES_MAX,
            hook_calls_in_flight_max: CALLS_IN_FLIGHT_MAX,
            hook_call_time_max: CALL_TIME_MAX,
            hook_connect_timeout: https_client::Limits::default().connect_timeout,
            hook_address_policy: AddressPolicy::default(),
        }
    }
}

/// Replaces the authorizers of a server. Fails, and changes nothing, if two authorizers have the same name.
pub type AuthorizerReplacer = Arc<
    dyn Fn(&Arc<[AuthorizerSlot]>) -> Result<(), authz_chain::ConfigurationError> + Send + Sync,
>;

/// A running server with its background loops.
pub struct Server {
    server_state: Arc<ServerState>,
    listen_address: SocketAddr,
    /// The task that serves connections.
    connection_tasks: JoinSet<()>,
    background_tasks: JoinSet<()>,
}

/// The server cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The list of authorizers is invalid.
    #[error("authorization")]
    Authorization(#[from] authz_chain::ConfigurationError),
    /// The options of authentication are invalid.
    #[error("authentication")]
    Authentication(#[from] authn::AuthenticatorOptionsError),
    /// The store cannot be read.
    #[error("the store cannot be read")]
    Store(#[from] ReadError),
    /// The default objects cannot be written.
    #[error("the default objects cannot be written")]
    Bootstrap(#[from] BootstrapError),
    /// A metric cannot be registered.
    #[error("metrics")]
    Metrics(#[from] prometheus::Error),
}

/// A future that is boxed, so that the server is compiled in this crate alone, and not again in each program that runs it.
pub type BoxedFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Boxes a background loop, so that the code that spawns tasks is compiled once for all loops.
fn box_task(task: impl Future<Output = ()> + Send + 'static) -> BoxedFuture<()> {
    Box::pin(task)
}

impl Server {
    /// Reads the store, writes the default objects, and begins to serve.
    ///
    /// # Errors
    /// An option is invalid, or the store cannot be read or written.
    pub fn start(
        store: Arc<dyn Store>,
        listener: Listener,
        options: ServerOptions,
    ) -> BoxedFuture<Result<Self, StartError>> {
        Box::pin(Self::start_tasks(store, listener, options))
    }

    async fn start_tasks(
        store: Arc<dyn Store>,
        listener: Listener,
        options: ServerOptions,
    ) -> Result<Self, StartError> {
        let admission_metrics = metrics::AdmissionMetrics::new(
            &options.metrics_registry,
            authz_reload::AuthorizationObserverFactory::connection_observer(
                options.authorization_metrics.as_ref(),
            ),
        )?;
        let default_environment = HookEnvironment::default();
        let hooks = ConfiguredHooks::without_hooks(Arc::new(HookEnvironment {
            cluster_services: Some(Arc::clone(&options.service_directory) as _),
            service_credentials: options.admission_options.hook_credentials,
            client_limits: https_client::Limits {
                response_body_bytes_max: options.admission_options.hook_response_bytes_max,
                connect_timeout: options.admission_options.hook_connect_timeout,
                address_policy: options.admission_options.hook_address_policy,
                ..default_environment.client_limits
            },
            calls_in_flight_max: options.admission_options.hook_calls_in_flight_max,
            response_bytes_limit: admission_hooks::new_response_bytes_limit(
                options.admission_options.hook_response_bytes_max,
            ),
            certificate_observer: Arc::clone(&admission_metrics) as _,
        }));
        let empty = ClusterSnapshot::of_empty_store(
            options.authorizer_slots,
            options.node_authorizer_policy,
            hooks.clone(),
        )?;
        let issuer_discovery = build_issuer_discovery(
            options.authentication_options.service_account_options.as_ref(),
            &options.api_settings.advertised_address,
            options.log,
        );
        let authenticator = Authenticator::new(options.authentication_options)?;
        let request_limits = options.request_limits;
        let flow_controller = Arc::new(FlowController::new(request_limits.seats_max));
        let (snapshot_cache, stale_aggregated_roles) = SnapshotCache::start(
            Arc::clone(&store),
            &options.store_key_prefix,
            empty.clone(),
            Arc::clone(&options.service_directory),
            Arc::clone(&flow_controller),
            options.log,
        )
        .await?;
        let address = listener.bound_address();
        options.service_directory.set_server_address(address);
        let (object_initialization_tracker, jobs) = ObjectInitializationTracker::new();
        let mut server = ServerState {
            store,
            decodable_object_cache: Arc::new(DecodableObjectCache::new(&options.store_key_prefix)),
            store_key_prefix: options.store_key_prefix,
            snapshot_cache,
            api_settings: options.api_settings,
            metrics: ServerMetrics::new(options.metrics_registry, &flow_controller)?,
            log: options.log,
            rng: SystemRandom::new(),
            audit_id_generator: AuditIdGenerator::new([0; 16]),
            readiness: ReadinessState::default(),
            loopback_user: loopback_user(String::new()),
            authenticator,
            impersonator: Impersonator::default(),
            token_issuer: options.token_issuer,
            issuer_discovery,
            auditor: options.auditor,
            authorization_metrics: options.authorization_metrics,
            admission_metrics,
            admission_plugins: options.admission_options.admission_plugins,
            admission_freshness_barrier: FreshnessBarrier::new(
                options.admission_options.admission_config_sync,
            ),
            server_started_at: Instant::now(),
            server_id: String::new(),
            trust_comparison: ArcSwap::default(),
            polled_admission_config: ArcSwap::from_pointee(
                PolledAdmissionConfig::before_first_poll(hooks),
            ),
            initializer_options: options.admission_options.initializer_options,
            hook_call_time_max: options.admission_options.hook_call_time_max,
            hook_address_policy: options.admission_options.hook_address_policy,
            uninitialized_get_mode: options.admission_options.uninitialized_get_mode,
            object_initialization_tracker,
            clock: options.admission_options.clock,
            authorization_status_json: options.authorization_status_json,
            flow_controller: Arc::clone(&flow_controller),
            body_bytes_budget: MemoryBudget::new(
                request_limits.total_body_bytes_max,
                request_limits.body_bytes_per_user_max,
            ),
            decoded_body_bytes_budget: MemoryBudget::new(
                request_limits.total_decoded_body_bytes_max,
                request_limits.decoded_body_bytes_per_user_max,
            ),
            body_discards_limit: Arc::new(ConcurrencyLimit::new_with_limit_per_user(
                BODY_DISCARDS_MAX,
                BODY_DISCARDS_PER_USER_MAX,
            )),
            webhook_waits_limit: Arc::new(ConcurrencyLimit::new_with_limit_per_user(
                request_limits.webhook_waits_max,
                request_limits.webhook_waits_per_user_max,
            )),
            request_limits,
            processor_turns: processor_turns::new_processor_turn_queue(),
            watch_limit: Arc::new(ConcurrencyLimit::new_with_limit_per_user(
                unlimited_if_zero(options.watches_max),
                unlimited_if_zero(options.watches_per_user_max),
            )),
            response_bytes_limit: Arc::new(ResponseBytesLimit::new(options.response_bytes_max)),
            encoded_event_cache: EncodedEventCache::default(),
            token_object_cache: TokenObjectCache::default(),
            shutdown: Shutdown::new(),
            pending_ip_allocations: PendingIpAllocations::default(),
        };
        server.loopback_user = loopback_user(api_object::format_uuid4(server.random_bytes()));
        server.server_id = api_object::format_uuid4(server.random_bytes());
        server.audit_id_generator = AuditIdGenerator::new(server.random_bytes());
        let server = Arc::new(server);
        // A server that differs from its peers is never ready, not even for a moment.
        server.compare_trust_with_peers().await;
        let mut background_tasks = JoinSet::new();
        background_tasks.spawn(box_task(Arc::clone(&server.snapshot_cache).run(empty)));
        background_tasks.spawn(box_task(Arc::clone(&server).keep_admission_config_fresh()));
        background_tasks.spawn(box_task(Arc::clone(&server).write_heartbeats()));
        background_tasks
            .spawn(box_task(Arc::clone(&server).compare_trust_with_peers_periodically()));
        background_tasks.spawn(box_task(Arc::clone(&server).report_configured_hooks()));
        background_tasks.spawn(box_task(run_object_initialization_jobs(Arc::clone(&server), jobs)));
        background_tasks.spawn(box_task(sweep_abandoned_initializations(Arc::clone(&server))));
        background_tasks
            .spawn(box_task(reload_ca_files_periodically(ca_reload(&server), options.ca_files)));
        background_tasks.spawn(box_task(background_loops::store_aggregated_roles(
            Arc::clone(&server),
            stale_aggregated_roles,
        )));
        background_tasks.spawn(box_task(background_loops::log_store_alarms(Arc::clone(&server))));
        {
            let server = Arc::clone(&server);
            background_tasks.spawn(box_task(async move {
                component_base::log_audit_losses(server.auditor.as_ref(), server.log).await;
            }));
        }
        if !bootstrap(&server).await? {
            background_tasks.spawn(box_task(retry_bootstrap(Arc::clone(&server))));
        }
        server.readiness.is_bootstrapped.store(true, Ordering::Release);
        background_tasks
            .spawn(box_task(background_loops::delete_terminating_namespaces(Arc::clone(&server))));
        background_tasks.spawn(box_task(background_loops::reconcile_crds(Arc::clone(&server))));
        background_tasks
            .spawn(box_task(background_loops::maintain_flow_control(Arc::clone(&server))));
        if server.api_settings.service_ip_range.is_some() {
            background_tasks.spawn(box_task(background_loops::repair_cluster_ips_periodically(
                Arc::clone(&server),
            )));
        }
        if server.api_settings.has_garbage_collector {
            background_tasks
                .spawn(box_task(background_loops::collect_garbage(Arc::clone(&server))));
        }
        let mut connection_tasks = JoinSet::new();
        let service: https_server::Service = {
            let server = Arc::clone(&server);
            Box::new(move |request, connection, response_sender| {
                request::handle_request(Arc::clone(&server), request, connection, response_sender)
            })
        };
        let report =
            connection_fault_reporter(server.metrics.connection_metrics.clone(), server.log);
        connection_tasks.spawn(https_server::serve_with_response_sender(
            listener,
            options.connection_limits,
            server.shutdown.clone(),
            report,
            service,
        ));
        Ok(Self {
            server_state: server,
            listen_address: address,
            connection_tasks,
            background_tasks,
        })
    }

    /// The address that the server listens on.
    #[must_use]
    pub fn listen_address(&self) -> SocketAddr {
        self.listen_address
    }

    /// Returns a function that replaces the authorizers. Requests in progress keep those that they began
    /// with.
    #[must_use]
    pub fn authorizer_replacer(&self) -> AuthorizerReplacer {
        let snapshot_cache = Arc::clone(&self.server_state.snapshot_cache);
        Arc::new(move |authorizer_slots| snapshot_cache.replace_authorizers(authorizer_slots))
    }

    /// Stops the server: refuses new requests, ends watches, waits for requests in progress, writes the audit
    /// events that wait in queues, and closes the store.
    pub fn stop(mut self, plan: DrainPlan) -> BoxedFuture<DrainResult> {
        Box::pin(async move {
            self.server_state.readiness.is_stopping.store(true, Ordering::Release);
            let drained = self.server_state.shutdown.drain(plan).await;
            while self.connection_tasks.join_next().await.is_some() {}
            self.background_tasks.shutdown().await;
            self.server_state.remove_heartbeat().await;
            let (auditor, log) = (self.server_state.auditor.as_ref(), self.server_state.log);
            component_base::flush_audit_events(auditor, log).await;
            self.server_state.store.close().await;
            drained
        })
    }
}

/// The reload of the CA files of a server.
fn ca_reload(server: &Arc<ServerState>) -> CaReload {
    let (authenticating, counting) = (Arc::clone(server), Arc::clone(server));
    CaReload {
        replace_authorities: Box::new(move |kind, certificates| {
            authenticating.authenticator.replace_authorities(kind, certificates)
        }),
        count_reload: Box::new(move |file, status| {
            counting.metrics.ca_reload_counts.with_label_values(&[file, status]).inc();
        }),
        log: server.log,
    }
}

/// The documents of issuer discovery. A server whose issuer cannot be discovered still issues tokens.
fn build_issuer_discovery(
    service_accounts: Option<&authn::ServiceAccountOptions>,
    server_address: &str,
    log: Log,
) -> Option<authn::IssuerDiscovery> {
    let discovery = authn::IssuerDiscovery::new(service_accounts?, server_address);
    let warn = |error: &authn::IssuerDiscoveryError| {
        log.warn("service account issuer discovery is not served", &[("why", error)]);
    };
    discovery.inspect_err(warn).ok()
}

/// Converts the value of a limit flag: 0 disables the limit.
fn unlimited_if_zero(max: usize) -> usize {
    if max == 0 { usize::MAX } else { max }
}
