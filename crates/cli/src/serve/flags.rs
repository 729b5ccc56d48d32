//! The flags of the server. Names are those of kube-apiserver where it has one.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use authz_webhook::WebhookLimits;
use https_client::AddressPolicy;
use server::ServiceIpRange;

use super::admission::AdmissionFlags;
use crate::authorization::AuthorizationFlags;

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
    pub(crate) listen: ListenFlags,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
    #[command(flatten)]
    pub(crate) authentication: AuthenticationFlags,
    #[command(flatten, next_help_heading = "Authorization")]
    pub(crate) authorization: AuthorizationFlags,
    #[command(flatten)]
    pub(crate) chain: ChainFlags,
    #[command(flatten)]
    pub(crate) admission: AdmissionFlags,
    #[command(flatten)]
    pub(crate) requests: RequestFlags,
    #[command(flatten)]
    pub(crate) audit: AuditFlags,
}

/// Where it listens and how it is known.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Listening")]
pub(crate) struct ListenFlags {
    /// IP address to listen on
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub(crate) bind_address: IpAddr,

    /// Port to listen on; 0 picks a free port
    #[arg(long, value_name = "PORT", default_value_t = 6443)]
    pub(crate) secure_port: u16,

    /// IP address that the server announces to clients; defaults to --bind-address
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
    #[arg(long, value_name = "VERSION", default_value = "1.34", value_parser = version)]
    pub(crate) report_version: String,
}

/// Where objects are kept.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Store")]
pub(crate) struct StoreFlags {
    /// Directory for certificates, keys and the embedded store; created if missing
    #[arg(long, value_name = "DIR", default_value = "./portcullis-data")]
    pub(crate) data_dir: PathBuf,

    /// Storage backend; defaults to etcd if --etcd-servers is given, otherwise to embedded
    #[arg(long, value_enum)]
    pub(crate) store: Option<StoreKind>,

    /// When the embedded store syncs writes to disk: `always`, or `interval:MILLISECONDS`, which
    /// may lose the last writes if the machine crashes
    #[arg(long, value_name = "MODE", default_value = "always")]
    pub(crate) store_sync: store_embedded::SyncMode,

    /// Maximum size of all objects in the embedded store, in bytes or with Ki, Mi or Gi; at least
    /// 16Mi. When it is reached, creates and growing updates get 507 until objects are deleted
    #[arg(long, value_name = "BYTES", default_value = "2Gi", value_parser = budget)]
    pub(crate) store_quota_bytes: u64,

    /// Maximum size of the change history that the embedded store keeps for watches; at least 16Mi.
    /// History is also dropped after 5 minutes or 1,000,000 revisions. A namespace that holds more
    /// than a quarter of a nearly full history gets 429
    #[arg(long, value_name = "BYTES", default_value = "1Gi", value_parser = budget)]
    pub(crate) store_history_bytes: u64,

    /// Free disk space, beyond the size of one snapshot, below which creates and growing updates
    /// get 507; 0 disables the check
    #[arg(long, value_name = "BYTES", default_value = "256Mi", value_parser = bytes)]
    pub(crate) store_disk_free_bytes: u64,

    /// Client URLs of the etcd members: http://HOST:PORT or https://HOST:PORT
    #[arg(long, value_name = "URL,...", value_delimiter = ',')]
    pub(crate) etcd_servers: Vec<String>,

    /// Prefix of all keys, in both storage backends
    #[arg(long, value_name = "PREFIX", default_value = "/registry", value_parser = prefix)]
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
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    pub(crate) etcd_compaction_interval: Duration,
}

/// Which store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum StoreKind {
    /// Files in the data directory
    EmbeddedStore,
    /// An etcd cluster
    Etcd,
}

/// Whom it believes.
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

    /// Headers from which a front proxy passes the user name
    #[arg(long, value_name = "HEADER,...", value_delimiter = ',', default_value = "X-Remote-User")]
    pub(crate) requestheader_username_headers: Vec<String>,

    /// Headers from which a front proxy passes the user's uid
    #[arg(long, value_name = "HEADER,...", value_delimiter = ',', default_value = "X-Remote-Uid")]
    pub(crate) requestheader_uid_headers: Vec<String>,

    /// Headers from which a front proxy passes the user's groups
    #[arg(
        long,
        value_name = "HEADER,...",
        value_delimiter = ',',
        default_value = "X-Remote-Group"
    )]
    pub(crate) requestheader_group_headers: Vec<String>,

    /// Prefixes of the headers from which a front proxy passes the user's extra attributes
    #[arg(
        long,
        value_name = "PREFIX,...",
        value_delimiter = ',',
        default_value = "X-Remote-Extra-"
    )]
    pub(crate) requestheader_extra_headers_prefix: Vec<String>,
}

/// How the authorizers are followed and webhooks are called. None of these flags is kube-apiserver's
/// but the last, and they go with a configuration file as well as with modes.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Authorization")]
pub(crate) struct ChainFlags {
    /// Require that new or changed webhooks are reachable before a changed --authorization-config
    /// takes effect
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    pub(crate) authorization_config_reload_health_check: bool,

    /// Maximum concurrent calls to one authorization webhook, at most half of them for one user;
    /// further requests get 429 whatever the failure policy. 0 means no limit
    #[arg(long, value_name = "N", default_value_t = WebhookLimits::default().in_flight_max)]
    pub(crate) authorization_webhook_max_in_flight: usize,

    /// Timeout for connecting to an authorization or admission webhook, including name resolution,
    /// proxy, TCP and TLS
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
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

