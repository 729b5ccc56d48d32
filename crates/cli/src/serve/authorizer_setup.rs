//! The authorizers of the server: built at start, replaced when their files change.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use authz_chain::AuthorizerType;
use authz_reload::{
    AuthorizationPlan, AuthorizerBuilder, Generation, PublishError, PublishGenerationFn,
    ReloadNotice, ReloadOptions, Reloader,
};
use authz_webhook::WebhookLimits;
use https_client::{Limits, ServiceResolver};
use metrics::AuthorizationMetrics;
use prometheus::Registry;
use serde_json::Value;
use server::{AuthorizerReplacer, Log, ServiceDirectory, ServiceRouting};

use super::authorization_log_observer::AuthorizationLogObserver;
use super::serve_flags::{Args, WebhookConnectionFlags};
use crate::offline::LoadFailure;
use crate::program::plugin_authorizers;

/// The authorizers that the server starts with, and what it needs to reload them.
pub(super) struct AuthorizerSetup {
    pub(super) generation: Arc<Generation>,
    pub(super) service_endpoint_directory: Arc<ServiceDirectory>,
    pub(super) metrics_registry: Registry,
    authorization_plan: AuthorizationPlan,
    authorizer_builder: AuthorizerBuilder,
    pub(super) authorization_metrics: Arc<AuthorizationMetrics>,
    reload_options: ReloadOptions,
    /// Set when reloading starts. The status endpoint of the server reads it, and the server exists
    /// before the reloader does.
    reloader: Arc<OnceLock<Reloader>>,
}

impl AuthorizerSetup {
    /// Reads the files that the flags name. It calls no webhook, so that an unreachable webhook does
    /// not prevent the start.
    ///
    /// # Errors
    /// The flags contradict each other, or a file is invalid.
    pub(super) fn load_from_flags(args: &Args, log: Log) -> Result<Self, LoadFailure> {
        let plan = args.authorization_flags.to_authorization_plan().map_err(LoadFailure::Usage)?;
        let is_file_mode = matches!(plan, AuthorizationPlan::File(_));
        let registry = Registry::new();
        let identity = server_identity_in_metrics(&args.store_flags.data_dir);
        let metrics = AuthorizationMetrics::new(&registry, &identity, is_file_mode)
            .map_err(LoadFailure::from_message)?;
        let routing = match args.webhook_connection_flags.enable_aggregator_routing {
            true => ServiceRouting::Endpoints,
            false => ServiceRouting::ClusterIp,
        };
        let directory = Arc::new(ServiceDirectory::new(routing));
        let builder = AuthorizerBuilder {
            webhook_limits: authorization_webhook_limits(&args.webhook_connection_flags),
            connection_limits: Limits {
                connect_timeout: args.webhook_connection_flags.webhook_connect_timeout,
                address_policy: args
                    .webhook_connection_flags
                    .webhook_address_policy(args.listen_flags.bind_address),
                ..Limits::default()
            },
            service_resolver: Some(Arc::clone(&directory) as Arc<dyn ServiceResolver>),
            observer_factory: Arc::new(AuthorizationLogObserver {
                authorization_metrics: Arc::clone(&metrics),
                log,
            }),
            plugin_authorizers: plugin_authorizers().clone(),
            abac_options: args.authorization_flags.abac_load_options(),
            base_directory: std::env::current_dir().map_err(LoadFailure::from_message)?,
        };
        let generation = Arc::new(builder.build_first_generation(&plan)?);
        let reload_options = ReloadOptions {
            checks_webhook_health: args
                .webhook_connection_flags
                .authorization_config_reload_health_check,
            ..ReloadOptions::default()
        };
        let reloader = Arc::default();
        Ok(Self {
            generation,
            service_endpoint_directory: directory,
            metrics_registry: registry,
            authorization_plan: plan,
            authorizer_builder: builder,
            authorization_metrics: metrics,
            reload_options,
            reloader,
        })
    }

    /// Reports whether the flags disable anonymous authentication. A configuration file never does.
    pub(super) fn disables_anonymous_auth(&self) -> bool {
        match &self.authorization_plan {
            AuthorizationPlan::File(_) => false,
            AuthorizationPlan::Modes(modes) => modes.disables_anonymous_auth(),
        }
    }

    /// Returns the names of the authorizers in order, for the start message.
    pub(super) fn describe_authorizers(&self) -> String {
        let name = |(kind, name): (AuthorizerType, &str)| match kind {
            AuthorizerType::Webhook | AuthorizerType::Plugin(_) => {
                format!("{}({name})", kind.name())
            }
            AuthorizerType::Abac
            | AuthorizerType::AlwaysAllow
            | AuthorizerType::AlwaysDeny
            | AuthorizerType::Node
            | AuthorizerType::Rbac => kind.name().to_owned(),
        };
        let names: Vec<String> =
            self.generation.authorizer_types_and_names().into_iter().map(name).collect();
        names.join(",")
    }

    /// Returns a function that reads the reload status. It returns null before reloading starts.
    pub(super) fn reload_status_reader(&self) -> Arc<dyn Fn() -> Value + Send + Sync> {
        let reloader = Arc::clone(&self.reloader);
        Arc::new(move || {
            let status = reloader.get().map(Reloader::status);
            status.and_then(|status| serde_json::to_value(status).ok()).unwrap_or_default()
        })
    }

    /// Logs the warnings about the files that were read at start.
    pub(super) fn log_load_warnings(&self, log: Log) {
        for warning in &self.generation.warnings {
            log_reload_notice(log, &ReloadNotice::Warned(warning));
        }
    }

