//! The health check of webhooks before their configuration goes into effect.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::task::JoinSet;

use crate::generation::{ConfiguredWebhook, Generation};

/// The most webhooks that are contacted at the same time.
const CHECKS_MAX: usize = 32;

/// The webhooks that can not be reached, in the order of the configuration.
#[derive(Debug, thiserror::Error)]
#[error("{}", field_errors::aggregate(faults))]
pub(super) struct Unhealthy {
    faults: Vec<String>,
}

/// Connects to every webhook that is new or changed, within its own timeout, and sends no request.
///
/// # Errors
/// At least one webhook can not be reached.
pub(super) async fn check_new_webhooks(
    generation: &Generation,
    previous: &Generation,
) -> Result<(), Unhealthy> {
    let is_known =
        |hook: &Arc<ConfiguredWebhook>| previous.hooks.iter().any(|it| Arc::ptr_eq(it, hook));
    let hooks = generation.hooks.iter().enumerate();
    let mut waiting: VecDeque<(usize, Arc<ConfiguredWebhook>)> = hooks
        .filter(|(_, hook)| !is_known(hook))
        .map(|(idx, hook)| (idx, Arc::clone(hook)))
        .collect();
    // The check of a newer configuration drops the set, which ends all its tasks.
    let mut checks = JoinSet::new();
    let mut faults = Vec::new();
    loop {
        while checks.len() < CHECKS_MAX {
            let Some((idx, hook)) = waiting.pop_front() else { break };
            checks.spawn(async move { (idx, connect(&hook).await) });
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
    if faults.is_empty() { Ok(()) } else { Err(Unhealthy { faults }) }
}

/// Connects to a webhook; returns why it can not be reached.
async fn connect(hook: &ConfiguredWebhook) -> Option<String> {
    let limit = hook.webhook.settings().timeout.get();
    let fault = hook.client.check_connection(limit).await.err()?;
    Some(format!("webhook {} is not healthy: {fault}", hook.webhook.name()))
}
