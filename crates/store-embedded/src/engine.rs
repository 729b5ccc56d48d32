//! The embedded store: implements `Store` over the shared state and the writer thread.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use arc_swap::ArcSwap;
use store::{
    At, GetResult, Key, ListPage, ListRequest, Prefix, ReadError, Revision, Store, StoreFuture,
    StoreStatus, Transaction, Unavailable, VALUE_BYTES_MAX, WakeOrder, Watch, WatchError,
    WatchNotifier, WriteError,
};
use tokio::sync::{Semaphore, oneshot};

use crate::command_queue::{
    BYTES_PER_PERMIT, CommandQueue, QUEUE_BYTES_MAX, WriteCommand, WriterCommand,
};
use crate::locked_directory::LockedDirectory;
use crate::open_error::OpenError;
use crate::options::{Clock, Options};
use crate::recovery;
use crate::store_files::open_io_error;
use crate::store_state::StoreState;
use crate::watch::EmbeddedWatch;
use crate::writer::Writer;

/// A store that keeps its data in a local directory, as an append-only log.
///
/// Dropping the store closes it and blocks until it is closed; [`Store::close`] does not block the thread.
pub struct EmbeddedStore {
    shared_state: Arc<SharedState>,
    write_permits: Arc<Semaphore>,
    clock: Clock,
    writer_thread: Option<JoinHandle<()>>,
}

/// Prints the revision, not the content.
impl fmt::Debug for EmbeddedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedStore")
            .field("revision", &self.shared_state.published_state.load().revision)
            .finish_non_exhaustive()
    }
}

/// State shared by callers, watches and the writer.
pub(crate) struct SharedState {
    /// The newest durable state.
    pub(crate) published_state: ArcSwap<StoreState>,
    pub(crate) command_queue: CommandQueue,
    pub(crate) watch_notifier: WatchNotifier,
    /// The failure while the store is read-only.
    pub(crate) write_failure: Mutex<Option<Unavailable>>,
    pub(crate) status: ArcSwap<StoreStatus>,
    is_closed: AtomicBool,
}

impl SharedState {
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Ends every queued command and every watch.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.command_queue.close();
        self.watch_notifier.close();
    }

    fn state_if_open(&self) -> Result<Arc<StoreState>, Unavailable> {
        if self.is_closed() {
            Err(Unavailable::store_closed())
        } else {
            Ok(self.published_state.load_full())
        }
    }
}

impl EmbeddedStore {
    /// Opens a directory, and creates it if needed. Blocks while it reads.
    pub fn open(directory: &Path, options: Options) -> Result<Self, OpenError> {
        Self::open_locked_directory(LockedDirectory::lock(directory)?, options)
    }

    /// Opens a directory that the caller has locked.
    ///
    /// # Errors
    /// The files of the directory cannot be used.
    pub fn open_locked_directory(
        directory: LockedDirectory,
        options: Options,
    ) -> Result<Self, OpenError> {
        let recovered = recovery::recover_store(directory.path(), &options)?;
        let shared_state = Arc::new(SharedState {
            published_state: ArcSwap::from_pointee(recovered.store_state.clone()),
            command_queue: CommandQueue::default(),
            watch_notifier: WatchNotifier::default(),
            write_failure: Mutex::default(),
            status: ArcSwap::default(),
            is_closed: AtomicBool::new(false),
        });
        let clock = options.clock.clone();
        let path = directory.path().to_owned();
        let writer = Writer::new(shared_state.clone(), directory, recovered, options);
        let writer = std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || writer.run())
            .map_err(|source| open_io_error("start a thread for", &path, source))?;
        let write_permits = Arc::new(Semaphore::new(QUEUE_BYTES_MAX / BYTES_PER_PERMIT));
        Ok(Self { shared_state, write_permits, clock, writer_thread: Some(writer) })
    }

    /// Runs the periodic work now: expiry, compaction by age, progress of idle watches, and retries. For tests
    /// that move the clock.
    pub async fn run_periodic_work(&self) {
        let (reply, done) = oneshot::channel();
        self.shared_state.command_queue.push(WriterCommand::Tick { reply });
        // No answer means that the store is closed, and then there is nothing to do.
        done.await.ok();
    }

    /// Reads a state, on a blocking thread if that reads files.
    async fn read<T: Send + 'static>(
        &self,
        at: At,
        read: impl FnOnce(&StoreState) -> Result<T, ReadError> + Send + 'static,
    ) -> Result<T, ReadError> {
        let state = self.shared_state.state_if_open()?;
        if state.needs_file_reads(at) {
            return run_blocking(move || read(&state)).await?;
        }
        read(&state)
    }
}

impl Drop for EmbeddedStore {
    fn drop(&mut self) {
        let (reply, _) = oneshot::channel();
        self.shared_state.command_queue.push(WriterCommand::Close { reply });
        if let Some(writer) = self.writer_thread.take() {
            // Callers already got an error if the writer panicked.
            writer.join().ok();
        }
    }
}

