//! The ways to the services of all hooks of a snapshot.

use std::sync::Arc;

use admission::{Hook, Snapshot};

use crate::connection::{Connection, Surroundings};
use crate::observe::Phase;

/// The ways to all hooks of a snapshot, in the order of their lists.
///
/// Hooks that are at the same place and trust the same authorities share connections, and so do a
/// snapshot and the next.
#[derive(Default)]
pub struct Connections {
    mutating: Vec<Arc<Connection>>,
    validating: Vec<Arc<Connection>>,
}

impl Connections {
    /// Prepares the ways to the hooks of a snapshot, and keeps what the previous one had.
    #[must_use]
    pub fn new(snapshot: &Snapshot, surroundings: &Arc<Surroundings>, previous: &Self) -> Self {
        let mut known: Vec<Arc<Connection>> = Vec::new();
        for connection in previous.mutating.iter().chain(&previous.validating) {
            if !known.iter().any(|it| Arc::ptr_eq(it, connection)) {
                known.push(Arc::clone(connection));
            }
        }
        let mut connection = |hook: &Arc<Hook>| {
            let found = known.iter().find(|it| it.is_for(&hook.client, surroundings));
            found.cloned().unwrap_or_else(|| {
                let new = Arc::new(Connection::new(hook.client.clone(), Arc::clone(surroundings)));
                known.push(Arc::clone(&new));
                new
            })
        };
        Self {
            mutating: snapshot.mutating().hooks().iter().map(&mut connection).collect(),
            validating: snapshot.validating().hooks().iter().map(&mut connection).collect(),
        }
    }

    /// The way to a hook by its place in the list of its phase.
    pub(crate) fn get(&self, phase: Phase, index: usize) -> Option<&Arc<Connection>> {
        match phase {
            Phase::Mutating => self.mutating.get(index),
            Phase::Validating => self.validating.get(index),
        }
    }
}
