//! Maintenance tasks of the writer, and which of them failed.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// A task that the writer retries after a failure and that blocks no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MaintenanceTask {
    /// Starts a new log file.
    Rotate,
    /// Writes a snapshot and removes the files that it replaces.
    Checkpoint,
    /// Moves history from memory to a file.
    Page,
}

/// The tasks whose last run failed.
#[derive(Debug, Default)]
pub(crate) struct FailedMaintenanceTasks(BTreeMap<MaintenanceTask, io::Error>);

impl FailedMaintenanceTasks {
    /// Records the result of a task.
    pub(crate) fn record_task_result(&mut self, task: MaintenanceTask, result: io::Result<()>) {
        match result {
            Ok(()) => drop(self.0.remove(&task)),
            Err(error) => drop(self.0.insert(task, error)),
        }
    }

    pub(crate) fn is_task_failing(&self, task: MaintenanceTask) -> bool {
        self.0.contains_key(&task)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Describes all failures in one line.
    pub(crate) fn describe_failures(&self) -> Option<Arc<str>> {
        let one = |(task, error): (&MaintenanceTask, &io::Error)| match task {
            MaintenanceTask::Rotate => format!("it cannot begin another log file: {error}"),
            MaintenanceTask::Checkpoint => format!("it cannot write a snapshot: {error}"),
            MaintenanceTask::Page => format!("it cannot move history to a file: {error}"),
        };
        let all: Vec<String> = self.0.iter().map(one).collect();
        (!all.is_empty()).then(|| all.join("; ").into())
    }
}
