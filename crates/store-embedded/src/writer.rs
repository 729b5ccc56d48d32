//! The one thread that writes.
//!
//! It takes all commands that wait, applies them in order to a copy of the state, appends what they
//! wrote as one frame and syncs it. Then readers get the copy, watches are woken, and only then callers
//! are answered, the refused ones included: what refused them must be durable before it is told.

mod transaction;

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use store::{Delete, Expect, Key, ReadError, Revision, Unavailable, WriteError};
use tokio::sync::oneshot;

use crate::checkpoint::Checkpoint;
use crate::command_queue::{BatchWait, Command, Reply, WriteCommand};
use crate::directory::LockedDirectory;
use crate::engine::SharedState;
use crate::history_pager::HistoryPager;
use crate::log::{FrameBuffer, Log};
use crate::maintenance_task::{FailedTasks, MaintenanceTask};
use crate::options::{Options, REVISION_GAP, SyncMode};
use crate::record::encode_compact;
use crate::recovery::{RecoveredStore, SealedLog};
use crate::retention::{HistoryRetention, SpacePressure};
use crate::space_budget::SpaceBudget;
use crate::store_state::StoreState;
use crate::usage_accounting::UsageAccounting;
use crate::version::Version;

/// How often expiry, compaction by age and the progress of idle watches are looked after.
const TICK: Duration = Duration::from_secs(1);
/// A tick deletes at most so many expired keys; the rest follows in the next batch.
const EXPIRED_MAX: usize = 1000;
/// A run that does not sync every write syncs a batch, before anybody sees it, that would bring it so
/// many revisions ahead of the disk. So what a crash can lose is always less than the gap.
const UNSYNCED_REVISIONS_MAX: u64 = REVISION_GAP / 2;

/// A batch waits for as many commands as the one before had, but only this part of what that one took.
const GATHER_PART: u32 = 4;
/// And never longer than this.
const GATHER_MAX: Duration = Duration::from_millis(1);

/// Everything that belongs to the thread.
pub(crate) struct Writer {
    pub(crate) core: Arc<SharedState>,
    pub(crate) directory: LockedDirectory,
    pub(crate) options: Options,
    /// Ahead of what readers see while a batch is on its way.
    pub(crate) state: StoreState,
    pub(crate) log: Log,
    pub(crate) sealed: Vec<SealedLog>,
    pub(crate) snapshot_bytes: u64,
    pub(crate) checkpoint: Option<Checkpoint>,
    pub(crate) expiries: BTreeSet<(u64, Key)>,
    pub(crate) accounting: UsageAccounting,
    pub(crate) budget: SpaceBudget,
    pub(crate) retention: HistoryRetention,
    pub(crate) history_pager: HistoryPager,
    pub(crate) failed_tasks: FailedTasks,
    pub(crate) synced_revision: Revision,
    batch_wait: BatchWait,
    next_tick: Instant,
    pub(crate) next_sync: Option<Instant>,
    pub(crate) maintenance_after: Instant,
    /// Set while the log can not be written: then the store only reads.
    pub(crate) failure: Option<Unavailable>,
}

/// What a batch has written so far, and the replies it will give.
#[derive(Default)]
struct WriteBatch {
    written: Vec<Key>,
    replies: Vec<PendingReply>,
    ticks: Vec<oneshot::Sender<()>>,
    close: Option<oneshot::Sender<()>>,
}

enum PendingReply {
    Write(Reply<Revision, WriteError>, Result<Revision, WriteError>),
    Compact(Reply<Revision, ReadError>, Result<Revision, ReadError>),
}

