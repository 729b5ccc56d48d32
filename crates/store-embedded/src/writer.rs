//! The one thread that writes.
//!
//! It takes all commands that wait, applies them in order to a copy of the state, appends what they
//! wrote as one frame and syncs it. Then readers get the copy, watches are woken, and only then callers
//! are answered, the refused ones included: what refused them must be durable before it is told.

mod transaction;

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use store::{Delete, Expect, Key, ReadError, Revision, Unavailable, WriteError};
use tokio::sync::oneshot;

use crate::checkpoint::{self, Checkpoint};
use crate::engine::Core;
use crate::files::{self, Directory};
use crate::log::{Frame, Log};
use crate::options::{Options, REVISION_GAP, SyncMode};
use crate::page::Page;
use crate::queue::{Command, Gather, Reply, Write};
use crate::record::encode_compact;
use crate::recovery::{Recovered, SealedLog};
use crate::state::State;
use crate::version::Version;

/// How often expiry, compaction by age and the progress of idle watches are looked after.
const TICK: Duration = Duration::from_secs(1);
/// A tick deletes at most so many expired keys; the rest follows in the next batch.
const EXPIRED_MAX: usize = 1000;
/// The age of the history is known to this part of it.
const SAMPLES_PER_AGE: u64 = 30;
/// A run that does not sync every write syncs a batch, before anybody sees it, that would bring it so
/// many revisions ahead of the disk. So what a crash can lose is always less than the gap.
const UNSYNCED_REVISIONS_MAX: u64 = REVISION_GAP / 2;

/// A batch waits for as many commands as the one before had, but only this part of what that one took.
const GATHER_PART: u32 = 4;
/// And never longer than this.
const GATHER_MAX: Duration = Duration::from_millis(1);
/// When a snapshot or a page could not be written, so long nothing of the kind is tried.
const TIDY_PAUSE: Duration = Duration::from_secs(10);

