//! Maintenance after callers were answered (log rotation, snapshots, pages), and recovery from a failing
//! disk.

use std::io;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use store::{Revision, StoreStatus, Unavailable, Usage};

use crate::checkpoint::{self, Checkpoint};
use crate::log::Log;
use crate::maintenance_task::MaintenanceTask;
use crate::options::SyncMode;
use crate::recovery::SealedLog;
use crate::store_state::StoreState;
use crate::writer::{Writer, expiries};

/// Pause after a failed maintenance task.
const MAINTENANCE_RETRY_DELAY: Duration = Duration::from_secs(10);

impl Writer {
    /// Makes the store read-only until [`Self::retry_log`] succeeds. Readers keep the last durable state;
    /// pending writes fail.
    pub(crate) fn enter_read_only(&mut self, error: &io::Error) {
        let reason = format!("it can not write its log and only reads: {error}");
        let failure = Unavailable { reason: reason.into() };
        self.report_failure(Some(failure.clone()));
        self.failure = Some(failure);
        self.next_sync = None;
        self.state = StoreState::clone(&self.core.state.load());
        self.accounting.roll_back(self.state.revision);
        self.expiries = expiries(&self.state);
    }

    /// Tries once a second to leave read-only mode: repairs the log to the state that readers see, and starts
    /// a new log file. Creating that file shows that the disk accepts writes again.
    pub(crate) fn retry_log(&mut self) {
        if self.failure.is_none() {
            return;
        }
        let revived = self.log.repair().and_then(|()| self.start_new_log());
        match revived {
            Ok(()) => {
                self.synced_revision = self.state.revision;
                self.failure = None;
                self.report_failure(None);
            }
            Err(error) => {
                let reason = format!("it can not write its log and only reads: {error}");
                self.report_failure(Some(Unavailable { reason: reason.into() }));
            }
        }
    }

    /// Measures the free space and publishes the usage.
    pub(crate) fn refresh_usage(&mut self) {
        let free = match self.options.limits.disk_free_bytes_min {
            0 => None,
            _ => self.options.disk.free_bytes(self.directory.path()),
        };
        self.budget.refresh_alarms(free, self.checkpoint.is_some(), &self.accounting);
        self.report_status();
    }

    /// Runs the maintenance tasks. Callers were answered before.
    pub(crate) fn run_maintenance(&mut self) {
        if self.failure.is_none() && Instant::now() >= self.maintenance_after {
            let was_healthy = self.failed_tasks.is_empty();
            if self.log.bytes() >= self.options.limits.log_file_bytes_max {
                self.rotate_log();
            }
            let checkpointed = self.finish_checkpoint().and_then(|()| self.start_checkpoint());
            if let Err(error) = checkpointed {
                self.failed_tasks.record_result(MaintenanceTask::Checkpoint, Err(error));
            }
            let paged = self.move_to_page();
            self.failed_tasks.record_result(MaintenanceTask::Page, paged);
            if !self.failed_tasks.is_empty() {
                self.maintenance_after = Instant::now() + MAINTENANCE_RETRY_DELAY;
            }
            if was_healthy != self.failed_tasks.is_empty() {
                self.report_status();
            }
        }
        self.report_alarms();
    }

    /// Starts a new log file. If that fails, writes continue in the current one; only a failed sync is a
    /// failure of the log.
    fn rotate_log(&mut self) {
        match self.sync() {
            Ok(()) => {
                let begun = self.start_new_log();
                self.failed_tasks.record_result(MaintenanceTask::Rotate, begun);
            }
            Err(error) => self.enter_read_only(&error),
        }
    }

    fn start_new_log(&mut self) -> io::Result<()> {
        let defers_sync = matches!(self.options.sync, SyncMode::Interval(_));
        let sequence = self.log.sequence() + 1;
        let next = Log::create(self.directory.path(), sequence, self.state.revision, defers_sync)?;
        let old = std::mem::replace(&mut self.log, next);
        self.sealed.push(SealedLog {
            sequence: old.sequence(),
            base: old.base(),
            bytes: old.bytes(),
        });
        Ok(())
    }

    fn start_checkpoint(&mut self) -> io::Result<()> {
        // On a nearly full disk every freed byte is worth a snapshot.
        let bytes_min = match self.budget.is_disk_short() {
            true => 0,
            false => self.options.limits.checkpoint_bytes_min.max(self.snapshot_bytes),
        };
        let (newest_base, floor) = (self.log.base(), self.state.floor);
        if self.checkpoint.is_some()
            || checkpoint::n_logs_worth_a_snapshot(&self.sealed, newest_base, floor, bytes_min)
                .is_none()
        {
            return Ok(());
        }
        // A snapshot must not know more than the log.
        if !self.log.is_synced() {
            self.sync().inspect_err(|error| self.enter_read_only(error))?;
        }
        let directory = self.directory.path().to_owned();
        self.checkpoint = Some(Checkpoint::start(directory, self.state.clone())?);
        Ok(())
    }

    fn finish_checkpoint(&mut self) -> io::Result<()> {
        let Some(checkpoint) = self.checkpoint.take_if(|checkpoint| checkpoint.is_finished())
        else {
            return Ok(());
        };
        let (revision, bytes) = checkpoint.finish()?;
        self.snapshot_bytes = bytes;
        self.remove_obsolete_files(revision)?;
        self.failed_tasks.record_result(MaintenanceTask::Checkpoint, Ok(()));
        Ok(())
    }

    /// Removes the files that a snapshot of this revision replaces.
    pub(crate) fn remove_obsolete_files(&mut self, snapshot: Revision) -> io::Result<()> {
        let n_logs = checkpoint::n_obsolete_logs(&self.sealed, self.log.base(), snapshot);
        checkpoint::remove_obsolete(self.directory.path(), &mut self.sealed, n_logs, snapshot)
    }

    /// Moves the oldest history to files while it takes too much memory. On a nearly full disk the next
    /// compaction drops it instead.
    fn move_to_page(&mut self) -> io::Result<()> {
        let history = &self.state.history;
        if self.budget.is_disk_short() && !self.history_pager.exceeds_memory_limit(history) {
            return Ok(());
        }
        let before = self.history_pager.bytes();
        let paged = self.history_pager.move_to_page(&mut self.state.history);
        self.budget.subtract_free_bytes(self.history_pager.bytes().saturating_sub(before));
        if paged? {
            self.core.state.store(Arc::new(self.state.clone()));
        }
        Ok(())
    }

    fn report_failure(&self, failure: Option<Unavailable>) {
        *self.core.write_failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    /// Publishes alarms at once, so that a refused write and the status agree.
    fn report_alarms(&self) {
        let alarms = self.budget.alarms();
        if self.core.status.load().alarms != alarms {
            self.report_status();
        }
    }

    fn report_status(&self) {
        let logs: u64 = self.sealed.iter().map(|log| log.bytes).sum();
        let files = logs + self.log.bytes() + self.snapshot_bytes + self.history_pager.bytes();
        self.core.status.store(Arc::new(StoreStatus {
            alarms: self.budget.alarms(),
            degraded: self.failed_tasks.describe(),
            usage: Some(Usage {
                disk_bytes: files,
                history_memory_bytes: self.state.history.memory_bytes() as u64,
                ..self.budget.usage(&self.accounting)
            }),
        }));
    }
}
