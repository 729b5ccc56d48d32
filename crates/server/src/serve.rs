//! Putting the server together, and taking it down.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use admission::InitializerOptions;
use admission_hooks::{
    AccessTable, CALL_TIME_MAX, CALLS_IN_FLIGHT_MAX, HookEnvironment, RESPONSE_BYTES_MAX,
};
use arc_swap::ArcSwap;
use audit::Auditor;
use authn::{Authenticator, Impersonator, TokenIssuer};
use authz_chain::AuthorizerSlot;
use concurrency_limit::ConcurrencyLimit;
use https_client::AddressPolicy;
use https_server::{DrainPlan, DrainResult, InFlight, Limits, Listener, Shutdown};
use ring::rand::SystemRandom;
use store::{ReadError, Store};
use tokio::task::JoinSet;

use crate::audit_id::AuditIds;
use crate::authority_files::{AuthorityFiles, follow_authorities};
use crate::bootstrap::{BootstrapError, bootstrap, complete_bootstrap};
use crate::clock::Clock;
use crate::cluster_ips::PickedAddresses;
use crate::cluster_snapshot::ClusterSnapshot;
use crate::confirm::{FreshnessBarrier, SyncOptions};
use crate::health::Readiness;
use crate::hooks::Hooks;
use crate::initialize::{GetMode, InitializationTracker, oversee_all, sweep_waiting};
use crate::log::Log;
use crate::loopback::own_user;
use crate::loops;
use crate::metrics::Metrics;
use crate::request;
use crate::server_state::{ESCALATION_CHECKS_MAX, RequestOptions, ServerState};
use crate::service_directory::ServiceDirectory;
use crate::snapshot_cache::SnapshotCache;
use crate::standing::Polled;
use crate::store_status::log_store_status;
use crate::undecodable::DecodableVersions;

/// What a server is made of, beside its store and its listener.
pub struct ServerOptions {
    /// How it behaves.
    pub requests: RequestOptions,
    /// The prefix of its keys in the store, without a slash at the end.
    pub prefix: String,
    /// The authorizers, in order.
    pub slots: Arc<[AuthorizerSlot]>,
    /// What is told under `/portcullis/authorization/status`.
    pub authorization_status: Arc<dyn Fn() -> serde_json::Value + Send + Sync>,
    /// Learns where the services of the cluster are, for webhooks that run inside it.
    pub directory: Arc<ServiceDirectory>,
    /// Where the numbers of others are already; the server adds its own.
    pub registry: prometheus::Registry,
    /// Counts what the chain answers about requests.
    pub authorization_metrics: Arc<metrics::AuthorizationMetrics>,
    /// How dynamic admission behaves.
    pub admission: AdmissionOptions,
    /// What nodes may do before any object is known.
    pub node: authz_node::Policy,
    /// Whom it believes.
    pub authentication: authn::Options,
    /// What signs the tokens of service accounts.
    pub issuer: TokenIssuer,
    /// The files of authorities that are read again while it serves.
    pub authority_files: AuthorityFiles,
    /// What records requests; `None` records nothing.
    pub auditor: Option<Auditor>,
    /// How many requests that change something are worked on at one time; 0 does not limit.
    pub mutating_max: usize,
    /// How many others are; 0 does not limit.
    pub read_only_max: usize,
    /// How many watches are open at one time; one user has at most half of them. Those of
    /// `system:masters` do not count.
    pub watches_max: usize,
    /// What a connection may take.
    pub limits: Limits,
    /// Where it says what happens.
    pub log: Log,
}

/// How dynamic admission behaves.
#[derive(Debug, Clone)]
pub struct AdmissionOptions {
    /// When its configuration is new enough.
    pub sync: SyncOptions,
    /// How initialization behaves.
    pub initializers: InitializerOptions,
    /// What who reads an uninitialized object by its name gets to see.
    pub get_mode: GetMode,
    /// What initializers are timed by.
    pub clock: Clock,
    /// Who the server is to hooks.
    pub access: AccessTable,
    /// The longest answer of a hook to a question that is not long itself.
    pub response_bytes_max: usize,
    /// The most calls of each hook that are in flight; one user has at most half of them.
    pub calls_in_flight_max: usize,
    /// The longest that a call of a hook may take, whatever the hook says.
    pub call_time_max: Duration,
    /// The longest that connecting to a hook may take.
    pub connect_timeout: Duration,
    /// The addresses that hooks may have.
    pub addresses: AddressPolicy,
}

