//! The writer thread. For each batch of queued commands it does these steps in order:
//!
//! 1. Apply the commands to a copy of the state.
//! 2. Append their changes to the log as one frame, and sync it.
//! 3. Publish the new state to readers, and wake watches.
//! 4. Answer the callers, also the refused ones: the state that refused them must be durable first.
//! 5. Run maintenance.

mod apply_transaction;

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use store::{Delete, ExpectedKeyState, Key, ReadError, Revision, WriteError};
use tokio::sync::oneshot;

use crate::checkpoint::Checkpoint;
use crate::command_queue::{BatchWait, ReplySender, WriteCommand, WriterCommand};
use crate::engine::SharedState;
use crate::history_pager::HistoryPager;
use crate::history_retention::{RevisionAges, SpacePressure, is_history_over_limit};
use crate::locked_directory::LockedDirectory;
use crate::log_file::{FrameBuffer, LogFile};
use crate::maintenance_task::{FailedMaintenanceTasks, MaintenanceTask};
use crate::options::{Options, REVISION_GAP, SyncMode};
use crate::read_only_cause::ReadOnlyCause;
use crate::record::encode_compaction_floor;
use crate::recovery::{RecoveredStore, SealedLog};
use crate::space_budget::SpaceBudget;
use crate::store_state::StoreState;
use crate::usage_accounting::UsageAccounting;
use crate::version::Version;

/// Interval of expiry, compaction by age and progress of idle watches.
const TICK: Duration = Duration::from_secs(1);
/// Maximum expired keys that one tick deletes; the next batch deletes more.
const EXPIRED_MAX: usize = 1000;
/// In sync mode `interval`, the writer syncs a batch before publishing it if it would be this many revisions
/// ahead of the disk. So a crash always loses less than the gap.
const UNSYNCED_REVISIONS_MAX: u64 = REVISION_GAP / 2;

/// A batch waits for as many commands as the previous one had, for at most 1/4 of its duration.
const BATCH_WAIT_DIVISOR: u32 = 4;
/// Maximum wait for more commands.
const BATCH_WAIT_MAX: Duration = Duration::from_millis(1);

/// The state of the writer thread.
pub(crate) struct Writer {
    pub(crate) shared_state: Arc<SharedState>,
    pub(crate) directory: LockedDirectory,
    pub(crate) options: Options,
    /// Ahead of the published state while a batch is in progress.
    pub(crate) store_state: StoreState,
    pub(crate) current_log: LogFile,
    pub(crate) sealed_logs: Vec<SealedLog>,
    pub(crate) snapshot_bytes: u64,
    pub(crate) checkpoint: Option<Checkpoint>,
    pub(crate) expiry_deadlines: BTreeSet<(u64, Key)>,
    pub(crate) usage_accounting: UsageAccounting,
    pub(crate) space_budget: SpaceBudget,
    pub(crate) revision_ages: RevisionAges,
    pub(crate) history_pager: HistoryPager,
    pub(crate) failed_maintenance_tasks: FailedMaintenanceTasks,
    pub(crate) synced_revision: Revision,
    batch_wait: BatchWait,
    next_tick_at: Instant,
    pub(crate) next_sync_at: Option<Instant>,
    pub(crate) next_maintenance_at: Instant,
    /// Set while the log cannot be written: then the store is read-only.
    pub(crate) read_only_cause: Option<ReadOnlyCause>,
}

/// The keys that a batch has written so far, and the replies to send.
#[derive(Default)]
struct WriteBatch {
    written_keys: Vec<Key>,
    pending_replies: Vec<PendingReply>,
    tick_replies: Vec<oneshot::Sender<()>>,
    close_reply: Option<oneshot::Sender<()>>,
}

enum PendingReply {
    Write(ReplySender<Revision, WriteError>, Result<Revision, WriteError>),
    Compact(ReplySender<Revision, ReadError>, Result<Revision, ReadError>),
}

/// Closes the store however the thread ends.
struct CloseStoreOnDrop(Arc<SharedState>);

impl Drop for CloseStoreOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Writer {
    pub(crate) fn new(
        shared_state: Arc<SharedState>,
        directory: LockedDirectory,
        recovered: RecoveredStore,
        options: Options,
    ) -> Self {
        let RecoveredStore {
            store_state: state,
            new_log: log,
            sealed_logs,
            snapshot_bytes,
            usage_accounting: accounting,
            history_pager,
        } = recovered;
        let mut writer = Self {
            shared_state,
            directory,
            expiry_deadlines: collect_expiry_deadlines(&state),
            space_budget: SpaceBudget::new(&options.limits),
            options,
            synced_revision: state.revision,
            store_state: state,
            current_log: log,
            sealed_logs,
            snapshot_bytes,
            checkpoint: None,
            usage_accounting: accounting,
            revision_ages: RevisionAges::default(),
            history_pager,
            failed_maintenance_tasks: FailedMaintenanceTasks::default(),
            batch_wait: BatchWait::default(),
            next_tick_at: Instant::now() + TICK,
            next_sync_at: None,
            next_maintenance_at: Instant::now(),
            read_only_cause: None,
        };
        writer.refresh_usage();
        writer
    }

