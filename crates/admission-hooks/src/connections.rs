//! The ways to the services of all hooks of a snapshot.

use std::collections::HashMap;
use std::sync::Arc;

use admission::{ClientConfig, Snapshot};
use concurrency_limit::ConcurrencyLimit;

use crate::connection::{Connection, HookEnvironment};
use crate::observe::Phase;
use crate::pool::Pool;
use crate::way::Way;

/// The ways to all hooks of a snapshot, in the order of their lists.
///
/// Hooks that are at the same place and trust the same authorities share connections, and so do a
/// snapshot and the next. The calls of a hook are limited across snapshots, too.
#[derive(Default)]
pub struct Connections {
    mutating: Vec<HookTarget>,
    validating: Vec<HookTarget>,
    limits: HashMap<HookId, Arc<ConcurrencyLimit>>,
    pool: Arc<Pool<Way>>,
}

/// The way to one hook.
#[derive(Clone)]
pub(crate) struct HookTarget {
    pub(crate) connection: Arc<Connection>,
    /// The calls of this hook that are in flight.
    pub(crate) calls: Arc<ConcurrencyLimit>,
}

/// What stays when a configuration changes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct HookId {
    phase: Phase,
    configuration: String,
    webhook: String,
}

impl Connections {
    /// Prepares the ways to the hooks of a snapshot, and keeps what the previous one had.
    #[must_use]
    pub fn new(snapshot: &Snapshot, surroundings: &Arc<HookEnvironment>, previous: &Self) -> Self {
        let pool = &previous.pool;
        let previous_targets = previous.mutating.iter().chain(&previous.validating);
        let mut known: HashMap<&ClientConfig, Arc<Connection>> = previous_targets
            .map(|it| &it.connection)
            .filter(|it| it.is_in(surroundings))
            .map(|it| (&it.config, Arc::clone(it)))
            .collect();
        let mut limits = HashMap::new();
        let mut mutating = Vec::new();
        let mut validating = Vec::new();
        for (phase, list, targets) in [
            (Phase::Mutating, snapshot.mutating(), &mut mutating),
            (Phase::Validating, snapshot.validating(), &mut validating),
        ] {
            for hook in list.hooks() {
                let connection = known.entry(&hook.client_config).or_insert_with(|| {
                    let (surroundings, pool) = (Arc::clone(surroundings), Arc::clone(pool));
                    Arc::new(Connection::new(hook.client_config.clone(), surroundings, pool))
                });
                let (configuration, webhook) = (hook.configuration_name.clone(), hook.name.clone());
                let id = HookId { phase, configuration, webhook };
                let kept = previous.limits.get(&id).cloned();
                let calls = limits.entry(id).or_insert_with(|| {
                    kept.unwrap_or_else(|| {
                        Arc::new(ConcurrencyLimit::new(surroundings.calls_in_flight_max))
                    })
                });
                let (connection, calls) = (Arc::clone(connection), Arc::clone(calls));
                targets.push(HookTarget { connection, calls });
            }
        }
        Self { mutating, validating, limits, pool: Arc::clone(pool) }
    }

    /// The way to a hook by its place in the list of its phase.
    pub(crate) fn get(&self, phase: Phase, index: usize) -> Option<&HookTarget> {
        match phase {
            Phase::Mutating => self.mutating.get(index),
            Phase::Validating => self.validating.get(index),
        }
    }
}