impl Default for AdmissionOptions {
    fn default() -> Self {
        Self {
            sync: SyncOptions::default(),
            initializers: InitializerOptions::default(),
            get_mode: GetMode::default(),
            clock: Clock::default(),
            access: AccessTable::default(),
            response_bytes_max: RESPONSE_BYTES_MAX,
            calls_in_flight_max: CALLS_IN_FLIGHT_MAX,
            call_time_max: CALL_TIME_MAX,
            connect_timeout: https_client::Limits::default().connect_timeout,
            addresses: AddressPolicy::default(),
        }
    }
}

/// Puts other authorizers in place; fails, and changes nothing, if two have one name.
pub type Reseater = Arc<
    dyn Fn(&Arc<[AuthorizerSlot]>) -> Result<(), authz_chain::ConfigurationError> + Send + Sync,
>;

/// A server that serves.
pub struct Server<S> {
    server: Arc<ServerState<S>>,
    address: SocketAddr,
    tasks: JoinSet<()>,
    loops: JoinSet<()>,
}

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The order of authorizers is at fault.
    #[error("authorization: {0}")]
    Authorization(#[from] authz_chain::ConfigurationError),
    /// Who is believed is at fault.
    #[error("authentication: {0}")]
    Authentication(#[from] authn::OptionsError),
    /// The store can not be read.
    #[error("the store can not be read: {0}")]
    Store(#[from] ReadError),
    /// What a server needs can not be written.
    #[error("the default objects can not be written: {0}")]
    Bootstrap(#[from] BootstrapError),
    /// Numbers can not be kept.
    #[error("metrics: {0}")]
    Metrics(#[from] prometheus::Error),
}

impl<S: Store> Server<S> {
    /// Reads the store, makes sure of what must be there, and begins to serve.
    ///
    /// # Errors
    /// Something that the server can not do without is missing.
    pub async fn start(
        store: Arc<S>,
        listener: Listener,
        options: ServerOptions,
    ) -> Result<Self, StartError> {
        let admission_metrics = metrics::AdmissionMetrics::new(
            &options.registry,
            authz_reload::Instruments::remote(options.authorization_metrics.as_ref()),
        )?;
        let usual = HookEnvironment::default();
        let hooks = Hooks::none(Arc::new(HookEnvironment {
            services: Some(Arc::clone(&options.directory) as _),
            access: options.admission.access,
            limits: https_client::Limits {
                body_bytes_max: options.admission.response_bytes_max,
                connect_timeout: options.admission.connect_timeout,
                addresses: options.admission.addresses,
                ..usual.limits
            },
            calls_in_flight_max: options.admission.calls_in_flight_max,
            observe: Arc::clone(&admission_metrics) as _,
        }));
        let empty = ClusterSnapshot::empty(options.slots, options.node, hooks.clone())?;
        let authenticator = Authenticator::new(options.authentication)?;
        let (snapshot_cache, notices) = SnapshotCache::start(
            Arc::clone(&store),
            &options.prefix,
            empty.clone(),
            Arc::clone(&options.directory),
            options.log,
        )
        .await?;
        let address = listener.address();
        options.directory.set_own(address);
        let (initialization_tracker, jobs) = InitializationTracker::new();
        let mut server = ServerState {
            store,
            decodable_versions: Arc::new(DecodableVersions::new(&options.prefix)),
            prefix: options.prefix,
            snapshot_cache,
            options: options.requests,
            metrics: Metrics::new(options.registry)?,
            log: options.log,
            rng: SystemRandom::new(),
            audit_ids: AuditIds::new([0; 16]),
            readiness: Readiness::default(),
            own_user: own_user(String::new()),
            authenticator,
            impersonator: Impersonator::new(access_reviews::forbidden),
            issuer: options.issuer,
            auditor: options.auditor,
            authorization_metrics: options.authorization_metrics,
            admission_metrics,
            barrier: FreshnessBarrier::new(options.admission.sync),
            started: Instant::now(),
            server_id: String::new(),
            polled: ArcSwap::from_pointee(Polled::nothing(hooks)),
            initialization: options.admission.initializers,
            call_time_max: options.admission.call_time_max,
            hook_addresses: options.admission.addresses,
            get_mode: options.admission.get_mode,
            initialization_tracker,
            clock: options.admission.clock,
            authorization_status: options.authorization_status,
            in_flight: InFlight::new(options.mutating_max, options.read_only_max),
            escalation_checks: Arc::new(ConcurrencyLimit::new(ESCALATION_CHECKS_MAX)),
            watches: Arc::new(ConcurrencyLimit::new(match options.watches_max {
                0 => usize::MAX,
                max => max,
            })),
            shutdown: Shutdown::new(),
            picked_addresses: PickedAddresses::default(),
        };
        server.own_user = own_user(api_object::uuid4(server.random()));
        server.server_id = api_object::uuid4(server.random());
        server.audit_ids = AuditIds::new(server.random());
        let server = Arc::new(server);
        let mut loops = JoinSet::new();
        loops.spawn(Arc::clone(&server.snapshot_cache).run(empty));
        loops.spawn(Arc::clone(&server).confirm());
        loops.spawn(Arc::clone(&server).beat());
        loops.spawn(Arc::clone(&server).count_configured());
        loops.spawn(oversee_all(Arc::clone(&server), jobs));
        loops.spawn(sweep_waiting(Arc::clone(&server)));
        loops.spawn(follow_authorities(Arc::clone(&server), options.authority_files));
        loops.spawn(loops::store_aggregated(Arc::clone(&server), notices));
        loops.spawn(log_store_status(Arc::clone(&server)));
        if !bootstrap(&server).await? {
            loops.spawn(complete_bootstrap(Arc::clone(&server)));
        }
        server.readiness.is_bootstrapped.store(true, Ordering::Release);
        loops.spawn(loops::end_namespaces(Arc::clone(&server)));
        loops.spawn(loops::establish_definitions(Arc::clone(&server)));
        if server.options.service_range.is_some() {
            loops.spawn(loops::repair_addresses(Arc::clone(&server)));
        }
        if server.options.has_garbage_collector {
            loops.spawn(loops::collect_garbage(Arc::clone(&server)));
        }
        let mut tasks = JoinSet::new();
        let service = {
            let server = Arc::clone(&server);
            move |request, connection, responder| {
                request::handle(Arc::clone(&server), request, connection, responder)
            }
        };
        let report = {
            let log = server.log;
            Arc::new(move |trouble: &https_server::ConnectionFault| {
                log.write(crate::log::Level::Debug, "connection", &[("why", trouble)]);
            })
        };
        tasks.spawn(https_server::serve_with_responder(
            listener,
            options.limits,
            server.shutdown.clone(),
            report,
            service,
        ));
        Ok(Self { server, address, tasks, loops })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What puts other authorizers in place of those that the server has. Requests that are under
    /// way go on with those that they began with.
    #[must_use]
    pub fn reseater(&self) -> Reseater {
        let snapshot_cache = Arc::clone(&self.server.snapshot_cache);
        Arc::new(move |slots| snapshot_cache.replace_authorizers(slots))
    }

    /// Stops: refuses what is new, ends watches, waits for what is under way, and closes the store.
    pub async fn stop(mut self, plan: DrainPlan) -> DrainResult {
        self.server.readiness.is_stopping.store(true, Ordering::Release);
        let drained = self.server.shutdown.drain(plan).await;
        while self.tasks.join_next().await.is_some() {}
        self.loops.shutdown().await;
        self.server.store.close().await;
        drained
    }
}