    /// Starts to watch the files and replaces the authorizers when they change.
    pub(super) fn start_reloading(self, replace_authorizers: AuthorizerReplacer, log: Log) {
        self.authorization_metrics
            .set_active_webhooks(&collect_authorization_webhooks(&self.generation));
        let metrics = Arc::clone(&self.authorization_metrics);
        let publish: PublishGenerationFn = Arc::new(move |generation: &Arc<Generation>| {
            replace_authorizers(&generation.authorizer_slots)
                .map_err(|error| PublishError(error.into()))?;
            metrics.set_active_webhooks(&collect_authorization_webhooks(generation));
            Ok(())
        });
        let log_notice = Arc::new(move |notice: &ReloadNotice<'_>| log_reload_notice(log, notice));
        let Self {
            authorizer_builder: builder,
            authorization_plan: plan,
            generation,
            reload_options,
            reloader,
            ..
        } = self;
        reloader.get_or_init(|| {
            Reloader::start(builder, &plan, generation, reload_options, publish, log_notice)
        });
    }
}

fn collect_authorization_webhooks(generation: &Generation) -> Vec<Arc<authz_webhook::Webhook>> {
    generation.webhooks().map(Arc::clone).collect()
}

fn authorization_webhook_limits(flags: &WebhookConnectionFlags) -> WebhookLimits {
    let in_flight_max = match flags.authorization_webhook_max_in_flight {
        0 => usize::MAX,
        limit => limit,
    };
    let cache_bytes_max =
        usize::try_from(flags.authorization_webhook_cache_max_bytes).unwrap_or(usize::MAX);
    WebhookLimits {
        in_flight_calls_max: in_flight_max,
        cache_bytes_max,
        ..WebhookLimits::default()
    }
}

/// Returns the identity of this server in metrics, which is the same after a restart: the host name and the
/// data directory, which two servers on one host never share.
fn server_identity_in_metrics(data_dir: &Path) -> String {
    let host = https_server::host_name().unwrap_or_default();
    let data = absolute_path(data_dir).unwrap_or_else(|_| data_dir.to_owned());
    format!("{host}:{}", data.display())
}

/// Returns the same path before and after the directory is created.
fn absolute_path(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Ok(path) => Ok(path),
        Err(_) => std::path::absolute(path),
    }
}

fn log_reload_notice(log: Log, notice: &ReloadNotice<'_>) {
    match notice {
        ReloadNotice::Applied(generation) => log.notice(
            "authorization configuration reloaded",
            &[
                ("generation", &generation.generation_number),
                ("hash", &generation.hash.as_deref().unwrap_or_default()),
            ],
        ),
        ReloadNotice::Reverted(generation) => log.notice(
            "the files define the authorization configuration in effect again",
            &[("generation", &generation.generation_number)],
        ),
        ReloadNotice::Failed { file, message, diagnostics } => {
            let position = match diagnostics.first() {
                Some(first) => {
                    format!("{}:{}:{}", first.file_name, first.position.line, first.position.column)
                }
                None => file.display().to_string(),
            };
            log.error(
                "the authorization configuration cannot be reloaded; the old one stays in effect",
                &[("at", &position), ("why", message)],
            );
        }
        ReloadNotice::Warned(warning) => {
            let (line, column) = (warning.position.line, warning.position.column);
            log.warn(
                "authorization configuration warning",
                &[
                    ("at", &format_args!("{}:{line}:{column}", warning.file_name)),
                    ("why", &warning.message),
                ],
            );
        }
        ReloadNotice::Unwatched { message } => log.warn(
            "files of the authorization configuration cannot be watched; the server polls them",
            &[("why", message)],
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use clap::Parser;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        flags: WebhookConnectionFlags,
    }

    #[test]
    fn limits_are_the_defaults_unless_flags_change_them() {
        let limits_of_flags = |args: &[&str]| {
            authorization_webhook_limits(
                &Program::try_parse_from([&["x"], args].concat()).unwrap().flags,
            )
        };
        assert_eq!(limits_of_flags(&[]), WebhookLimits::default());
        assert_eq!(
            limits_of_flags(&["--authorization-webhook-max-in-flight=0"]),
            WebhookLimits::without_in_flight_limit()
        );
        for (value, want) in [("1024", 1024), ("2Ki", 2048), ("0", 0)] {
            let changed =
                limits_of_flags(&[&format!("--authorization-webhook-cache-max-bytes={value}")]);
            assert_eq!(changed.cache_bytes_max, want);
        }
    }

    /// A19: addresses that users write may be loopback addresses only if the server listens on one, or if a flag
    /// allows it.
    #[test]
    fn a19_loopback_is_for_servers_on_loopback() {
        for (bind_address, args, allows_loopback) in [
            ("127.0.0.1", &[][..], true),
            ("127.8.8.8", &[], true),
            ("::1", &[], true),
            ("::ffff:127.0.0.1", &[], true),
            ("0.0.0.0", &[], false),
            ("::", &[], false),
            ("10.0.0.1", &[], false),
            ("0.0.0.0", &["--webhook-allow-loopback"], true),
            ("0.0.0.0", &["--webhook-allow-loopback=false"], false),
        ] {
            let flags = Program::try_parse_from([&["x"], args].concat()).unwrap().flags;
            let addresses = flags.webhook_address_policy(bind_address.parse().unwrap());
            assert_eq!(addresses.allows_loopback, allows_loopback, "{bind_address} {args:?}");
        }
    }

    /// A server keeps its identity when its directory is made at the first start.
    #[test]
    fn the_identity_does_not_depend_on_what_exists() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().canonicalize().unwrap().join("data");
        let before = server_identity_in_metrics(&data);
        std::fs::create_dir(&data).unwrap();
        assert_eq!(server_identity_in_metrics(&data), before);
        assert!(before.ends_with(&format!(":{}", data.display())));
        assert_ne!(server_identity_in_metrics(folder.path()), before);
    }
}
