//! Builds one webhook, or reuses the one of the previous generation.

use std::sync::Arc;

use authz_webhook::{Transport, Webhook, WebhookSettings};
use https_client::{AddressPolicy, Client, Destination};
use kubeconfig::ServerConnection;

use super::{AuthorizerBuilder, PartialGeneration, WebhookConnectionFinder};
use crate::build_error::BuildErrorCause;
use crate::config_generation::{ConfiguredWebhook, Generation};
use crate::file_set::{FileRecorder, FileSet};
use crate::service_transport::ServiceTransport;
use crate::webhook_transport::{WebhookTransport, url_without_credentials};

/// Builds the webhook of that name, or reuses an unchanged one. It adds the files that it read to `parts` in any
/// case.
pub(super) fn reuse_or_build_webhook(
    builder: &AuthorizerBuilder,
    name: &str,
    settings: &WebhookSettings,
    previous: Option<&Generation>,
    find_connection: &mut WebhookConnectionFinder<'_>,
    parts: &mut PartialGeneration,
) -> Result<Arc<ConfiguredWebhook>, BuildErrorCause> {
    let recorder = FileRecorder::default();
    let connection = find_connection(name, settings, &recorder);
    if let Ok(Some(connection)) = &connection {
        for path in &connection.source_files {
            recorder.record_file(path, kubeconfig::FILE_BYTES_MAX);
        }
    }
    let files = recorder.into_file_set();
    parts.files_read.add_all_files(&files);
    let ServerConnection { client_target: target, warnings, .. } =
        connection?.ok_or_else(|| BuildErrorCause::InClusterConfig { name: name.to_owned() })?;
    if let Some(same) =
        previous.and_then(|previous| find_unchanged_webhook(previous, name, settings, &files))
    {
        return Ok(same);
    }
    parts.warnings.extend(warnings);
    let endpoint = url_without_credentials(&target);
    let (mut limits, observer) =
        (builder.connection_limits.clone(), builder.observer_factory.connection_observer());
    // The operator wrote the URL. Other users write the endpoints of a Service, so its addresses are checked.
    if let Destination::Url { .. } = target.destination {
        limits.address_policy = AddressPolicy::default();
    }
    let timeout = settings.timeout.get();
    let transport: Result<Arc<dyn Transport>, _> =
        match (&target.destination, &builder.service_resolver) {
            (Destination::Service(service), Some(resolver)) => {
                let (service, resolver) = (service.clone(), Arc::clone(resolver));
                ServiceTransport::new(
                    service, resolver, target, limits, observer, &endpoint, timeout,
                )
                .map(|transport| Arc::new(transport) as _)
            }
            (Destination::Service(_) | Destination::Url { .. }, resolver) => {
                let client = Client::new(target, resolver.clone(), limits, observer);
                client.map(|own| {
                    Arc::new(WebhookTransport::new(Arc::new(own), &endpoint, timeout)) as _
                })
            }
        };
    let transport =
        transport.map_err(|error| BuildErrorCause::Client { name: name.to_owned(), error })?;
    let webhook = Webhook::new(
        name,
        settings.clone(),
        transport,
        builder.webhook_limits,
        builder.observer_factory.create_webhook_observer(name),
    );
    Ok(Arc::new(ConfiguredWebhook {
        webhook: Arc::new(webhook),
        endpoint_url_without_secrets: endpoint,
        file_set: files,
    }))
}

/// Returns the webhook of the previous generation if its settings and files are the same.
fn find_unchanged_webhook(
    previous: &Generation,
    name: &str,
    settings: &WebhookSettings,
    files: &FileSet,
) -> Option<Arc<ConfiguredWebhook>> {
    let hook = previous.configured_webhooks.iter().find(|hook| hook.webhook.name() == name)?;
    let is_same = hook.webhook.settings() == settings && hook.file_set == *files;
    is_same.then(|| Arc::clone(hook))
}