/// Whatever ends the thread, callers learn of it.
struct CloseOnDrop(Arc<SharedState>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Writer {
    pub(crate) fn new(
        core: Arc<SharedState>,
        directory: LockedDirectory,
        recovered: RecoveredStore,
        options: Options,
    ) -> Self {
        let RecoveredStore { state, log, sealed, snapshot_bytes, accounting, history_pager } =
            recovered;
        let mut writer = Self {
            core,
            directory,
            expiries: expiries(&state),
            budget: SpaceBudget::new(&options.limits),
            options,
            synced_revision: state.revision,
            state,
            log,
            sealed,
            snapshot_bytes,
            checkpoint: None,
            accounting,
            retention: HistoryRetention::default(),
            history_pager,
            failed_tasks: FailedTasks::default(),
            batch_wait: BatchWait::default(),
            next_tick: Instant::now() + TICK,
            next_sync: None,
            maintenance_after: Instant::now(),
            failure: None,
        };
        writer.refresh_usage();
        writer
    }

    /// Serves commands until one says to close.
    pub(crate) fn run(mut self) {
        let guard = CloseOnDrop(self.core.clone());
        let mut frame = FrameBuffer::new();
        loop {
            let deadline = self.next_sync.map_or(self.next_tick, |sync| sync.min(self.next_tick));
            let commands = self.core.queue.take_batch(deadline, &self.batch_wait);
            let is_time = Instant::now() >= self.next_tick;
            if is_time || commands.iter().any(|command| matches!(command, Command::Tick { .. })) {
                self.retry_log();
                self.refresh_usage();
            }
            let n_commands = commands.len();
            let mut batch = WriteBatch::default();
            for command in commands {
                self.apply_command(command, &mut batch, &mut frame);
            }
            let is_tick = Instant::now() >= self.next_tick || !batch.ticks.is_empty();
            if is_tick {
                self.next_tick = Instant::now() + TICK;
                self.delete_expired(&mut batch, &mut frame);
            }
            if is_tick
                || HistoryRetention::is_over_limit(
                    &self.options.limits,
                    &self.state,
                    &self.accounting,
                )
            {
                self.compact_by_retention(&mut frame);
            }
            let is_close = batch.close.is_some();
            let began = Instant::now();
            self.commit(&mut frame, is_close).unwrap_or_else(|error| self.enter_read_only(&error));
            frame.clear();
            let time_max = (began.elapsed() / GATHER_PART).min(GATHER_MAX);
            self.batch_wait = BatchWait { n_commands, time_max };
            self.publish(&batch, is_tick);
            let WriteBatch { replies, ticks, close, .. } = batch;
            replies.into_iter().for_each(|answer| answer.send(self.failure.as_ref()));
            if let Some(close) = close {
                self.close();
                drop(guard);
                close.send(()).ok();
                return;
            }
            if !ticks.is_empty() {
                self.maintenance_after = Instant::now();
            }
            self.run_maintenance();
            for tick in ticks {
                tick.send(()).ok();
            }
        }
    }

    fn apply_command(&mut self, command: Command, batch: &mut WriteBatch, frame: &mut FrameBuffer) {
        match command {
            Command::Write { write, reply, _write_permits } => {
                let result = self.write(&write, batch, frame);
                self.accounting.record_new_changes(&self.state);
                batch.replies.push(PendingReply::Write(reply, result));
            }
            Command::Compact { revision, reply } => {
                let result = self.compact(revision, frame);
                batch.replies.push(PendingReply::Compact(reply, result));
            }
            Command::Tick { reply } => batch.ticks.push(reply),
            Command::Close { reply } => batch.close = Some(reply),
        }
    }

    fn compact(
        &mut self,
        requested: Revision,
        frame: &mut FrameBuffer,
    ) -> Result<Revision, ReadError> {
        let current = self.state.revision;
        if requested > current {
            return Err(ReadError::Future { requested, current });
        }
        if requested > self.state.floor && self.failure.is_none() {
            self.state.compact(requested);
            encode_compact(frame.records(), requested);
        }
        Ok(self.state.floor)
    }

    /// Deletes the keys whose time is over.
    fn delete_expired(&mut self, batch: &mut WriteBatch, frame: &mut FrameBuffer) {
        let now_ms = self.options.clock.now_ms();
        for _ in 0..EXPIRED_MAX {
            let Some((deadline, key)) = self.expiries.first() else { return };
            if *deadline > now_ms || self.failure.is_some() {
                return;
            }
            let key = key.clone();
            let Some(version) = self.state.tree.get(&key) else {
                // INVARIANT: a deadline is that of a current version, so this does not happen.
                self.expiries.pop_first();
                continue;
            };
            let expect = Expect::At(version.mod_rev);
            let transaction = Delete { key, expect, mark: None }.into();
            let delete = WriteCommand { transaction, expires_at_ms: None };
            let deleted = self.write(&delete, batch, frame);
            self.accounting.record_new_changes(&self.state);
            if deleted.is_err() {
                return;
            }
        }
        self.next_tick = Instant::now();
    }

    /// Raises the floor to what [`HistoryRetention`] calls for.
    fn compact_by_retention(&mut self, frame: &mut FrameBuffer) {
        let pressure = SpacePressure {
            is_disk_short: self.budget.is_disk_short(),
            is_memory_short: self.failed_tasks.is_failing(MaintenanceTask::Page)
                && self.history_pager.exceeds_memory_limit(&self.state.history),
        };
        let (limits, now_ms) = (&self.options.limits, self.options.clock.now_ms());
        let floor =
            self.retention.target_floor(limits, now_ms, &self.state, &self.accounting, pressure);
        // Refused only for a revision in the future, which this is not.
        self.compact(floor, frame).ok();
    }

    /// Makes the batch durable, or puts that off if the operator wants it so.
    fn commit(&mut self, frame: &mut FrameBuffer, is_close: bool) -> io::Result<()> {
        if self.failure.is_some() {
            return Ok(());
        }
        if !frame.is_empty() {
            self.log.append(frame)?;
            self.budget.subtract_free_bytes(frame.len());
        }
        if !self.log.is_synced() && self.is_sync_due(is_close) {
            self.sync()?;
        }
        self.log.acknowledge();
        self.accounting.commit(self.state.floor);
        Ok(())
    }

    fn is_sync_due(&mut self, is_close: bool) -> bool {
        let now = Instant::now();
        match self.options.sync {
            SyncMode::Always => true,
            SyncMode::Interval(interval) => {
                let unsynced =
                    self.state.revision.number().saturating_sub(self.synced_revision.number());
                let due = *self.next_sync.get_or_insert(now + interval);
                is_close || now >= due || unsynced >= UNSYNCED_REVISIONS_MAX
            }
        }
    }

    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.log.sync()?;
        self.synced_revision = self.state.revision;
        self.next_sync = None;
        Ok(())
    }

    /// Shows the state to readers, then wakes watches.
    fn publish(&self, batch: &WriteBatch, is_tick: bool) {
        let before = self.core.state.load();
        if before.revision != self.state.revision || before.floor != self.state.floor {
            self.core.state.store(Arc::new(self.state.clone()));
        }
        if self.failure.is_none() && !batch.written.is_empty() {
            let written = batch.written.iter().map(|key| (key, self.state.revision));
            self.core.watch_notifier.notify(written);
        }
        if is_tick {
            self.core.watch_notifier.notify_all(self.state.revision);
        }
    }

    /// The last frame is synced_revision by now; what is left is to let go of the directory.
    fn close(mut self) {
        let checkpoint = self.checkpoint.take();
        if let Some((revision, _bytes)) = checkpoint.and_then(Checkpoint::cancel) {
            // What can not be removed now is removed after the next snapshot.
            self.remove_obsolete_files(revision).ok();
        }
    }
}

/// The keys that expire, earliest first.
pub(crate) fn expiries(state: &StoreState) -> BTreeSet<(u64, Key)> {
    let expiry = |version: &Arc<Version>| Some((version.expires_at_ms?, version.key.clone()));
    state.tree.iter_from("").filter_map(expiry).collect()
}

impl PendingReply {
    /// Answers the caller. When the batch has failed, nothing that it would have said is true.
    fn send(self, failure: Option<&Unavailable>) {
        let failure = failure.cloned();
        // A caller that has gone away does not want the answer.
        match self {
            Self::Write(reply, result) => {
                reply.send(failure.map_or(result, |failure| Err(failure.into()))).ok();
            }
            Self::Compact(reply, result) => {
                reply.send(failure.map_or(result, |failure| Err(failure.into()))).ok();
            }
        }
    }
}
