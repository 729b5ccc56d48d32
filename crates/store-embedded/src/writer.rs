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

use crate::budget::Budget;
use crate::checkpoint::Checkpoint;
use crate::chores::{Chore, Troubles};
use crate::directory::LockedDirectory;
use crate::engine::Core;
use crate::ledger::Ledger;
use crate::log::{Frame, Log};
use crate::options::{Options, REVISION_GAP, SyncMode};
use crate::pager::Pager;
use crate::queue::{Command, Gather, Reply, Write};
use crate::record::encode_compact;
use crate::recovery::{Recovered, SealedLog};
use crate::retention::{Pressure, Retention};
use crate::state::State;
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
    pub(crate) core: Arc<Core>,
    pub(crate) directory: LockedDirectory,
    pub(crate) options: Options,
    /// Ahead of what readers see while a batch is on its way.
    pub(crate) state: State,
    pub(crate) log: Log,
    pub(crate) sealed: Vec<SealedLog>,
    pub(crate) snapshot_bytes: u64,
    pub(crate) checkpoint: Option<Checkpoint>,
    pub(crate) expiries: BTreeSet<(u64, Key)>,
    pub(crate) ledger: Ledger,
    pub(crate) budget: Budget,
    pub(crate) retention: Retention,
    pub(crate) pager: Pager,
    pub(crate) troubles: Troubles,
    pub(crate) synced: Revision,
    gather: Gather,
    next_tick: Instant,
    pub(crate) next_sync: Option<Instant>,
    pub(crate) tidy_after: Instant,
    /// Set while the log can not be written: then the store only reads.
    pub(crate) failure: Option<Unavailable>,
}

/// What a batch has written so far, and the answers it will give.
#[derive(Default)]
struct Batch {
    written: Vec<Key>,
    answers: Vec<Answer>,
    ticks: Vec<oneshot::Sender<()>>,
    close: Option<oneshot::Sender<()>>,
}

enum Answer {
    Write(Reply<Revision, WriteError>, Result<Revision, WriteError>),
    Compact(Reply<Revision, ReadError>, Result<Revision, ReadError>),
}

