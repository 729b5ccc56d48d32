//! Replaces the authorizers of a running server when their configuration files change.

mod check;
mod health;
mod inspect_files;
mod watch;
mod watched_paths;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use self::check::{ConfigChecker, PathWatch};
use self::watch::wait_for_change;
use crate::assemble::Assembler;
use crate::flags::AuthorizationPlan;
use crate::generation::Generation;
use crate::notice::ReloadNotice;
use crate::status::{ReloadProgress, Status};

/// How configuration files are reloaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReloadOptions {
    /// The interval at which files are read whether or not the system reported a change.
    pub poll: Duration,
    /// Whether to watch the file system. Without it, and where watching is impossible, the reloader finds
    /// a change at the next poll.
    pub has_watch: bool,
    /// Whether webhooks that are new or changed have to be reachable before a configuration with
    /// them goes into effect: `--authorization-config-reload-health-check`.
    pub has_health_check: bool,
}

impl Default for ReloadOptions {
    fn default() -> Self {
        Self { poll: Duration::from_secs(60), has_watch: true, has_health_check: false }
    }
}

/// Puts a generation into effect: requests that begin after it returns are decided by it. Must not
/// block.
///
/// After an error the old generation stays in effect, the reload counts as failed, and the reloader tries
/// again with the next check.
pub type Publish = Arc<dyn Fn(&Arc<Generation>) -> Result<(), PublishError> + Send + Sync>;

/// Writes to the log. Must not block.
pub type Log = Arc<dyn Fn(&ReloadNotice<'_>) + Send + Sync>;

/// The server can not use a generation that was built from valid files.
#[derive(Debug, thiserror::Error)]
#[error("the authorizers can not be replaced: {0}")]
pub struct PublishError(pub Box<dyn std::error::Error + Send + Sync>);

/// Watches a configuration file and every file that it refers to, and publishes a new generation when
/// they change. Dropping it ends the task that does so.
///
/// A configuration from flags never changes; the reloader then only reports its status.
pub struct Reloader {
    /// Replaced whole by the task. Readers take no lock.
    progress: Arc<ArcSwap<ReloadProgress>>,
    /// `None` if the configuration comes from flags.
    task: Option<ReloadTask>,
}

/// The task that checks the files. It owns what it knows of them, so that no check needs a lock.
struct ReloadTask {
    handle: JoinHandle<()>,
    requests: mpsc::Sender<CheckRequest>,
}

/// A request to check the files now; the task sends the result.
type CheckRequest = oneshot::Sender<CheckResult>;

/// Check requests that may wait for the task. A further caller waits for its turn to send.
const CHECK_REQUESTS_MAX: usize = 8;

/// The result of one check of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckResult {
    /// The configuration in effect is that of the files.
    Unchanged,
    /// A new configuration is in effect, with this generation number.
    Applied(u64),
    /// The files can not be used, and the old configuration stays in effect.
    Failed(String),
}

impl Reloader {
    /// Takes over the generation of the start, which is already in effect, and watches its files.
    ///
    /// # Panics
    /// Outside of a runtime of tokio, unless the configuration comes from flags.
    pub fn start(
        assembler: Assembler,
        plan: &AuthorizationPlan,
        first: Arc<Generation>,
        options: ReloadOptions,
        publish: Publish,
        log: Log,
    ) -> Self {
        first.with_applied_config(|applied| assembler.observers.on_config_applied(applied));
        let progress = Arc::new(ArcSwap::from_pointee(ReloadProgress::new(Arc::clone(&first))));
        let task = match plan {
            AuthorizationPlan::Modes(_) => None,
            AuthorizationPlan::File(plan) => {
                let progress = Arc::clone(&progress);
                let plan = plan.clone();
                let checker =
                    ConfigChecker::new(assembler, plan, first, options, publish, log, progress);
                let (requests, received) = mpsc::channel(CHECK_REQUESTS_MAX);
                Some(ReloadTask { handle: tokio::spawn(run(checker, received)), requests })
            }
        };
        Self { progress, task }
    }

    /// Checks the files now, after any check that is under way.
    pub async fn check_now(&self) -> CheckResult {
        let Some(task) = &self.task else { return CheckResult::Unchanged };
        let (request, result) = oneshot::channel();
        let ended = || CheckResult::Failed("the reload task has ended".to_owned());
        match task.requests.send(request).await {
            Ok(()) => result.await.unwrap_or_else(|_| ended()),
            Err(_) => ended(),
        }
    }

    /// The generation in effect.
    pub fn generation(&self) -> Arc<Generation> {
        Arc::clone(&self.progress.load().generation)
    }

    /// The configuration in effect, the result of the last reload, and the state of each webhook.
    pub fn status(&self) -> Status {
        self.progress.load().status()
    }
}

impl Drop for Reloader {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.handle.abort();
        }
    }
}

/// Checks the files when the system reports a change, at each poll, and on request.
async fn run(mut checker: ConfigChecker, mut requests: mpsc::Receiver<CheckRequest>) {
    let mut changes = checker.changes().subscribe();
    let mut poll = tokio::time::interval(checker.options().poll.max(POLL_MIN));
    poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
    poll.reset();
    let mut watch = PathWatch::default();
    loop {
        if checker.options().has_watch {
            watch = checker.renew_watch(watch).await;
        }
        let request = tokio::select! {
            () = wait_for_change(&mut changes) => None,
            _ = poll.tick() => None,
            request = requests.recv() => match request {
                Some(request) => Some(request),
                // The reloader is gone, and with it everybody who uses the result.
                None => return,
            },
        };
        let result = checker.check().await;
        if let Some(request) = request {
            // The caller may have stopped waiting.
            let _ = request.send(result);
        }
    }
}

/// The shortest interval between two polls: an interval of tokio can not be empty.
const POLL_MIN: Duration = Duration::from_millis(1);
