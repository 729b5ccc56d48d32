//! The health check of webhooks before their configuration goes into effect.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::task::JoinSet;

use crate::config_generation::{ConfiguredWebhook, Generation};

/// The maximum number of webhooks that the check asks at the same time.
const CHECKS_MAX: usize = 32;

/// The webhooks that did not answer with a review, in the order of the configuration.
#[derive(Debug, thiserror::Error)]
#[error("{}", field_errors::aggregate_messages(webhook_faults))]
pub(super) struct UnhealthyWebhooks {
    webhook_faults: Vec<String>,
}

/// Sends one SubjectAccessReview to every new or changed webhook, within the timeout of that webhook; see
/// [`authz_webhook::Webhook::probe`]. A connection alone would not show a wrong path, nor a client
/// certificate that the webhook refuses.
///
/// # Errors
/// At least one webhook did not answer with a review.
pub(super) async fn check_health_of_new_webhooks(
    generation: &Generation,
    previous: &Generation,
) -> Result<(), UnhealthyWebhooks> {
    let is_known = |hook: &Arc<ConfiguredWebhook>| {
        previous.configured_webhooks.iter().any(|it| Arc::ptr_eq(it, hook))
    };
    let hooks = generation.configured_webhooks.iter().enumerate();
    let mut waiting: VecDeque<(usize, Arc<ConfiguredWebhook>)> = hooks
        .filter(|(_, hook)| !is_known(hook))
        .map(|(idx, hook)| (idx, Arc::clone(hook)))
        .collect();
    // The check of a newer configuration drops this set, which ends all tasks in it.
    let mut checks = JoinSet::new();
    let mut faults = Vec::new();
    loop {
        while checks.len() < CHECKS_MAX {
            let Some((idx, hook)) = waiting.pop_front() else { break };
            checks.spawn(async move { (idx, probe_webhook(&hook).await) });
        }
        match checks.join_next().await {
            None => break,
            Some(Ok((_, None))) => {}
            Some(Ok((idx, Some(fault)))) => faults.push((idx, fault)),
            Some(Err(error)) => faults.push((usize::MAX, error.to_string())),
        }
    }
    faults.sort();
    let faults: Vec<String> = faults.into_iter().map(|(_, fault)| fault).collect();
    if faults.is_empty() { Ok(()) } else { Err(UnhealthyWebhooks { webhook_faults: faults }) }
}

/// Sends one SubjectAccessReview to a webhook. Returns the reason if it does not answer with a review.
async fn probe_webhook(hook: &ConfiguredWebhook) -> Option<String> {
    let fault = hook.webhook.probe().await.err()?;
    Some(format!("webhook {} is not healthy: {fault}", hook.webhook.name()))
}
