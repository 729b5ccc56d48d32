//! Builds the webhooks that a command calls.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use authz_chain::{AuthorizerConfiguration, AuthorizerType, Configuration};
use authz_reload::{
    AuthorizationModes, AuthorizationPlan, AuthorizerBuilder, ConfigOrigin, ConfigSource,
    Generation, NoObservers, PluginAuthorizers,
};
use authz_webhook::{Webhook, WebhookLimits};
use https_client::{HostPort, Limits, ResolveError, ServiceName, ServiceResolver};

use super::load_failure::LoadFailure;

/// Builds the given webhooks of a plan, by name.
///
/// It reads only the files of these webhooks: a webhook with an assumed answer needs no connection.
///
/// # Errors
/// The connection file of a webhook is missing or invalid.
pub(super) fn build_callable_webhooks(
    plan: &AuthorizationPlan,
    called: Vec<AuthorizerConfiguration>,
    directory: &Path,
) -> Result<BTreeMap<String, Arc<Webhook>>, LoadFailure> {
    if called.is_empty() {
        return Ok(BTreeMap::new());
    }
    let builder = AuthorizerBuilder {
        webhook_limits: WebhookLimits::default(),
        connection_limits: Limits::default(),
        service_resolver: Some(Arc::new(NoServiceResolver)),
        observer_factory: Arc::new(NoObservers),
        plugin_authorizers: PluginAuthorizers::default(),
        abac_options: manifests::abac::AbacPolicyLoadOptions::default(),
        base_directory: directory.to_owned(),
    };
    let names: BTreeSet<String> = called.iter().map(|own| own.name().to_owned()).collect();
    let generation = match plan {
        AuthorizationPlan::File(file) => {
            build_webhooks_from_config_file(&builder, &directory.join(&file.path), called)?
        }
        // One file defines all hooks of the mode; those that are not called are filtered out below.
        AuthorizationPlan::Modes(modes) => {
            builder.build_first_generation(&AuthorizationPlan::Modes(AuthorizationModes {
                modes: vec![AuthorizerType::Webhook],
                abac_policy_file: None,
                ..modes.clone()
            }))?
        }
    };
    let meant = generation.webhooks().filter(|webhook| names.contains(webhook.name()));
    Ok(meant.map(|webhook| (webhook.name().to_owned(), Arc::clone(webhook))).collect())
}

fn build_webhooks_from_config_file(
    builder: &AuthorizerBuilder,
    path: &Path,
    called: Vec<AuthorizerConfiguration>,
) -> Result<Generation, LoadFailure> {
    let configuration = Configuration::new(called).map_err(LoadFailure::from_message)?;
    let origin = ConfigOrigin {
        source: ConfigSource::File(path.to_owned()),
        hash: None,
        abac_policy_file: None,
    };
    Ok(builder.build_next_generation(&configuration, origin, None)?)
}

/// Refuses to resolve Services, because only the server of a cluster knows their endpoints.
struct NoServiceResolver;

impl ServiceResolver for NoServiceResolver {
    fn resolve_service(&self, service: &ServiceName) -> Result<HostPort, ResolveError> {
        let ServiceName { namespace, name, .. } = service;
        Err(ResolveError(format!(
            "service {namespace}/{name} is known to the server of its cluster only"
        )))
    }
}
