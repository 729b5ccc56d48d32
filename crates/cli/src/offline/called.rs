//! Webhooks that are really called.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use authz_chain::{Authorizer, AuthorizerType, Configuration};
use authz_reload::{
    Assembler, AuthorizationModes, AuthorizationPlan, ConfigOrigin, ConfigSource, Generation,
    NoObservers,
};
use authz_webhook::{Webhook, WebhookLimits};
use https_client::{HostPort, Limits, Resolve, ResolveError, ServiceName};

use super::show::Unusable;

/// Makes those webhooks of a plan that have these names, ready to be called, by name.
///
/// Only their files are read: a webhook that something stands in for need not be reachable.
///
/// # Errors
/// A file that says how one is reached is missing or wrong.
pub(super) fn webhooks(
    plan: &AuthorizationPlan,
    called: Vec<Authorizer>,
    directory: &Path,
) -> Result<BTreeMap<String, Arc<Webhook>>, Unusable> {
    if called.is_empty() {
        return Ok(BTreeMap::new());
    }
    let assembler = Assembler {
        guards: WebhookLimits::default(),
        limits: Limits::default(),
        resolver: Some(Arc::new(NoCluster)),
        observers: Arc::new(NoObservers),
        directory: directory.to_owned(),
    };
    let names: BTreeSet<String> = called.iter().map(|own| own.name().to_owned()).collect();
    let generation = match plan {
        AuthorizationPlan::File(file) => of_file(&assembler, &directory.join(&file.path), called)?,
        // All are in one file, so it is read whole, and some may not be meant.
        AuthorizationPlan::Modes(modes) => {
            assembler.start(&AuthorizationPlan::Modes(AuthorizationModes {
                modes: vec![AuthorizerType::Webhook],
                policy_file: None,
                ..modes.clone()
            }))?
        }
    };
    let meant = generation.webhooks().filter(|webhook| names.contains(webhook.name()));
    Ok(meant.map(|webhook| (webhook.name().to_owned(), Arc::clone(webhook))).collect())
}

fn of_file(
    assembler: &Assembler,
    path: &Path,
    called: Vec<Authorizer>,
) -> Result<Generation, Unusable> {
    let configuration = Configuration::new(called).map_err(Unusable::broken)?;
    let origin =
        ConfigOrigin { source: ConfigSource::File(path.to_owned()), hash: None, policy_file: None };
    Ok(assembler.build(&configuration, origin, None)?)
}

/// Where the services of a cluster are, nobody knows without its server.
struct NoCluster;

impl Resolve for NoCluster {
    fn resolve(&self, service: &ServiceName) -> Result<HostPort, ResolveError> {
        let ServiceName { namespace, name, .. } = service;
        Err(ResolveError(format!(
            "service {namespace}/{name} is known to the server of its cluster only"
        )))
    }
}