/// Whatever ends the thread, callers learn of it.
struct CloseOnDrop(Arc<Core>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Writer {
    pub(crate) fn new(
        core: Arc<Core>,
        directory: LockedDirectory,
        recovered: Recovered,
        options: Options,
    ) -> Self {
        let Recovered { state, log, sealed, snapshot_bytes, ledger, pager } = recovered;
        let mut writer = Self {
            core,
            directory,
            expiries: expiries(&state),
            budget: Budget::new(&options.limits),
            options,
            synced: state.revision,
            state,
            log,
            sealed,
            snapshot_bytes,
            checkpoint: None,
            ledger,
            retention: Retention::default(),
            pager,
            troubles: Troubles::default(),
            gather: Gather::default(),
            next_tick: Instant::now() + TICK,
            next_sync: None,
            tidy_after: Instant::now(),
            failure: None,
        };
        writer.look_around();
        writer
    }

    /// Serves commands until one says to close.
    pub(crate) fn run(mut self) {
        let guard = CloseOnDrop(self.core.clone());
        let mut frame = Frame::new();
        loop {
            let deadline = self.next_sync.map_or(self.next_tick, |sync| sync.min(self.next_tick));
            let commands = self.core.queue.take(deadline, &self.gather);
            let is_time = Instant::now() >= self.next_tick;
            if is_time || commands.iter().any(|command| matches!(command, Command::Tick { .. })) {
                self.revive();
                self.look_around();
            }
            let n_commands = commands.len();
            let mut batch = Batch::default();
            for command in commands {
                self.apply(command, &mut batch, &mut frame);
            }
            let is_tick = Instant::now() >= self.next_tick || !batch.ticks.is_empty();
            if is_tick {
                self.next_tick = Instant::now() + TICK;
                self.expire(&mut batch, &mut frame);
            }
            if is_tick || Retention::is_due(&self.options.limits, &self.state, &self.ledger) {
                self.compact_by_retention(&mut frame);
            }
            let is_close = batch.close.is_some();
            let began = Instant::now();
            self.commit(&mut frame, is_close).unwrap_or_else(|error| self.fail(&error));
            frame.clear();
            let time_max = (began.elapsed() / GATHER_PART).min(GATHER_MAX);
            self.gather = Gather { n_commands, time_max };
            self.publish(&batch, is_tick);
            let Batch { answers, ticks, close, .. } = batch;
            answers.into_iter().for_each(|answer| answer.send(self.failure.as_ref()));
            if let Some(close) = close {
                self.close();
                drop(guard);
                close.send(()).ok();
                return;
            }
            if !ticks.is_empty() {
                self.tidy_after = Instant::now();
            }
            self.tidy();
            for tick in ticks {
                tick.send(()).ok();
            }
        }
    }

    fn apply(&mut self, command: Command, batch: &mut Batch, frame: &mut Frame) {
        match command {
            Command::Write { write, reply, _room } => {
                let result = self.write(&write, batch, frame);
                self.ledger.absorb(&self.state);
                batch.answers.push(Answer::Write(reply, result));
            }
            Command::Compact { revision, reply } => {
                let result = self.compact(revision, frame);
                batch.answers.push(Answer::Compact(reply, result));
            }
            Command::Tick { reply } => batch.ticks.push(reply),
            Command::Close { reply } => batch.close = Some(reply),
        }
    }

    fn compact(&mut self, requested: Revision, frame: &mut Frame) -> Result<Revision, ReadError> {
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
    fn expire(&mut self, batch: &mut Batch, frame: &mut Frame) {
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
            let delete = Write { transaction, expires_at_ms: None };
            let deleted = self.write(&delete, batch, frame);
            self.ledger.absorb(&self.state);
            if deleted.is_err() {
                return;
            }
        }
        self.next_tick = Instant::now();
    }

    /// Raises the floor to what [`Retention`] calls for.
    fn compact_by_retention(&mut self, frame: &mut Frame) {
        let pressure = Pressure {
            is_disk_short: self.budget.is_disk_short(),
            is_memory_short: self.troubles.is_failing(Chore::Page)
                && self.pager.is_overdue(&self.state.history),
        };
        let (limits, now_ms) = (&self.options.limits, self.options.clock.now_ms());
        let floor = self.retention.floor(limits, now_ms, &self.state, &self.ledger, pressure);
        // Refused only for a revision in the future, which this is not.
        self.compact(floor, frame).ok();
    }

    /// Makes the batch durable, or puts that off if the operator wants it so.
    fn commit(&mut self, frame: &mut Frame, is_close: bool) -> io::Result<()> {
        if self.failure.is_some() {
            return Ok(());
        }
        if !frame.is_empty() {
            self.log.append(frame)?;
            self.budget.spend(frame.len());
        }
        if !self.log.is_synced() && self.is_sync_due(is_close) {
            self.sync()?;
        }
        self.log.acknowledge();
        self.ledger.commit(self.state.floor);
        Ok(())
    }

    fn is_sync_due(&mut self, is_close: bool) -> bool {
        let now = Instant::now();
        match self.options.sync {
            SyncMode::Always => true,
            SyncMode::Interval(interval) => {
                let unsynced = self.state.revision.number().saturating_sub(self.synced.number());
                let due = *self.next_sync.get_or_insert(now + interval);
                is_close || now >= due || unsynced >= UNSYNCED_REVISIONS_MAX
            }
        }
    }

    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.log.sync()?;
        self.synced = self.state.revision;
        self.next_sync = None;
        Ok(())
    }

    /// Shows the state to readers, then wakes watches.
    fn publish(&self, batch: &Batch, is_tick: bool) {
        let before = self.core.state.load();
        if before.revision != self.state.revision || before.floor != self.state.floor {
            self.core.state.store(Arc::new(self.state.clone()));
        }
        if self.failure.is_none() && !batch.written.is_empty() {
            self.core.wakers.wake(&batch.written, self.state.revision);
        }
        if is_tick {
            self.core.wakers.wake_all(self.state.revision);
        }
    }

    /// The last frame is synced by now; what is left is to let go of the directory.
    fn close(mut self) {
        let checkpoint = self.checkpoint.take();
        if let Some((revision, _bytes)) = checkpoint.and_then(Checkpoint::cancel) {
            // What can not be removed now is removed after the next snapshot.
            self.remove_superfluous(revision).ok();
        }
    }
}

/// The keys that expire, earliest first.
pub(crate) fn expiries(state: &State) -> BTreeSet<(u64, Key)> {
    let expiry = |version: &Arc<Version>| Some((version.expires_at_ms?, version.key.clone()));
    state.tree.iter_from("").filter_map(expiry).collect()
}

impl Answer {
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