    /// Runs until a close command.
    pub(crate) fn run(mut self) {
        let guard = CloseStoreOnDrop(self.shared_state.clone());
        let mut frame = FrameBuffer::new();
        loop {
            let deadline =
                self.next_sync_at.map_or(self.next_tick_at, |sync| sync.min(self.next_tick_at));
            let commands = self.shared_state.command_queue.take_batch(deadline, &self.batch_wait);
            let is_time = Instant::now() >= self.next_tick_at;
            if is_time
                || commands.iter().any(|command| matches!(command, WriterCommand::Tick { .. }))
            {
                self.try_leave_read_only();
                self.refresh_usage();
            }
            let n_commands = commands.len();
            let mut batch = WriteBatch::default();
            for command in commands {
                self.apply_command(command, &mut batch, &mut frame);
            }
            let is_tick = Instant::now() >= self.next_tick_at || !batch.tick_replies.is_empty();
            if is_tick {
                self.next_tick_at = Instant::now() + TICK;
                self.delete_expired_keys(&mut batch, &mut frame);
            }
            if is_tick
                || is_history_over_limit(
                    &self.options.limits,
                    &self.store_state,
                    &self.usage_accounting,
                )
            {
                self.compact_by_retention(&mut frame);
            }
            let is_close = batch.close_reply.is_some();
            let began = Instant::now();
            self.commit_batch(&mut frame, is_close)
                .unwrap_or_else(|error| self.enter_read_only(&error));
            frame.clear();
            let time_max = (began.elapsed() / BATCH_WAIT_DIVISOR).min(BATCH_WAIT_MAX);
            self.batch_wait =
                BatchWait { n_commands_to_wait_for: n_commands, wait_time_max: time_max };
            self.publish_state(&batch, is_tick);
            let WriteBatch { pending_replies: replies, tick_replies, close_reply, .. } = batch;
            replies.into_iter().for_each(|answer| answer.send(self.read_only_cause.as_ref()));
            if let Some(reply) = close_reply {
                self.close();
                drop(guard);
                reply.send(()).ok();
                return;
            }
            if !tick_replies.is_empty() {
                self.next_maintenance_at = Instant::now();
            }
            self.run_maintenance();
            for tick in tick_replies {
                tick.send(()).ok();
            }
        }
    }

    fn apply_command(
        &mut self,
        command: WriterCommand,
        batch: &mut WriteBatch,
        frame: &mut FrameBuffer,
    ) {
        match command {
            WriterCommand::Write { write, reply, _write_permits } => {
                let result = self.write(&write, batch, frame);
                self.usage_accounting.record_new_changes(&self.store_state);
                batch.pending_replies.push(PendingReply::Write(reply, result));
            }
            WriterCommand::Compact { revision, reply } => {
                let result = self.compact(revision, frame);
                batch.pending_replies.push(PendingReply::Compact(reply, result));
            }
            WriterCommand::Tick { reply } => batch.tick_replies.push(reply),
            WriterCommand::Close { reply } => batch.close_reply = Some(reply),
        }
    }

    fn compact(
        &mut self,
        requested: Revision,
        frame: &mut FrameBuffer,
    ) -> Result<Revision, ReadError> {
        let current = self.store_state.revision;
        if requested > current {
            return Err(ReadError::Future { requested, current });
        }
        if requested > self.store_state.compaction_floor && self.read_only_cause.is_none() {
            self.store_state.compact(requested);
            encode_compaction_floor(frame.records_mut(), requested);
        }
        Ok(self.store_state.compaction_floor)
    }

    /// Deletes the keys whose time to live has passed, up to [`EXPIRED_MAX`].
    fn delete_expired_keys(&mut self, batch: &mut WriteBatch, frame: &mut FrameBuffer) {
        let now_ms = self.options.clock.now_ms();
        for _ in 0..EXPIRED_MAX {
            let Some((deadline, key)) = self.expiry_deadlines.first() else { return };
            if *deadline > now_ms || self.read_only_cause.is_some() {
                return;
            }
            let key = key.clone();
            let Some(version) = self.store_state.version_tree.get(&key) else {
                // INVARIANT: a deadline is that of a current version, so this does not happen.
                self.expiry_deadlines.pop_first();
                continue;
            };
            let expect = ExpectedKeyState::At(version.mod_rev);
            let transaction =
                Delete { key, expected_state: expect, key_group_revision_action: None }.into();
            let delete = WriteCommand { transaction, expires_at_ms: None };
            let deleted = self.write(&delete, batch, frame);
            self.usage_accounting.record_new_changes(&self.store_state);
            if deleted.is_err() {
                return;
            }
        }
        self.next_tick_at = Instant::now();
    }

