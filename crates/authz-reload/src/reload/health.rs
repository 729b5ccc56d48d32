//! Whether new webhooks can be reached at all.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::task::JoinSet;

use crate::generation::{Generation, Hook};

/// The most webhooks that are looked at together.
const CHECKS_MAX: usize = 32;

/// Connects to every webhook that is new or changed, within its own time, and asks nothing.
///
/// # Errors
/// What is wrong with all that can not be reached, in the order of the configuration.
pub(super) async fn check(generation: &Generation, previous: &Generation) -> Result<(), String> {
    let is_known = |hook: &Arc<Hook>| previous.hooks.iter().any(|it| Arc::ptr_eq(it, hook));
    let hooks = generation.hooks.iter().enumerate();
    let mut waiting: VecDeque<(usize, Arc<Hook>)> = hooks
        .filter(|(_, hook)| !is_known(hook))
        .map(|(at, hook)| (at, Arc::clone(hook)))
        .collect();
    // Dropping the set, as when a newer configuration comes, ends all its tasks.
    let mut checks = JoinSet::new();
    let mut faults = Vec::new();
    loop {
        while checks.len() < CHECKS_MAX {
            let Some((at, hook)) = waiting.pop_front() else { break };
            checks.spawn(async move { (at, check_one(&hook).await) });
        }
        match checks.join_next().await {
            None => break,
            Some(Ok((_, Ok(())))) => {}
            Some(Ok((at, Err(fault)))) => faults.push((at, fault)),
            Some(Err(error)) => faults.push((usize::MAX, error.to_string())),
        }
    }
    faults.sort();
    let faults: Vec<String> = faults.into_iter().map(|(_, fault)| fault).collect();
    if faults.is_empty() { Ok(()) } else { Err(field_errors::aggregate(&faults)) }
}

async fn check_one(hook: &Hook) -> Result<(), String> {
    let limit = hook.webhook.settings().timeout.get();
    let checked = hook.client.check_connection(limit).await;
    checked.map_err(|fault| format!("webhook {} is not healthy: {fault}", hook.webhook.name()))
}
