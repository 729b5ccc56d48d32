//! The ways to the services of all hooks of a snapshot.

use std::collections::HashMap;
use std::sync::Arc;

use admission::{ClientConfig, Snapshot};

use crate::connection::{Connection, Surroundings};
use crate::observe::Phase;
use crate::pool::Pool;
use crate::way::Way;

/// The ways to all hooks of a snapshot, in the order of their lists.
///
/// Hooks that are at the same place and trust the same authorities share connections, and so do a
/// snapshot and the next.
#[derive(Default)]
pub struct Connections {
    mutating: Vec<Arc<Connection>>,
    validating: Vec<Arc<Connection>>,
    pool: Arc<Pool<Way>>,
}

impl Connections {
    /// Prepares the ways to the hooks of a snapshot, and keeps what the previous one had.
    #[must_use]
    pub fn new(snapshot: &Snapshot, surroundings: &Arc<Surroundings>, previous: &Self) -> Self {
        let pool = &previous.pool;
        let previous_connections = previous.mutating.iter().chain(&previous.validating);
        let mut known: HashMap<&ClientConfig, Arc<Connection>> = previous_connections
            .filter(|it| it.is_in(surroundings))
            .map(|it| (&it.config, Arc::clone(it)))
            .collect();
        let mut mutating = Vec::new();
        let mut validating = Vec::new();
        for (list, connections) in
            [(snapshot.mutating(), &mut mutating), (snapshot.validating(), &mut validating)]
        {
            for hook in list.hooks() {
                let connection = known.entry(&hook.client).or_insert_with(|| {
                    let (surroundings, pool) = (Arc::clone(surroundings), Arc::clone(pool));
                    Arc::new(Connection::new(hook.client.clone(), surroundings, pool))
                });
                connections.push(Arc::clone(connection));
            }
        }
        Self { mutating, validating, pool: Arc::clone(pool) }
    }

    /// The way to a hook by its place in the list of its phase.
    pub(crate) fn get(&self, phase: Phase, index: usize) -> Option<&Arc<Connection>> {
        match phase {
            Phase::Mutating => self.mutating.get(index),
            Phase::Validating => self.validating.get(index),
        }
    }
}
