//! The flags of the server. Names are those of kube-apiserver where it has one.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use authz_webhook::WebhookLimits;
use https_client::AddressPolicy;
use server::ServiceIpRange;

use super::admission_flags::AdmissionFlags;
use super::admission_plugin_flags::AdmissionPluginFlags;
use crate::authorization_settings::AuthorizationFlags;
use crate::server_setup::{AuditFlags, LogFlags};
use crate::server_setup::{
    parse_byte_size, parse_duration, parse_key_prefix, parse_kubernetes_version,
    parse_store_size_limit,
};

/// Run the API server for `kubectl` and other Kubernetes clients
///
/// Without flags the server keeps its data in ./portcullis-data, creates certificates and an
/// administrator's kubeconfig there, and listens on 127.0.0.1:6443.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  portcullis serve
  portcullis serve --data-dir /var/lib/portcullis --bind-address 0.0.0.0
  portcullis serve --store etcd --etcd-servers http://127.0.0.1:2379
  portcullis serve --authorization-config authorization.yaml --token-auth-file tokens.csv
  portcullis serve --authorization-mode Webhook,RBAC --authorization-webhook-config-file guard.yaml

SIGTERM or SIGINT stops the server gracefully: it ends watches and answers requests in progress. A
second signal stops it at once; acknowledged writes are never lost.")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) listen_flags: ListenFlags,
    #[command(flatten)]
    pub(crate) store_flags: StoreFlags,
    #[command(flatten)]
    pub(crate) authentication_flags: AuthenticationFlags,
    #[command(flatten, next_help_heading = "Authorization")]
    pub(crate) authorization_flags: AuthorizationFlags,
    #[command(flatten)]
    pub(crate) webhook_connection_flags: WebhookConnectionFlags,
    #[command(flatten)]
    pub(crate) admission_plugin_flags: AdmissionPluginFlags,
    #[command(flatten)]
    pub(crate) admission_flags: AdmissionFlags,
    #[command(flatten)]
    pub(crate) request_flags: RequestFlags,
    #[command(flatten)]
    pub(crate) audit_flags: AuditFlags,
}

/// The address of the server and its serving certificate.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Listening")]
pub(crate) struct ListenFlags {
    /// IP address to listen on
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub(crate) bind_address: IpAddr,

    /// Port to listen on; 0 picks a free port
    #[arg(long, value_name = "PORT", default_value_t = 6443)]
    pub(crate) secure_port: u16,

    /// IP address that the server announces to clients; defaults to --bind-address. If that is
    /// 0.0.0.0 or ::, the default is the address that this host uses for outgoing connections, and
    /// a
    /// generated certificate is valid for all addresses of the host
    #[arg(long, value_name = "IP")]
    pub(crate) advertise_address: Option<IpAddr>,

    /// Serving certificate (PEM); generated if not given
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    pub(crate) tls_cert_file: Option<PathBuf>,

    /// Private key of --tls-cert-file (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub(crate) tls_private_key_file: Option<PathBuf>,

    /// CIDR from which Services get their cluster IPs, such as 10.96.0.0/16. Without it Services
    /// get no cluster IP
    #[arg(long, value_name = "CIDR")]
    pub(crate) service_cluster_ip_range: Option<ServiceIpRange>,

    /// Kubernetes version that /version reports: MAJOR.MINOR
    #[arg(long, value_name = "VERSION", default_value = "1.34", value_parser = parse_kubernetes_version)]
    pub(crate) report_version: String,
}

/// The flags of the storage backend.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Store")]
pub(crate) struct StoreFlags {
    /// Directory for certificates, keys and the embedded store; created if missing
    #[arg(long, value_name = "DIR", default_value = "./portcullis-data")]
    pub(crate) data_dir: PathBuf,

    /// Storage backend; defaults to etcd if --etcd-servers is given, otherwise to embedded
    #[arg(long = "store", value_enum)]
    pub(crate) store_kind: Option<StoreKind>,

    /// When the embedded store syncs writes to disk: `always`, or `interval:MILLISECONDS`, which
    /// may lose the last writes if the machine crashes
    #[arg(long, value_name = "MODE", default_value = "always")]
    pub(crate) store_sync: store_embedded::SyncMode,

    /// Maximum size of all objects in the embedded store, in bytes or with Ki, Mi or Gi; at least
    /// 16Mi. When it is reached, creates and growing updates get 507 until objects are deleted
    #[arg(long, value_name = "BYTES", default_value = "2Gi", value_parser = parse_store_size_limit)]
    pub(crate) store_quota_bytes: u64,

    /// Maximum size of the change history that the embedded store keeps for watches, in bytes or
    /// with Ki, Mi or Gi; at least 16Mi.
    /// History is also dropped after 5 minutes or 1,000,000 revisions. A namespace that holds more
    /// than a quarter of a nearly full history gets 429
    #[arg(long, value_name = "BYTES", default_value = "1Gi", value_parser = parse_store_size_limit)]
    pub(crate) store_history_bytes: u64,

