//! Starts a server for one test.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use authn::{AnonymousAccess, ServiceAccountOptions, SigningKey, TokenFile, TokenIssuer};
use authz_chain::{AuthorizerSlot, SlotAuthorizer};
use component_base::{CaFiles, Log, LogFormat, LogLevel};
use https_server::{
    ClientCertificates, DrainPlan, Limits, Listener, OperatorPkiFiles, PkiFiles, PkiOptions,
    ReloadingCertificate, ServerNames,
};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use server::{
    AdmissionConfigSyncOptions, AdmissionOptions, ApiSettings, RequestLimits, Server,
    ServerOptions, ServiceDirectory, ServiceRouting,
};
use store_embedded::EmbeddedStore;
use tempfile::TempDir;

use crate::client::Client;

const ISSUER: &str = "https://kubernetes.default.svc";
const TOKENS: &str = "admin-token,admin,1,system:masters\nalice-token,alice,2\nbob-token,bob,3\n";

/// Changes the options of a server whose files are in this folder.
pub(crate) type Change = fn(&mut ServerOptions, &Path);

/// A running server on the embedded store, with an administrator and somebody without roles.
pub(crate) struct Cluster {
    server: Option<Server>,
    pub(crate) store: Arc<EmbeddedStore>,
    change: Change,
    pub(crate) pki: PkiFiles,
    pub(crate) address: SocketAddr,
    pub(crate) ca: String,
    folder: TempDir,
}

impl Cluster {
    /// A server on an empty store.
    pub(crate) async fn start() -> Self {
        Self::start_with(|_, _| {}).await
    }

    /// A server on an empty store, with options that differ.
    pub(crate) async fn start_with(change: Change) -> Self {
        Self::start_in(tempfile::tempdir().expect("a folder"), change).await
    }

    /// Starts a server on the data in a folder.
    pub(crate) async fn start_in(folder: TempDir, change: Change) -> Self {
        Self::start_by(folder, change, |_| {}).await
    }

    /// Starts a server in a folder, with changes of the options that a restart does not repeat.
    pub(crate) async fn start_by(
        folder: TempDir,
        change: Change,
        once: impl FnOnce(&mut ServerOptions),
    ) -> Self {
        Self::start_on(folder, store_embedded::Options::default(), change, once).await
    }

    /// Starts a server in a folder, with these options of the store.
    pub(crate) async fn start_on(
        folder: TempDir,
        store: store_embedded::Options,
        change: Change,
        once: impl FnOnce(&mut ServerOptions),
    ) -> Self {
        let (pki, listener) = listen(folder.path());
        let address = listener.bound_address();
        let store = EmbeddedStore::open(&folder.path().join("store"), store);
        let mut options = options(&pki, address);
        change(&mut options, folder.path());
        once(&mut options);
        let store = Arc::new(store.expect("a store"));
        let server = Server::start(store.clone(), listener, options).await;
        let server = Some(server.expect("a server"));
        let ca = read(&pki.serving_ca_file);
        Self { server, store, change, pki, address, ca, folder }
    }

    /// Stops the server and starts it again on the same data.
    pub(crate) async fn restart(self) -> Self {
        let change = self.change;
        let folder = self.stop(Duration::ZERO).await;
        Self::start_in(folder, change).await
    }

    /// Stops the server; it goes on serving for the delay, but no longer calls itself ready.
    pub(crate) async fn stop(mut self, delay: Duration) -> TempDir {
        let plan = DrainPlan {
            unready_delay: delay,
            watch_termination_period: Duration::ZERO,
            request_drain_timeout: Duration::from_secs(5),
        };
        self.server.take().expect("a server").stop(plan).await;
        self.folder
    }

    /// Returns the function that replaces the authorizers.
    pub(crate) fn authorizer_replacer(&self) -> server::AuthorizerReplacer {
        self.server.as_ref().expect("a server").authorizer_replacer()
    }

    /// Where the server keeps its files.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn anonymous(&self) -> Client {
        Client::anonymous(self.address, &self.ca)
    }

    /// A member of `system:masters`, by token.
    pub(crate) fn admin(&self) -> Client {
        self.anonymous().with_token("admin-token")
    }

    /// A user without roles.
    pub(crate) fn alice(&self) -> Client {
        self.anonymous().with_token("alice-token")
    }

    /// Another user without roles.
    pub(crate) fn bob(&self) -> Client {
        self.anonymous().with_token("bob-token")
    }

    /// The administrator of the kubeconfig, by certificate.
    pub(crate) fn certified_admin(&self) -> Client {
        let files = self.pki.admin_certificate.as_ref().expect("an administrator");
        Client::with_certificate(
            self.address,
            &self.ca,
            &read(&files.certificate_path),
            &read(&files.key),
        )
    }
}

