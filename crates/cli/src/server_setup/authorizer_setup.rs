//! The authorizers of a program that listens: built at start, replaced when their files change.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use authz_chain::{AuthorizerSlot, AuthorizerType};
use authz_reload::{
    AuthorizationPlan, AuthorizerBuilder, Generation, PublishError, PublishGenerationFn,
    ReloadNotice, ReloadOptions, Reloader,
};
use authz_webhook::WebhookLimits;
use component_base::Log;
use https_client::{Limits, ServiceResolver};
use manifests::abac::AbacPolicyLoadOptions;
use metrics::AuthorizationMetrics;
use prometheus::Registry;
use serde_json::Value;

use super::authorization_log_observer::AuthorizationLogObserver;
use crate::offline::LoadFailure;
use crate::program::plugin_authorizers;

/// The authorizers that the server starts with, and what it needs to reload them.
pub(crate) struct AuthorizerSetup {
    pub(crate) generation: Arc<Generation>,
    pub(crate) metrics_registry: Registry,
    authorization_plan: AuthorizationPlan,
    authorizer_builder: AuthorizerBuilder,
    pub(crate) authorization_metrics: Arc<AuthorizationMetrics>,
    reload_options: ReloadOptions,
    /// Set when reloading starts. The status endpoint of the server reads it, and the server exists
    /// before the reloader does.
    reloader: Arc<OnceLock<Reloader>>,
}

/// The inputs of [`AuthorizerSetup::load`].
pub(crate) struct AuthorizerSetupOptions {
    /// The configuration file or the modes.
    pub(crate) authorization_plan: AuthorizationPlan,
    /// The limits of calls to the webhooks of the chain, and of their caches.
    pub(crate) webhook_limits: WebhookLimits,
    /// The limits of the connections to them.
    pub(crate) connection_limits: Limits,
    /// Resolves the names of Services; `None` uses DNS.
    pub(crate) service_resolver: Option<Arc<dyn ServiceResolver>>,
    /// The options of reading the ABAC policy file.
    pub(crate) abac_options: AbacPolicyLoadOptions,
    /// Whether changed webhooks must answer before a changed configuration takes effect.
    pub(crate) checks_webhook_health: bool,
    /// The identity of this server in metrics.
    pub(crate) metrics_identity: String,
}

/// Puts other authorizers into effect, or fails and changes nothing.
pub(crate) type ReplaceAuthorizers = Arc<
    dyn Fn(&Arc<[AuthorizerSlot]>) -> Result<(), Box<dyn std::error::Error + Send + Sync>>
        + Send
        + Sync,
>;

impl AuthorizerSetup {
    /// Reads the files that the plan names. It calls no webhook, so that an unreachable webhook does
    /// not prevent the start.
    ///
    /// # Errors
    /// A file is invalid.
    pub(crate) fn load(options: AuthorizerSetupOptions, log: Log) -> Result<Self, LoadFailure> {
        let plan = options.authorization_plan;
        let is_file_mode = matches!(plan, AuthorizationPlan::File(_));
        let registry = Registry::new();
        let metrics = AuthorizationMetrics::new(&registry, &options.metrics_identity, is_file_mode)
            .map_err(LoadFailure::from_message)?;
        let builder = AuthorizerBuilder {
            webhook_limits: options.webhook_limits,
            connection_limits: options.connection_limits,
            service_resolver: options.service_resolver,
            observer_factory: Arc::new(AuthorizationLogObserver {
                authorization_metrics: Arc::clone(&metrics),
                log,
            }),
            plugin_authorizers: plugin_authorizers().clone(),
            abac_options: options.abac_options,
            base_directory: std::env::current_dir().map_err(LoadFailure::from_message)?,
        };
        let generation = Arc::new(builder.build_first_generation(&plan)?);
        let reload_options = ReloadOptions {
            checks_webhook_health: options.checks_webhook_health,
            ..ReloadOptions::default()
        };
        let reloader = Arc::default();
        Ok(Self {
            generation,
            metrics_registry: registry,
            authorization_plan: plan,
            authorizer_builder: builder,
            authorization_metrics: metrics,
            reload_options,
            reloader,
        })
    }

    /// Reports whether the flags disable anonymous authentication. A configuration file never does.
    pub(crate) fn disables_anonymous_auth(&self) -> bool {
        match &self.authorization_plan {
            AuthorizationPlan::File(_) => false,
            AuthorizationPlan::Modes(modes) => modes.disables_anonymous_auth(),
        }
    }

    /// Returns the names of the authorizers in order, for the start message.
    pub(crate) fn describe_authorizers(&self) -> String {
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
    pub(crate) fn reload_status_reader(&self) -> Arc<dyn Fn() -> Value + Send + Sync> {
        let reloader = Arc::clone(&self.reloader);
        Arc::new(move || {
            let status = reloader.get().map(Reloader::status);
            status.and_then(|status| serde_json::to_value(status).ok()).unwrap_or_default()
        })
    }

    /// Logs the warnings about the files that were read at start.
    pub(crate) fn log_load_warnings(&self, log: Log) {
        for warning in &self.generation.warnings {
            log_reload_notice(log, &ReloadNotice::Warned(warning));
        }
    }

    /// Starts to watch the files and replaces the authorizers when they change.
    pub(crate) fn start_reloading(self, replace_authorizers: ReplaceAuthorizers, log: Log) {
        self.authorization_metrics
            .set_active_webhooks(&collect_authorization_webhooks(&self.generation));
        let metrics = Arc::clone(&self.authorization_metrics);
        let publish: PublishGenerationFn = Arc::new(move |generation: &Arc<Generation>| {
            replace_authorizers(&generation.authorizer_slots).map_err(PublishError)?;
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

/// Returns the identity of this server in metrics, which is the same after a restart: the host name and the
/// data directory, which two servers on one host never share.
pub(crate) fn server_identity_in_metrics(data_dir: &Path) -> String {
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