    /// Free disk space, beyond the size of one snapshot, below which creates and growing updates
    /// get 507, in bytes or with Ki, Mi or Gi; 0 disables the check
    #[arg(long, value_name = "BYTES", default_value = "256Mi", value_parser = parse_byte_size)]
    pub(crate) store_disk_free_bytes: u64,

    /// Client URLs of the etcd members: http://HOST:PORT or https://HOST:PORT
    #[arg(long, value_name = "URL,...", value_delimiter = ',')]
    pub(crate) etcd_servers: Vec<String>,

    /// Prefix of all keys, in both storage backends
    #[arg(long, value_name = "PREFIX", default_value = "/registry", value_parser = parse_key_prefix)]
    pub(crate) etcd_prefix: String,

    /// CA bundle (PEM) that verifies etcd's serving certificates
    #[arg(long, value_name = "FILE")]
    pub(crate) etcd_cafile: Option<PathBuf>,

    /// Client certificate for etcd (PEM)
    #[arg(long, value_name = "FILE", requires = "etcd_keyfile")]
    pub(crate) etcd_certfile: Option<PathBuf>,

    /// Private key of --etcd-certfile (PEM)
    #[arg(long, value_name = "FILE", requires = "etcd_certfile")]
    pub(crate) etcd_keyfile: Option<PathBuf>,

    /// Interval at which the server compacts old revisions in etcd; 0 disables compaction by this
    /// server
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = parse_duration)]
    pub(crate) etcd_compaction_interval: Duration,
}

/// The kinds of storage backends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum StoreKind {
    /// Files in the data directory
    Embedded,
    /// An external etcd cluster
    Etcd,
}

/// The sources of user identities.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Authentication")]
pub(crate) struct AuthenticationFlags {
    /// CA bundle (PEM) that verifies client certificates; generated if not given
    #[arg(long, value_name = "FILE")]
    pub(crate) client_ca_file: Option<PathBuf>,

    /// Static tokens: CSV lines of token, user, uid and optionally "group,..."
    #[arg(long, value_name = "FILE")]
    pub(crate) token_auth_file: Option<PathBuf>,

    /// Treat requests without credentials as user system:anonymous; if false they get 401
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    pub(crate) anonymous_auth: bool,

    /// Issuer of service account tokens. May be repeated: the first signs new tokens, all are
    /// accepted
    #[arg(long, value_name = "URL", default_value = "https://kubernetes.default.svc")]
    pub(crate) service_account_issuer: Vec<String>,

    /// Private key that signs service account tokens (PEM); generated if not given
    #[arg(long, value_name = "FILE")]
    pub(crate) service_account_signing_key_file: Option<PathBuf>,

    /// Keys that verify service account tokens (PEM); may be repeated. Defaults to the signing key
    #[arg(long, value_name = "FILE")]
    pub(crate) service_account_key_file: Vec<PathBuf>,

    /// URL of the public keys that verify service account tokens, as the issuer's discovery document gives
    /// it; defaults to this server
    #[arg(long, value_name = "URL")]
    pub(crate) service_account_jwks_uri: Option<String>,

    /// Audiences that the server accepts in tokens; defaults to the issuers
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) api_audiences: Vec<String>,

    /// CA bundle (PEM) that front-proxy client certificates must chain to
    #[arg(long, value_name = "FILE")]
    pub(crate) requestheader_client_ca_file: Option<PathBuf>,

    /// Common names that front-proxy client certificates may have; any if not given
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        requires = "requestheader_client_ca_file"
    )]
    pub(crate) requestheader_allowed_names: Vec<String>,

    /// Headers in which a front proxy passes the user name
    #[arg(long, value_name = "HEADER,...", value_delimiter = ',', default_value = "X-Remote-User")]
    pub(crate) requestheader_username_headers: Vec<String>,

    /// Headers in which a front proxy passes the user's uid
    #[arg(long, value_name = "HEADER,...", value_delimiter = ',', default_value = "X-Remote-Uid")]
    pub(crate) requestheader_uid_headers: Vec<String>,

    /// Headers in which a front proxy passes the user's groups
    #[arg(
        long,
        value_name = "HEADER,...",
        value_delimiter = ',',
        default_value = "X-Remote-Group"
    )]
    pub(crate) requestheader_group_headers: Vec<String>,

    /// Prefixes of the headers in which a front proxy passes the user's extra attributes
    #[arg(
        long,
        value_name = "PREFIX,...",
        value_delimiter = ',',
        default_value = "X-Remote-Extra-"
    )]
    pub(crate) requestheader_extra_headers_prefix: Vec<String>,
}

/// How the server reloads the authorizers and calls webhooks. Of these flags kube-apiserver has only the
/// last. They apply with `--authorization-config` and with `--authorization-mode`.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Authorization")]
pub(crate) struct WebhookConnectionFlags {
    /// Send one review to each new or changed webhook before a changed --authorization-config takes effect:
    /// user system:portcullis-probe, path /healthz, verb get. Until all of them answer with a review, even
    /// one that denies, the previous configuration stays in effect
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    pub(crate) authorization_config_reload_health_check: bool,

