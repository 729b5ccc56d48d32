//! Maintenance after callers were answered (log rotation, snapshots, pages), and recovery from a failing
//! disk.

use std::io;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use store::{Revision, SpaceUsage, StoreStatus};

use crate::checkpoint::{self, Checkpoint};
use crate::log_file::LogFile;
use crate::maintenance_task::MaintenanceTask;
use crate::options::SyncMode;
use crate::read_only_cause::ReadOnlyCause;
use crate::recovery::SealedLog;
use crate::store_state::StoreState;
use crate::writer::{Writer, collect_expiry_deadlines};

/// Pause after a failed maintenance task.
const MAINTENANCE_RETRY_DELAY: Duration = Duration::from_secs(10);

impl Writer {
    /// Makes the store read-only until [`Self::try_leave_read_only`] succeeds. Readers keep the last durable state;
    /// pending writes fail.
    pub(crate) fn enter_read_only(&mut self, error: &io::Error) {
        self.next_sync_at = None;
        self.store_state = StoreState::clone(&self.shared_state.published_state.load());
        self.usage_accounting.roll_back_batch(self.store_state.revision);
        self.expiry_deadlines = collect_expiry_deadlines(&self.store_state);
        self.set_read_only_cause(Some(ReadOnlyCause::new(error)));
    }

    /// Tries once a second to leave read-only mode: repairs the log to the state that readers see, and starts
    /// a new log file. Creating that file shows that the disk accepts writes again.
    pub(crate) fn try_leave_read_only(&mut self) {
        if self.read_only_cause.is_none() {
            return;
        }
        let revived = self.current_log.repair_after_error().and_then(|()| self.start_new_log());
        match revived {
            Ok(()) => {
                self.synced_revision = self.store_state.revision;
                self.set_read_only_cause(None);
            }
            Err(error) => self.set_read_only_cause(Some(ReadOnlyCause::new(&error))),
        }
    }

    /// Publishes the failure with the status, so that refused writes, health and status agree.
    fn set_read_only_cause(&mut self, failure: Option<ReadOnlyCause>) {
        let unavailable = failure.as_ref().map(|failure| failure.unavailable_error.clone());
        *self.shared_state.write_failure.lock().unwrap_or_else(PoisonError::into_inner) =
            unavailable;
        self.read_only_cause = failure;
        self.publish_status();
    }

    /// Measures the free space and publishes the usage.
    pub(crate) fn refresh_usage(&mut self) {
        let free = match self.options.limits.disk_free_bytes_min {
            0 => None,
            _ => self.options.free_space_source.free_disk_bytes(self.directory.path()),
        };
        self.space_budget.refresh_alarms(free, self.checkpoint.is_some(), &self.usage_accounting);
        self.publish_status();
    }

    /// Runs the maintenance tasks. Callers were answered before.
    pub(crate) fn run_maintenance(&mut self) {
        if self.read_only_cause.is_none() && Instant::now() >= self.next_maintenance_at {
            let was_healthy = self.failed_maintenance_tasks.is_empty();
            if self.current_log.file_len() >= self.options.limits.log_file_bytes_max {
                self.rotate_log();
            }
            let checkpointed = self.finish_checkpoint().and_then(|()| self.start_checkpoint());
            if let Err(error) = checkpointed {
                self.failed_maintenance_tasks
                    .record_task_result(MaintenanceTask::Checkpoint, Err(error));
            }
            let paged = self.page_out_history();
            self.failed_maintenance_tasks.record_task_result(MaintenanceTask::Page, paged);
            if !self.failed_maintenance_tasks.is_empty() {
                self.next_maintenance_at = Instant::now() + MAINTENANCE_RETRY_DELAY;
            }
            if was_healthy != self.failed_maintenance_tasks.is_empty() {
                self.publish_status();
            }
        }
        self.publish_alarms();
    }

    /// Starts a new log file. If the file cannot be created, writes continue in the current one. If the sync of the
    /// current file fails, the store becomes read-only.
    fn rotate_log(&mut self) {
        match self.sync() {
            Ok(()) => {
                let begun = self.start_new_log();
                self.failed_maintenance_tasks.record_task_result(MaintenanceTask::Rotate, begun);
            }
            Err(error) => self.enter_read_only(&error),
        }
    }

