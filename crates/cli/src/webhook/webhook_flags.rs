//! The flags of the webhook. Names are those of kube-apiserver where it has one.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use authz_chain::AuthorizerType;
use authz_reload::{AuthorizationModes, AuthorizationPlan, ConfigFilePlan};

use crate::file_arguments::{FilenameFlags, InputPath};
use crate::offline::ClusterConnectionFlags;
use crate::server_setup::{AuditFlags, LogFlags, parse_duration, parse_positive_duration};

/// Answer the SubjectAccessReviews of kube-apiserver: the authorizer chain as an authorization webhook
///
/// The webhook decides by --authorization-config, or by RBAC alone without it. Roles, bindings and
/// namespaces come from a cluster, which it watches, from files, which it reads again when they change, or
/// from both: then the files count as if they had been applied to the cluster.
///
/// Every caller needs a client certificate of --client-ca-file. While the webhook cannot prove that its
/// copy of the cluster is current, it answers 503, and the failurePolicy of kube-apiserver decides.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  portcullis webhook --bind-address 0.0.0.0 --tls-cert-file tls.crt --tls-private-key-file tls.key \\
    --client-ca-file apiserver-ca.crt
  portcullis webhook --kubeconfig admin.conf --authorization-config authorization.yaml \\
    --tls-cert-file tls.crt --tls-private-key-file tls.key --client-ca-file apiserver-ca.crt
  portcullis webhook -f policy/ -R --tls-cert-file tls.crt --tls-private-key-file tls.key \\
    --client-ca-file apiserver-ca.crt --allowed-client-names kube-apiserver

The first example runs in a pod of the cluster and watches this cluster. docs/webhook.md describes how to
configure kube-apiserver, and what happens in an outage.

SIGTERM or SIGINT stops the webhook gracefully: /readyz fails, and reviews in progress get answers. A
second signal stops it at once.")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) listen_flags: ListenFlags,
    #[command(flatten)]
    pub(crate) policy_flags: PolicyFlags,
    #[command(flatten)]
    pub(crate) cluster_flags: ClusterConnectionFlags,
    #[command(flatten)]
    pub(crate) review_flags: ReviewFlags,
    #[command(flatten)]
    pub(crate) audit_flags: AuditFlags,
}

/// The addresses of the webhook, its certificate, and its callers.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Listening")]
pub(crate) struct ListenFlags {
    /// IP address to listen on
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub(crate) bind_address: IpAddr,

    /// Port for reviews; 0 picks a free port
    #[arg(long, value_name = "PORT", default_value_t = 8443)]
    pub(crate) secure_port: u16,

    /// Port for /livez, /readyz and /healthz alone, over TLS and without a client certificate, for the
    /// probes of kubelet; without this flag there is no such port
    #[arg(long, value_name = "PORT")]
    pub(crate) health_port: Option<u16>,

    /// Path that kube-apiserver posts reviews to
    #[arg(long, value_name = "PATH", default_value = "/authorize", value_parser = parse_path)]
    pub(crate) path: String,

    /// Serving certificate (PEM); it is read again when the file changes
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_cert_file: PathBuf,

    /// Private key of --tls-cert-file (PEM)
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_private_key_file: PathBuf,

    /// CA bundle (PEM) that the client certificates of callers must chain to; it is read again when the
    /// file changes
    #[arg(long, value_name = "FILE")]
    pub(crate) client_ca_file: PathBuf,

    /// Common names that client certificates may have; any name of --client-ca-file if not given
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) allowed_client_names: Vec<String>,

    /// Maximum open connections, at most an eighth of them for one caller
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) max_connections: usize,
}

/// The authorizers and the files that they decide from.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Policy")]
pub(crate) struct PolicyFlags {
    /// AuthorizationConfiguration file with the authorizers in order; RBAC alone if not given. It is
    /// read again when it changes. The type Node is not allowed
    #[arg(long, value_name = "FILE")]
    pub(crate) authorization_config: Option<PathBuf>,

    /// ABAC policy file, one JSON object per line; needed for type ABAC
    #[arg(long, value_name = "FILE", requires = "authorization_config")]
    pub(crate) authorization_policy_file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) filename_flags: FilenameFlags,

    /// Files and directories of manifests with roles and bindings
    ///
    /// The same as -f -R, for several paths at once.
    #[arg(long = "objects", value_name = "PATH", num_args = 1..)]
    pub(crate) object_manifest_paths: Vec<PathBuf>,
}

/// Freshness, limits, shutdown and the log.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Reviews")]
pub(crate) struct ReviewFlags {
    /// Time without a proof that the copy of the cluster is current after which reviews get 503; at least
    /// 3s. The webhook asks for a proof after each third of it
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_positive_duration)]
    pub(crate) max_policy_age: Duration,

    /// Maximum number of reviews in progress, at most three quarters of them for one caller; further
    /// ones get 429
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub(crate) max_reviews_inflight: usize,

    /// Number of recent decisions that can be explained; 0 keeps none
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub(crate) recent_decisions: usize,

    /// Time during which the webhook continues to answer after a stop signal while /readyz fails
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = parse_duration)]
    pub(crate) shutdown_delay_duration: Duration,

    #[command(flatten)]
    pub(crate) log_flags: LogFlags,
}

impl PolicyFlags {
    /// Converts the flags to a plan: a configuration file, or RBAC alone.
    pub(crate) fn to_authorization_plan(&self) -> AuthorizationPlan {
        match &self.authorization_config {
            Some(path) => AuthorizationPlan::File(ConfigFilePlan {
                path: path.clone(),
                abac_policy_file: self.authorization_policy_file.clone(),
            }),
            None => AuthorizationPlan::Modes(AuthorizationModes {
                modes: vec![AuthorizerType::Rbac],
                are_modes_explicit: false,
                abac_policy_file: None,
                webhook_flags: None,
            }),
        }
    }

    /// Returns all files and directories of objects.
    pub(crate) fn object_input_paths(&self) -> Vec<InputPath<'_>> {
        self.filename_flags.input_paths(&self.object_manifest_paths).collect()
    }
}

/// The value of --path is not a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("want a path that begins with `/` and has no query")]
struct PathError;

fn parse_path(text: &str) -> Result<String, PathError> {
    match text.starts_with('/') && !text.contains(['?', '#']) {
        true => Ok(text.to_owned()),
        false => Err(PathError),
    }
}
