//! One webhook: the one there was, or a new one.

use std::sync::Arc;

use authz_webhook::{Webhook, WebhookSettings};
use https_client::{AddressPolicy, Client, Destination};
use kubeconfig::Connection;

use super::{Assembler, Connect, Parts};
use crate::build_error::BuildCause;
use crate::files::{Files, Recording};
use crate::generation::{Generation, Hook};
use crate::transport::{HookTransport, endpoint};

/// The webhook of that name. Whatever comes of it, the files that were read are in `parts`.
pub(super) fn make(
    assembler: &Assembler,
    name: &str,
    settings: &WebhookSettings,
    previous: Option<&Generation>,
    connect: &mut Connect<'_>,
    parts: &mut Parts,
) -> Result<Arc<Hook>, BuildCause> {
    let recording = Recording::default();
    let connection = connect(name, settings, &recording);
    if let Ok(Some(connection)) = &connection {
        for path in &connection.files {
            recording.note(path, kubeconfig::FILE_BYTES_MAX);
        }
    }
    let files = recording.into_files();
    parts.files.note_all(&files);
    let Connection { target, warnings, .. } =
        connection?.ok_or_else(|| BuildCause::InClusterConfig { name: name.to_owned() })?;
    if let Some(same) = previous.and_then(|previous| unchanged(previous, name, settings, &files)) {
        return Ok(same);
    }
    parts.warnings.extend(warnings);
    let endpoint = endpoint(&target);
    let (mut limits, observe) = (assembler.limits.clone(), assembler.instruments.remote());
    // The operator wrote the URL; the endpoints of a Service are written by others.
    if let Destination::Url { .. } = target.destination {
        limits.address_policy = AddressPolicy::default();
    }
    let client = Client::new(target, assembler.resolver.clone(), limits, observe)
        .map_err(|error| BuildCause::Client { name: name.to_owned(), error })?;
    let client = Arc::new(client);
    let transport = HookTransport::new(Arc::clone(&client), &endpoint, settings.timeout.get());
    let webhook = Webhook::new(
        name,
        settings.clone(),
        Arc::new(transport),
        assembler.guards,
        assembler.instruments.webhook(name),
    );
    Ok(Arc::new(Hook { webhook: Arc::new(webhook), endpoint, client, files }))
}

/// The webhook of the generation before, if nothing about it changed.
fn unchanged(
    previous: &Generation,
    name: &str,
    settings: &WebhookSettings,
    files: &Files,
) -> Option<Arc<Hook>> {
    let hook = previous.hooks.iter().find(|hook| hook.webhook.name() == name)?;
    let is_same = hook.webhook.settings() == settings && hook.files == *files;
    is_same.then(|| Arc::clone(hook))
}