/// Everything that belongs to the thread.
pub(crate) struct Writer {
    core: Arc<Core>,
    directory: Directory,
    options: Options,
    /// Ahead of what readers see while a batch is on its way.
    state: State,
    log: Log,
    sealed: Vec<SealedLog>,
    snapshot_bytes: u64,
    checkpoint: Option<Checkpoint>,
    expiries: BTreeSet<(u64, Key)>,
    /// When the store was at which revision, oldest first.
    samples: VecDeque<(u64, Revision)>,
    synced: Revision,
    gather: Gather,
    next_tick: Instant,
    next_sync: Option<Instant>,
    tidy_after: Instant,
    /// The number of the first log of this run.
    run: u64,
    n_pages: u64,
    /// Set when the log can not be written: from then on the store only reads.
    failure: Option<Unavailable>,
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
        directory: Directory,
        recovered: Recovered,
        options: Options,
    ) -> Self {
        let Recovered { state, log, sealed, snapshot_bytes } = recovered;
        let run = log.sequence();
        let expiry = |version: &Arc<Version>| Some((version.expires_at_ms?, version.key.clone()));
        Self {
            core,
            directory,
            options,
            expiries: state.tree.iter_from("").filter_map(expiry).collect(),
            synced: state.revision,
            state,
            log,
            sealed,
            snapshot_bytes,
            checkpoint: None,
            samples: VecDeque::new(),
            gather: Gather::default(),
            next_tick: Instant::now() + TICK,
            next_sync: None,
            tidy_after: Instant::now(),
            run,
            n_pages: 0,
            failure: None,
        }
    }

    /// Serves commands until one says to close.
    pub(crate) fn run(mut self) {
        let guard = CloseOnDrop(self.core.clone());
        let mut frame = Frame::new();
        loop {
            let deadline = self.next_sync.map_or(self.next_tick, |sync| sync.min(self.next_tick));
            let commands = self.core.queue.take(deadline, &self.gather);
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
            if is_tick || self.is_history_too_long() {
                self.compact_by_age(&mut frame);
            }
            let is_close = batch.close.is_some();
            let began = Instant::now();
            self.commit(&mut frame, is_close).unwrap_or_else(|error| self.fail(&error));
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
            let write = Write { transaction, expires_at_ms: None };
            if self.write(&write, batch, frame).is_err() {
                return;
            }
        }
        self.next_tick = Instant::now();
    }

    /// Whether the history must not wait for the next tick. Some slack spares the log most of the
    /// records that say so.
    fn is_history_too_long(&self) -> bool {
        let max = self.options.limits.history_revisions_max;
        self.state.history.len() as u64 > max.saturating_add(max / 8)
    }

    /// Raises the floor to what is both old enough and not among the newest.
    fn compact_by_age(&mut self, frame: &mut Frame) {
        let limits = &self.options.limits;
        let now_ms = self.options.clock.now_ms();
        let age_ms = u64::try_from(limits.history_age.as_millis()).unwrap_or(u64::MAX);
        let current = self.state.revision;
        if self
            .samples
            .back()
            .is_none_or(|(at_ms, _)| now_ms.saturating_sub(*at_ms) >= age_ms / SAMPLES_PER_AGE)
        {
            self.samples.push_back((now_ms, current));
        }
        let is_old = |(at_ms, _): &(u64, Revision)| now_ms.saturating_sub(*at_ms) >= age_ms;
        // The newest sample that is old enough stays, because it goes on to be so.
        while self.samples.get(1).is_some_and(is_old) {
            self.samples.pop_front();
        }
        let known = self.samples.front().filter(|sample| is_old(sample));
        let mut floor = known.map_or(self.state.floor, |(_, revision)| *revision);
        let newest = |n: u64| Revision::new(current.number().saturating_sub(n));
        floor = floor.min(newest(limits.history_revisions_min));
        floor = floor.max(newest(limits.history_revisions_max));
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
            frame.clear();
        }
        if self.log.is_synced() {
            return Ok(());
        }
        let now = Instant::now();
        let is_due = match self.options.sync {
            SyncMode::Always => true,
            SyncMode::Interval(interval) => {
                let unsynced = self.state.revision.number() - self.synced.number();
                let due = *self.next_sync.get_or_insert(now + interval);
                is_close || now >= due || unsynced >= UNSYNCED_REVISIONS_MAX
            }
        };
        if is_due { self.sync() } else { Ok(()) }
    }

    fn sync(&mut self) -> io::Result<()> {
        self.log.sync()?;
        self.synced = self.state.revision;
        self.next_sync = None;
        Ok(())
    }

    /// From now on the store only reads: what readers see stays, what was on its way is refused.
    fn fail(&mut self, error: &io::Error) {
        let reason = format!("it can not write its log and only reads: {error}");
        let failure = Unavailable { reason: reason.into() };
        self.report(Some(failure.clone()));
        self.failure = Some(failure);
        self.next_sync = None;
        self.state = State::clone(&self.core.state.load());
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

    /// What can be done after callers were answered: new log files, snapshots, pages.
    fn tidy(&mut self) {
        if self.failure.is_some() {
            return;
        }
        if self.log.bytes() >= self.options.limits.log_file_bytes_max {
            self.rotate().unwrap_or_else(|error| self.fail(&error));
        }
        if Instant::now() < self.tidy_after {
            return;
        }
        let result = self.finish_checkpoint().and_then(|()| self.start_checkpoint());
        if let Err(error) = result.and_then(|()| self.page_out()) {
            self.tidy_after = Instant::now() + TIDY_PAUSE;
            let reason = format!("it can not write snapshots or history: {error}").into();
            self.report(Some(Unavailable { reason }));
        }
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.sync()?;
        let is_lazy = matches!(self.options.sync, SyncMode::Interval(_));
        let sequence = self.log.sequence() + 1;
        let next = Log::create(self.directory.path(), sequence, self.state.revision, is_lazy)?;
        let old = std::mem::replace(&mut self.log, next);
        self.sealed.push(SealedLog {
            sequence: old.sequence(),
            base: old.base(),
            bytes: old.bytes(),
        });
        Ok(())
    }

    fn start_checkpoint(&mut self) -> io::Result<()> {
        let bytes_min = self.options.limits.checkpoint_bytes_min.max(self.snapshot_bytes);
        let (newest_base, floor) = (self.log.base(), self.state.floor);
        if self.checkpoint.is_some()
            || checkpoint::worthwhile(&self.sealed, newest_base, floor, bytes_min).is_none()
        {
            return Ok(());
        }
        // A snapshot must not know more than the log.
        if !self.log.is_synced() {
            self.sync().inspect_err(|error| self.fail(error))?;
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
        self.remove_superfluous(revision)?;
        self.report(None);
        Ok(())
    }

    /// Removes the files that a snapshot of this revision replaces.
    fn remove_superfluous(&mut self, snapshot: Revision) -> io::Result<()> {
        let n_logs = checkpoint::superfluous(&self.sealed, self.log.base(), snapshot);
        let logs: Vec<SealedLog> = self.sealed.drain(..n_logs).collect();
        checkpoint::remove(self.directory.path(), &logs, snapshot)
    }

    /// Moves the oldest part of the history to files while it takes too much memory.
    fn page_out(&mut self) -> io::Result<()> {
        let mut is_changed = false;
        while self.state.history.resident_bytes() > self.options.limits.history_memory_bytes_max {
            let before = self.state.history.resident_bytes();
            let path = files::page(self.directory.path(), self.run, self.n_pages);
            self.n_pages += 1;
            self.state.history.page_out(&mut |steps| Page::write(path.clone(), steps))?;
            if self.state.history.resident_bytes() == before {
                break;
            }
            is_changed = true;
        }
        if is_changed {
            self.core.state.store(Arc::new(self.state.clone()));
        }
        Ok(())
    }

    fn report(&self, problem: Option<Unavailable>) {
        *self.core.problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
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