/// Certificates in a folder, and a free port that they are shown at.
pub(crate) fn listen(folder: &Path) -> (PkiFiles, Listener) {
    let pki = https_server::prepare_pki_files(&PkiOptions {
        directory: folder.to_owned(),
        server_names: ServerNames::new(None, []),
        operator_pki_files: OperatorPkiFiles::default(),
        current_time: SystemTime::now(),
    });
    let pki = pki.expect("certificates");
    let certificate =
        Arc::new(ReloadingCertificate::load(pki.serving_certificate.clone()).expect("a pair"));
    let tls = Arc::new(
        https_server::tls_server_config(certificate, ClientCertificates::Optional).expect("TLS"),
    );
    let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
    (pki, Listener::bind(address, tls).expect("a free port"))
}

/// The options of a server of tests.
pub(crate) fn options(pki: &PkiFiles, address: SocketAddr) -> ServerOptions {
    let key = SigningKey::from_pem(&read(&pki.service_account_key_file)).expect("a key");
    let client_ca = read(&pki.client_ca_file);
    let authorities = CertificateDer::pem_slice_iter(client_ca.as_bytes());
    let registry = prometheus::Registry::new();
    let authorization_metrics =
        metrics::AuthorizationMetrics::new(&registry, "test", true).expect("metrics");
    ServerOptions {
        api_settings: ApiSettings {
            event_ttl: Duration::from_secs(3600),
            has_garbage_collector: true,
            has_pod_grace_periods: false,
            delete_collection_workers: 1,
            service_ip_range: None,
            refuses_unenforced_features: false,
            request_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(34),
            watch_duration_min: Duration::from_secs(1800),
            bookmark_interval: Duration::from_secs(50),
            reported_kubernetes_version: "1.34".to_owned(),
            advertised_address: address.to_string(),
        },
        store_key_prefix: "/registry".to_owned(),
        authorizer_slots: [SlotAuthorizer::Node, SlotAuthorizer::Rbac]
            .map(AuthorizerSlot::without_observer)
            .into(),
        authorization_status_json: Arc::new(|| serde_json::Value::Null),
        service_directory: Arc::new(ServiceDirectory::new(ServiceRouting::Endpoints)),
        metrics_registry: registry,
        authorization_metrics,
        admission_options: AdmissionOptions {
            admission_config_sync: AdmissionConfigSyncOptions {
                is_only_server: true,
                ..AdmissionConfigSyncOptions::default()
            },
            ..AdmissionOptions::default()
        },
        node_authorizer_policy: authz_node::Snapshot::default(),
        authentication_options: authn::Options {
            client_authorities: authorities.map(|own| own.expect("PEM")).collect(),
            token_file: Some(TokenFile::parse("tokens", TOKENS).expect("tokens")),
            service_account_options: Some(ServiceAccountOptions {
                issuers: vec![ISSUER.to_owned()],
                keys: vec![key.verifying_key().clone()],
                jwks_uri: None,
            }),
            anonymous_access: AnonymousAccess::On,
            ..authn::Options::default()
        },
        token_issuer: TokenIssuer::new(ISSUER, key),
        ca_files: CaFiles::default(),
        auditor: None,
        request_limits: RequestLimits::default(),
        watches_max: 10_000,
        watches_per_user_max: 5_000,
        response_bytes_max: 1 << 30,
        connection_limits: Limits::default(),
        log: Log { line_format: LogFormat::Text, least_severe_level: LogLevel::Warn },
    }
}

pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a file")
}

/// Records requests by an audit policy, in the file `audit.log` of the folder.
pub(crate) fn write_audit_log(options: &mut ServerOptions, folder: &Path, policy: &str) {
    let (policy, _) = ::audit::Policy::parse(policy.as_bytes()).expect("a policy");
    let path = folder.join("audit.log");
    let log = ::audit::AuditLog::open_log_file(&path, ::audit::LogRotationOptions::default())
        .expect("a log");
    options.auditor = Some(::audit::Auditor::with_log_backend(policy, log).expect("a thread"));
}
