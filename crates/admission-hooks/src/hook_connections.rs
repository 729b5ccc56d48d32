//! The connections to the services of all hooks of a snapshot.

use std::collections::HashMap;
use std::sync::Arc;

use admission::{ClientConfig, Snapshot};
use concurrency_limit::ConcurrencyLimit;

use crate::client_pool::ClientPool;
use crate::hook_clients::HookClients;
use crate::hook_connection::{HookConnection, HookEnvironment};
use crate::hook_observer::Phase;
use crate::long_condition_evaluations::LongEvaluationTracker;

/// The connections to all hooks of a snapshot, in the order of their lists.
///
/// Hooks with the same client configuration share a connection, and consecutive snapshots share them too.
/// The limit on the calls in flight of a hook also spans snapshots.
#[derive(Default)]
pub struct HookConnections {
    mutating_connections: Vec<LimitedConnection>,
    validating_connections: Vec<LimitedConnection>,
    limits_by_hook: HashMap<HookId, HookLimits>,
    client_pool: Arc<ClientPool<HookClients>>,
}

/// The connection to one hook and its concurrency limit.
#[derive(Clone)]
pub(crate) struct LimitedConnection {
    pub(crate) connection: Arc<HookConnection>,
    /// Limits the calls in flight of this hook.
    pub(crate) call_limit: Arc<ConcurrencyLimit>,
    /// Whether the match conditions of this hook take long.
    pub(crate) long_evaluation_tracker: Arc<LongEvaluationTracker>,
}

/// The limits of one hook, which outlive changes of its configuration.
#[derive(Debug, Clone)]
struct HookLimits {
    call_limit: Arc<ConcurrencyLimit>,
    long_evaluation_tracker: Arc<LongEvaluationTracker>,
}

/// The identity of a hook across changes of its configuration.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct HookId {
    phase: Phase,
    configuration_name: String,
    webhook_name: String,
}

impl HookConnections {
    /// Prepares connections to the hooks of a snapshot and reuses those of the previous snapshot.
    #[must_use]
    pub fn new(snapshot: &Snapshot, environment: &Arc<HookEnvironment>, previous: &Self) -> Self {
        let pool = &previous.client_pool;
        let previous_targets =
            previous.mutating_connections.iter().chain(&previous.validating_connections);
        let mut known: HashMap<&ClientConfig, Arc<HookConnection>> = previous_targets
            .map(|it| &it.connection)
            .filter(|it| it.uses_environment(environment))
            .map(|it| (&it.client_config, Arc::clone(it)))
            .collect();
        let mut limits = HashMap::new();
        let mut mutating = Vec::new();
        let mut validating = Vec::new();
        for (phase, list, targets) in [
            (Phase::Mutating, snapshot.mutating_hooks(), &mut mutating),
            (Phase::Validating, snapshot.validating_hooks(), &mut validating),
        ] {
            for hook in list.hooks() {
                let connection = known.entry(&hook.client_config).or_insert_with(|| {
                    let (environment, pool) = (Arc::clone(environment), Arc::clone(pool));
                    Arc::new(HookConnection::new(hook.client_config.clone(), environment, pool))
                });
                let (configuration, webhook) = (hook.configuration_name.clone(), hook.name.clone());
                let id = HookId { phase, configuration_name: configuration, webhook_name: webhook };
                let previous_limits = previous.limits_by_hook.get(&id).cloned();
                let HookLimits { call_limit, long_evaluation_tracker: condition_load } = limits
                    .entry(id)
                    .or_insert_with(|| {
                        previous_limits.unwrap_or_else(|| HookLimits {
                            call_limit: Arc::new(ConcurrencyLimit::new(
                                environment.calls_in_flight_max,
                            )),
                            long_evaluation_tracker: Arc::default(),
                        })
                    })
                    .clone();
                let connection = Arc::clone(connection);
                targets.push(LimitedConnection {
                    connection,
                    call_limit,
                    long_evaluation_tracker: condition_load,
                });
            }
        }
        Self {
            mutating_connections: mutating,
            validating_connections: validating,
            limits_by_hook: limits,
            client_pool: Arc::clone(pool),
        }
    }

    /// The connection to a hook by its position in the list of its phase.
    pub(crate) fn get(&self, phase: Phase, index: usize) -> Option<&LimitedConnection> {
        match phase {
            Phase::Mutating => self.mutating_connections.get(index),
            Phase::Validating => self.validating_connections.get(index),
        }
    }
}