    /// Maximum size of the decision cache of one authorization webhook, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = WebhookLimits::default().cache_bytes_max)]
    pub(crate) authorization_webhook_cache_max_bytes: usize,

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

impl ChainFlags {
    /// The addresses that webhooks may have whose addresses are written by users of the server, which
    /// listens at `bind_address`.
    pub(crate) fn webhook_addresses(&self, bind_address: IpAddr) -> AddressPolicy {
        let is_private = bind_address.to_canonical().is_loopback();
        AddressPolicy { allows_loopback: self.webhook_allow_loopback || is_private }
    }
}

/// What a request may take, and what the server does by itself.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Requests")]
pub(crate) struct RequestFlags {
    /// Timeout of a request other than a watch
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    pub(crate) request_timeout: Duration,

    /// Minimum duration of a watch, in seconds. The server ends a watch after a random time between
    /// this value and twice this value
    #[arg(long, value_name = "SECONDS", default_value_t = 1800)]
    pub(crate) min_request_timeout: u64,

    /// Maximum concurrent read-only requests; 0 means no limit
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub(crate) max_requests_inflight: usize,

    /// Maximum concurrent mutating requests; 0 means no limit
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) max_mutating_requests_inflight: usize,

    /// Maximum concurrent watches, at most half of them for one user; further watches get 429.
    /// Watches of system:masters do not count. 0 means no limit
    #[arg(long, value_name = "N", default_value_t = 90_000)]
    pub(crate) max_watches: usize,

    /// Time after which Events are deleted
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = duration)]
    pub(crate) event_ttl: Duration,

    /// Delete the dependents of deleted objects
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

    /// Give pods that are assigned to a node a grace period when they are deleted; a kubelet must
    /// then delete them finally
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
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    pub(crate) refuse_unenforced: bool,

    /// Time to keep serving after /readyz fails, when the server stops
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    pub(crate) shutdown_delay_duration: Duration,

    /// Time over which the server ends open watches when it stops; 0 ends 200 a second
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    pub(crate) shutdown_watch_termination_grace_period: Duration,

    /// Format of the log
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) logging_format: LoggingFormat,

    /// Log verbosity: 0 warnings, 1 also start and stop, 2 also requests, 4 everything
    #[arg(short = 'v', long = "v", value_name = "LEVEL", default_value_t = 2)]
    pub(crate) verbosity: u8,
}

/// Form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LoggingFormat {
    /// Human-readable lines
    Text,
    /// One JSON object per line
    Json,
}

/// What is written down about requests.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Audit")]
pub(crate) struct AuditFlags {
    /// Audit policy (audit.k8s.io/v1); without it the server records nothing
    #[arg(long, value_name = "FILE")]
    pub(crate) audit_policy_file: Option<PathBuf>,

    /// File for audit events, one JSON object per line; `-` is standard output
    #[arg(long, value_name = "FILE", requires = "audit_policy_file")]
    pub(crate) audit_log_path: Option<PathBuf>,

    /// Size in megabytes at which the audit log is rotated
    #[arg(long, value_name = "MB", default_value_t = 100)]
    pub(crate) audit_log_maxsize: u64,

    /// Days after which rotated audit logs are deleted; 0 keeps them
    #[arg(long, value_name = "DAYS", default_value_t = 0)]
    pub(crate) audit_log_maxage: u64,

    /// Number of rotated audit logs to keep; 0 keeps all
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) audit_log_maxbackup: usize,
}

/// A duration as Go writes it: `1m30s`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let nanos = go_compat::parse_duration(text).map_err(|error| error.to_string())?;
    let nanos = u64::try_from(nanos).map_err(|_| "a duration can not be negative".to_owned())?;
    Ok(Duration::from_nanos(nanos))
}

fn version(text: &str) -> Result<String, String> {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    match text.split_once('.') {
        Some((major, minor)) if is_number(major) && is_number(minor) => Ok(text.to_owned()),
        _ => Err("want MAJOR.MINOR, such as 1.34".to_owned()),
    }
}

/// A number of bytes, perhaps in a binary unit.
fn bytes(text: &str) -> Result<u64, String> {
    let units = [("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30), ("", 1)];
    let found = units.iter().find_map(|(unit, size)| Some((text.strip_suffix(unit)?, size)));
    let number = found.and_then(|(digits, size)| digits.parse::<u64>().ok()?.checked_mul(*size));
    number.ok_or_else(|| "want a number of bytes, such as 1073741824, 1024Mi or 1Gi".to_owned())
}

/// Less than this could not hold what a server needs for itself.
const BUDGET_BYTES_MIN: u64 = 16 << 20;

fn budget(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        own if own < BUDGET_BYTES_MIN => Err("want at least 16Mi".to_owned()),
        own => Ok(own),
    }
}

fn prefix(text: &str) -> Result<String, String> {
    let text = text.trim_end_matches('/');
    match text.starts_with('/') {
        true => Ok(text.to_owned()),
        false => Err("a prefix begins with `/`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked() {
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        for (text, want) in [("0", 0), ("7", 7), ("2Ki", 2048), ("3Mi", 3 << 20), ("1Gi", 1 << 30)]
        {
            assert_eq!(bytes(text), Ok(want), "{text}");
        }
        for text in ["", "Mi", "-1", "1.5Gi", "1G", "17179869184Gi"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        assert!(budget("16Mi").is_ok() && budget("16777215").is_err());
        assert!(duration("-1s").is_err() && duration("soon").is_err());
        assert!(version("1.34").is_ok() && version("v1.34").is_err() && version("1").is_err());
        assert_eq!(prefix("/x/").as_deref(), Ok("/x"));
        assert!(prefix("x").is_err());
    }

    /// A default that is written as a text.
    #[test]
    fn the_time_to_connect_is_that_of_the_client() {
        assert_eq!(duration("2s"), Ok(https_client::Limits::default().connect_timeout));
    }
}