    fn start_new_log(&mut self) -> io::Result<()> {
        let defers_sync = matches!(self.options.sync_mode, SyncMode::Interval(_));
        let sequence = self.current_log.log_number() + 1;
        let next = LogFile::create_log_file(
            self.directory.path(),
            sequence,
            self.store_state.revision,
            defers_sync,
        )?;
        let old = std::mem::replace(&mut self.current_log, next);
        self.sealed_logs.push(SealedLog {
            log_number: old.log_number(),
            base_revision: old.base_revision(),
            file_bytes: old.file_len(),
        });
        Ok(())
    }

    fn start_checkpoint(&mut self) -> io::Result<()> {
        // On a nearly full disk every freed byte is worth a snapshot.
        let bytes_min = match self.space_budget.is_disk_space_short() {
            true => 0,
            false => self.options.limits.checkpoint_bytes_min.max(self.snapshot_bytes),
        };
        let (newest_base, floor) =
            (self.current_log.base_revision(), self.store_state.compaction_floor);
        if self.checkpoint.is_some()
            || checkpoint::count_logs_worth_snapshot(
                &self.sealed_logs,
                newest_base,
                floor,
                bytes_min,
            )
            .is_none()
        {
            return Ok(());
        }
        // A snapshot must not know more than the log.
        if !self.current_log.is_synced() {
            self.sync().inspect_err(|error| self.enter_read_only(error))?;
        }
        let directory = self.directory.path().to_owned();
        self.checkpoint = Some(Checkpoint::start(directory, self.store_state.clone())?);
        Ok(())
    }

    fn finish_checkpoint(&mut self) -> io::Result<()> {
        let Some(checkpoint) =
            self.checkpoint.take_if(|checkpoint| checkpoint.is_snapshot_finished())
        else {
            return Ok(());
        };
        let (revision, bytes) = checkpoint.wait_for_snapshot()?;
        self.snapshot_bytes = bytes;
        self.remove_obsolete_files(revision)?;
        self.failed_maintenance_tasks.record_task_result(MaintenanceTask::Checkpoint, Ok(()));
        Ok(())
    }

    /// Removes the files that a snapshot of this revision replaces.
    pub(crate) fn remove_obsolete_files(&mut self, snapshot: Revision) -> io::Result<()> {
        let n_logs = checkpoint::count_obsolete_logs(
            &self.sealed_logs,
            self.current_log.base_revision(),
            snapshot,
        );
        checkpoint::remove_replaced_files(
            self.directory.path(),
            &mut self.sealed_logs,
            n_logs,
            snapshot,
        )
    }

    /// Moves the oldest history to files while it takes too much memory. On a nearly full disk the next
    /// compaction drops it instead.
    fn page_out_history(&mut self) -> io::Result<()> {
        let history = &self.store_state.history;
        if self.space_budget.is_disk_space_short()
            && !self.history_pager.exceeds_memory_limit(history)
        {
            return Ok(());
        }
        let before = self.history_pager.history_pages_bytes();
        let paged = self.history_pager.write_history_pages(&mut self.store_state.history);
        self.space_budget
            .subtract_free_bytes(self.history_pager.history_pages_bytes().saturating_sub(before));
        if paged? {
            self.shared_state.published_state.store(Arc::new(self.store_state.clone()));
        }
        Ok(())
    }

    /// Publishes alarms at once, so that a refused write and the status agree.
    fn publish_alarms(&self) {
        let alarms = self.space_budget.alarms();
        if self.shared_state.status.load().alarms != alarms {
            self.publish_status();
        }
    }

    fn publish_status(&self) {
        let logs: u64 = self.sealed_logs.iter().map(|log| log.file_bytes).sum();
        let files = logs
            + self.current_log.file_len()
            + self.snapshot_bytes
            + self.history_pager.history_pages_bytes();
        self.shared_state.status.store(Arc::new(StoreStatus {
            alarms: self.space_budget.alarms(),
            is_read_only: self.read_only_cause.is_some(),
            maintenance_failure_text: self.failed_maintenance_tasks.describe_failures(),
            space_usage: Some(SpaceUsage {
                disk_bytes: files,
                history_memory_bytes: self.store_state.history.history_memory_bytes() as u64,
                ..self.space_budget.space_usage(&self.usage_accounting)
            }),
        }));
    }
}
