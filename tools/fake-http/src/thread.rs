//! A thread that serves until it is stopped.

use std::future::Future;
use std::io;
use std::thread::JoinHandle;

use tokio::runtime::Builder;
use tokio::sync::oneshot;

/// Runs a task on a new thread. Dropping this value ends the task and all tasks that it has spawned.
pub(crate) struct Thread {
    stop: Option<oneshot::Sender<()>>,
    handle: Option<JoinHandle<()>>,
}

impl Thread {
    /// Calls `serve` within the runtime of the new thread.
    pub(crate) fn start<F: Future>(serve: impl FnOnce() -> F + Send + 'static) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let run = move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = serve() => {}
                    _ = stopped => {}
                }
            });
        };
        let handle = std::thread::Builder::new().name("scripted".to_owned()).spawn(run)?;
        Ok(Self { stop: Some(stop), handle: Some(handle) })
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // If the task has ended by itself, the receiver is gone and there is nothing to stop.
        self.stop.take().map(|stop| stop.send(()));
        self.handle.take().map(JoinHandle::join);
    }
}
