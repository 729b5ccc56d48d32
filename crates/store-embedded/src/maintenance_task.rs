//! The maintenance that the writer does beside writing, and which part of it has failed.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// A duty that is tried again when it fails and that holds up no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MaintenanceTask {
    /// Beginning another log file.
    Rotate,
    /// Writing a snapshot and removing what it replaces.
    Checkpoint,
    /// Moving history to a file.
    Page,
}

/// The chores that have failed and have not succeeded since.
#[derive(Debug, Default)]
pub(crate) struct FailedTasks(BTreeMap<MaintenanceTask, io::Error>);

impl FailedTasks {
    /// Takes down how a task went.
    pub(crate) fn record_result(&mut self, task: MaintenanceTask, result: io::Result<()>) {
        match result {
            Ok(()) => drop(self.0.remove(&task)),
            Err(error) => drop(self.0.insert(task, error)),
        }
    }

    pub(crate) fn is_failing(&self, task: MaintenanceTask) -> bool {
        self.0.contains_key(&task)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them in one sentence.
    pub(crate) fn describe(&self) -> Option<Arc<str>> {
        let one = |(task, error): (&MaintenanceTask, &io::Error)| match task {
            MaintenanceTask::Rotate => format!("it can not begin another log file: {error}"),
            MaintenanceTask::Checkpoint => format!("it can not write a snapshot: {error}"),
            MaintenanceTask::Page => format!("it can not move history to a file: {error}"),
        };
        let all: Vec<String> = self.0.iter().map(one).collect();
        (!all.is_empty()).then(|| all.join("; ").into())
    }
}