    /// Maximum concurrent calls to one authorization webhook, at most half of them for one user;
    /// further requests get 429 whatever the failure policy. 0 means no limit
    #[arg(long, value_name = "N", default_value_t = WebhookLimits::default().in_flight_calls_max)]
    pub(crate) authorization_webhook_max_in_flight: usize,

    /// Timeout for connecting to an authorization or admission webhook, including name resolution,
    /// proxy, TCP and TLS
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = parse_duration)]
    pub(crate) webhook_connect_timeout: Duration,

    /// Allow admission webhooks, and authorization webhooks that are Services, at loopback
    /// addresses although the server listens on other addresses
    ///
    /// Users who may write webhook configurations or EndpointSlices can then reach every service on
    /// the loopback addresses of this host, such as etcd. A server that listens on a loopback
    /// address always allows them. Link-local addresses and metadata services are always refused.
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    webhook_allow_loopback: bool,

    /// Maximum size of the decision cache of one authorization webhook, in bytes or with Ki, Mi or
    /// Gi
    #[arg(long, value_name = "BYTES", default_value = "64Mi", value_parser = parse_byte_size)]
    pub(crate) authorization_webhook_cache_max_bytes: u64,

    /// Call a webhook that is a Service at one of its ready endpoints; if false, at its cluster IP,
    /// which then needs a service proxy
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    pub(crate) enable_aggregator_routing: bool,
}

impl WebhookConnectionFlags {
    /// Returns the addresses that the server may connect to for a webhook whose address an API object sets.
    /// A server that listens on a loopback address may connect to loopback addresses.
    pub(crate) fn webhook_address_policy(&self, bind_address: IpAddr) -> AddressPolicy {
        let is_loopback_only = bind_address.to_canonical().is_loopback();
        AddressPolicy { allows_loopback: self.webhook_allow_loopback || is_loopback_only }
    }
}

impl RequestFlags {
    /// The seats of all priority levels together.
    ///
    /// # Errors
    /// Both flags are zero.
    pub(crate) fn total_seats(&self) -> anyhow::Result<u32> {
        let seats = self.max_requests_inflight.saturating_add(self.max_mutating_requests_inflight);
        let flags = "--max-requests-inflight and --max-mutating-requests-inflight";
        anyhow::ensure!(seats > 0, "the sum of {flags} must be positive");
        Ok(seats)
    }
}

/// Limits of requests, background work, shutdown and the log.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Requests")]
pub(crate) struct RequestFlags {
    /// Timeout of a request other than a watch
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = parse_duration)]
    pub(crate) request_timeout: Duration,

    /// Minimum duration of a watch, in seconds. The server ends a watch after a random time between
    /// this value and twice this value
    #[arg(long, value_name = "SECONDS", default_value_t = 1800)]
    pub(crate) min_request_timeout: u64,

    /// Requests that run at the same time. The sum of this and --max-mutating-requests-inflight is
    /// divided between the priority levels; requests of exempt levels do not count
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub(crate) max_requests_inflight: u32,

    /// Number that is added to --max-requests-inflight; the sum must be positive
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) max_mutating_requests_inflight: u32,

    /// Maximum concurrent watches; further watches get 429. Watches of system:masters do not count.
    /// 0 means no limit
    #[arg(long, value_name = "N", default_value_t = 90_000)]
    pub(crate) max_watches: usize,

    /// Maximum open connections, at most an eighth of them for one user. For a further connection
    /// the server closes one on which nobody has authenticated, or else an idle one of the user who
    /// has the most connections. It never closes a connection with a request in progress. The limit
    /// of open files may allow fewer connections
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) max_connections: usize,

    /// Maximum concurrent watches of one user; the service accounts of a namespace count as one
    /// user. 0 means no limit
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) max_watches_per_user: usize,

    /// Maximum bytes of responses that wait for their clients, at most a quarter of them for one
    /// user; further lists and reads of large objects get 429. Responses to system:masters do not
    /// count. 0 means no limit
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 30)]
    pub(crate) max_response_bytes_inflight: usize,

    /// Time after which Events are deleted
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = parse_duration)]
    pub(crate) event_ttl: Duration,

    /// Delete objects whose owners are deleted
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    pub(crate) enable_garbage_collector: bool,

    /// Number of objects that a deletecollection request deletes concurrently
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) delete_collection_workers: usize,

    /// Give pods on a node a grace period when they are deleted; a kubelet must then remove them. If
    /// false the server removes them at once
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    pub(crate) pod_graceful_deletion: bool,

    /// Refuse (422) to create or change objects that this server stores but does not enforce:
    /// admission policies and their bindings, resource quotas, limit ranges, and Pod Security
    /// labels of namespaces. If false the server answers with a warning
    #[arg(
        long = "refuse-unenforced",
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    pub(crate) refuse_unenforced_objects: bool,

    /// Time during which the server continues to serve after a stop signal while /readyz fails
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = parse_duration)]
    pub(crate) shutdown_delay_duration: Duration,

    /// Time over which a stopping server ends open watches; with 0 it ends 200 watches per second
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = parse_duration)]
    pub(crate) shutdown_watch_termination_grace_period: Duration,

    #[command(flatten)]
    pub(crate) log_flags: LogFlags,
}