    /// Raises the compaction floor to [`RevisionAges::target_compaction_floor`].
    fn compact_by_retention(&mut self, frame: &mut FrameBuffer) {
        let pressure = SpacePressure {
            is_disk_space_short: self.space_budget.is_disk_space_short(),
            is_history_memory_short: self
                .failed_maintenance_tasks
                .is_task_failing(MaintenanceTask::Page)
                && self.history_pager.exceeds_memory_limit(&self.store_state.history),
        };
        let (limits, now_ms) = (&self.options.limits, self.options.clock.now_ms());
        let floor = self.revision_ages.target_compaction_floor(
            limits,
            now_ms,
            &self.store_state,
            &self.usage_accounting,
            pressure,
        );
        // Refused only for a revision in the future, which this is not.
        self.compact(floor, frame).ok();
    }

    /// Appends the batch to the log, and syncs it if a sync is due.
    fn commit_batch(&mut self, frame: &mut FrameBuffer, is_close: bool) -> io::Result<()> {
        if self.read_only_cause.is_some() {
            return Ok(());
        }
        if !frame.is_empty() {
            self.current_log.append_frame(frame)?;
            self.space_budget.subtract_free_bytes(frame.len());
        }
        if !self.current_log.is_synced() && self.is_sync_due(is_close) {
            self.sync()?;
        }
        self.current_log.mark_acknowledged();
        self.usage_accounting.commit_batch(self.store_state.compaction_floor);
        Ok(())
    }

    fn is_sync_due(&mut self, is_close: bool) -> bool {
        let now = Instant::now();
        match self.options.sync_mode {
            SyncMode::Always => true,
            SyncMode::Interval(interval) => {
                let unsynced = self
                    .store_state
                    .revision
                    .as_u64()
                    .saturating_sub(self.synced_revision.as_u64());
                let due = *self.next_sync_at.get_or_insert(now + interval);
                is_close || now >= due || unsynced >= UNSYNCED_REVISIONS_MAX
            }
        }
    }

    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.current_log.sync()?;
        self.synced_revision = self.store_state.revision;
        self.next_sync_at = None;
        Ok(())
    }

    /// Publishes the state to readers, then wakes watches.
    fn publish_state(&self, batch: &WriteBatch, is_tick: bool) {
        let before = self.shared_state.published_state.load();
        if before.revision != self.store_state.revision
            || before.compaction_floor != self.store_state.compaction_floor
        {
            self.shared_state.published_state.store(Arc::new(self.store_state.clone()));
        }
        if self.read_only_cause.is_none() && !batch.written_keys.is_empty() {
            let written = batch.written_keys.iter().map(|key| (key, self.store_state.revision));
            self.shared_state.watch_notifier.notify_watches_of_keys(written);
        }
        if is_tick {
            self.shared_state.watch_notifier.notify_all_watches(self.store_state.revision);
        }
    }

    /// Cancels a running checkpoint. The last frame is synced already.
    fn close(mut self) {
        let checkpoint = self.checkpoint.take();
        if let Some((revision, _bytes)) = checkpoint.and_then(Checkpoint::cancel_snapshot) {
            // The next snapshot removes files that cannot be removed now.
            self.remove_obsolete_files(revision).ok();
        }
    }
}

/// Collects the deadlines of all keys with a time to live, earliest first.
pub(crate) fn collect_expiry_deadlines(state: &StoreState) -> BTreeSet<(u64, Key)> {
    let expiry = |version: &Arc<Version>| Some((version.expires_at_ms?, version.key.clone()));
    state.version_tree.iter_from("").filter_map(expiry).collect()
}

impl PendingReply {
    /// Answers the caller; with the failure if the batch failed.
    fn send(self, failure: Option<&ReadOnlyCause>) {
        // The caller may have gone away.
        match self {
            Self::Write(reply, result) => {
                reply.send(failure.map_or(result, |failure| Err(failure.to_write_error()))).ok();
            }
            Self::Compact(reply, result) => {
                let failure = failure.map(|failure| failure.unavailable_error.clone());
                reply.send(failure.map_or(result, |failure| Err(failure.into()))).ok();
            }
        }
    }
}