impl Store for EmbeddedStore {
    fn get<'a>(&'a self, key: &'a Key, at: At) -> StoreFuture<'a, Result<GetResult, ReadError>> {
        Box::pin(async move {
            if at == At::Newest {
                if self.shared_state.is_closed() {
                    return Err(Unavailable::store_closed().into());
                }
                // This read, which is the most frequent, copies no reference count.
                return self.shared_state.published_state.load().get(key, at);
            }
            let key = key.clone();
            self.read(at, move |state| state.get(&key, at)).await
        })
    }

    fn list<'a>(
        &'a self,
        prefix: &'a Prefix,
        request: ListRequest,
    ) -> StoreFuture<'a, Result<ListPage, ReadError>> {
        Box::pin(async move {
            let prefix = prefix.clone();
            self.read(request.at, move |state| state.list(&prefix, &request)).await
        })
    }

    fn write(&self, transaction: Transaction) -> StoreFuture<'_, Result<Revision, WriteError>> {
        Box::pin(async move {
            let bytes = transaction.largest_value_bytes();
            if bytes > VALUE_BYTES_MAX {
                return Err(WriteError::ValueTooLarge { bytes });
            }
            let ttl = transaction.new_content().and_then(|content| content.ttl);
            let expires_at_ms = ttl.map(|ttl| {
                let ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
                self.clock.now_ms().saturating_add(ttl_ms).max(1)
            });
            let n_permits = 1 + transaction.total_bytes() / BYTES_PER_PERMIT;
            let n_permits = u32::try_from(n_permits).unwrap_or(u32::MAX);
            let permits = self
                .write_permits
                .clone()
                .acquire_many_owned(n_permits)
                .await
                .map_err(|_| Unavailable::store_closed())?;
            let (reply, answer) = oneshot::channel();
            let write = WriteCommand { transaction, expires_at_ms };
            self.shared_state.command_queue.push(WriterCommand::Write {
                write,
                reply,
                _write_permits: permits,
            });
            answer.await.unwrap_or_else(|_| Err(Unavailable::store_closed().into()))
        })
    }

    fn watch_with_wake_order(
        &self,
        prefix: Prefix,
        after: Revision,
        order: WakeOrder,
    ) -> StoreFuture<'_, Result<Box<dyn Watch>, WatchError>> {
        Box::pin(async move {
            let watch = EmbeddedWatch::start(self.shared_state.clone(), prefix, after, order)?;
            Ok(Box::new(watch) as Box<dyn Watch>)
        })
    }

    fn current_rev(&self) -> StoreFuture<'_, Result<Revision, ReadError>> {
        Box::pin(async move { Ok(self.shared_state.state_if_open()?.revision) })
    }

    fn wait_for_revision(
        &self,
        revision: Revision,
    ) -> StoreFuture<'_, Result<Revision, ReadError>> {
        Box::pin(async move {
            // Every key is under `/`.
            let mut revision_changed = self
                .shared_state
                .watch_notifier
                .subscribe_to_prefix("/", WakeOrder::AtOnce)
                .ok_or_else(Unavailable::store_closed)?;
            loop {
                let current = self.shared_state.state_if_open()?.revision;
                if current >= revision {
                    return Ok(current);
                }
                revision_changed.wait_for_newer_revision().await?;
            }
        })
    }

    fn compact(&self, revision: Revision) -> StoreFuture<'_, Result<Revision, ReadError>> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            self.shared_state.command_queue.push(WriterCommand::Compact { revision, reply });
            answer.await.unwrap_or_else(|_| Err(Unavailable::store_closed().into()))
        })
    }

    fn compaction_floor(&self) -> StoreFuture<'_, Result<Revision, ReadError>> {
        Box::pin(async move { Ok(self.shared_state.state_if_open()?.compaction_floor) })
    }

    fn check_health(&self) -> StoreFuture<'_, Result<(), Unavailable>> {
        Box::pin(async move {
            if self.shared_state.is_closed() {
                return Err(Unavailable::store_closed());
            }
            let write_failure =
                self.shared_state.write_failure.lock().unwrap_or_else(PoisonError::into_inner);
            write_failure.clone().map_or(Ok(()), Err)
        })
    }

    fn status(&self) -> StoreStatus {
        StoreStatus::clone(&self.shared_state.status.load())
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let (reply, done) = oneshot::channel();
            self.shared_state.command_queue.push(WriterCommand::Close { reply });
            // No answer means that it was closed before.
            done.await.ok();
        })
    }
}

/// Runs work that reads files on the blocking pool.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Unavailable> {
    let failed = |error| Unavailable { reason: format!("a read has failed: {error}").into() };
    tokio::task::spawn_blocking(work).await.map_err(failed)
}
