//! The maintenance that the writer does beside writing, and which part of it has failed.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// A duty that is tried again when it fails and that holds up no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Chore {
    /// Beginning another log file.
    Rotate,
    /// Writing a snapshot and removing what it replaces.
    Checkpoint,
    /// Moving history to a file.
    Page,
}

/// The chores that have failed and have not succeeded since.
#[derive(Debug, Default)]
pub(crate) struct Troubles(BTreeMap<Chore, io::Error>);

impl Troubles {
    /// Takes down how a chore went.
    pub(crate) fn note(&mut self, chore: Chore, result: io::Result<()>) {
        match result {
            Ok(()) => drop(self.0.remove(&chore)),
            Err(error) => drop(self.0.insert(chore, error)),
        }
    }

    pub(crate) fn is_failing(&self, chore: Chore) -> bool {
        self.0.contains_key(&chore)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them in one sentence.
    pub(crate) fn text(&self) -> Option<Arc<str>> {
        let one = |(chore, error): (&Chore, &io::Error)| match chore {
            Chore::Rotate => format!("it can not begin another log file: {error}"),
            Chore::Checkpoint => format!("it can not write a snapshot: {error}"),
            Chore::Page => format!("it can not move history to a file: {error}"),
        };
        let all: Vec<String> = self.0.iter().map(one).collect();
        (!all.is_empty()).then(|| all.join("; ").into())
    }
}
