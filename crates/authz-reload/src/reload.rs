//! Replaces the authorizers of a running server when their configuration files change.

mod config_checker;
mod folder_watch;
mod inspect_files;
mod watched_paths;
mod webhook_health_check;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use self::config_checker::{ConfigChecker, PathWatch};
use self::folder_watch::wait_for_change;
use crate::authorization_status::{AuthorizationStatus, ReloaderState};
use crate::build_authorizers::AuthorizerBuilder;
use crate::config_generation::Generation;
use crate::plan_from_flags::AuthorizationPlan;
use crate::reload_notice::ReloadNotice;

/// Options for reloading configuration files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReloadOptions {
    /// The interval at which the reloader reads the files, even if the system reports no change.
    pub poll_interval: Duration,
    /// Whether the reloader watches the file system. Without a watch it finds a change at the next poll.
    pub watches_files: bool,
    /// Whether new and changed webhooks must answer a review before their configuration takes effect:
    /// `--authorization-config-reload-health-check`.
    pub checks_webhook_health: bool,
}

impl Default for ReloadOptions {
    fn default() -> Self {
        Self {
            poll_interval: Duration::from_secs(60),
            watches_files: true,
            checks_webhook_health: true,
        }
    }
}

/// Puts a generation into effect: it decides every request that begins after the function returns. The function must
/// not block.
///
/// After an error the old generation stays in effect, the reload counts as failed, and the reloader tries
/// again at the next check.
pub type PublishGenerationFn =
    Arc<dyn Fn(&Arc<Generation>) -> Result<(), PublishError> + Send + Sync>;

/// Writes a notice to the log. The function must not block.
pub type ReloadLogFn = Arc<dyn Fn(&ReloadNotice<'_>) + Send + Sync>;

/// The server cannot use a generation that was built from valid files.
#[derive(Debug, thiserror::Error)]
#[error("the authorizers cannot be replaced: {0}")]
pub struct PublishError(pub Box<dyn std::error::Error + Send + Sync>);

/// Watches a configuration file and every file that it refers to, and publishes a new generation when
/// they change. Dropping it ends the task that does so.
///
/// A configuration from flags never changes; the reloader then only reports its status.
pub struct Reloader {
    /// The state that readers get without a lock. The task replaces the whole value.
    reloader_state: Arc<ArcSwap<ReloaderState>>,
    /// `None` if the configuration comes from flags.
    reload_task: Option<ReloadTask>,
}

/// The task that checks the files. It owns all state of the checks, so that no check needs a lock.
struct ReloadTask {
    task_handle: JoinHandle<()>,
    file_check_request_sender: mpsc::Sender<FileCheckRequest>,
}

/// A request to check the files now; the task sends the result.
type FileCheckRequest = oneshot::Sender<FileCheckResult>;

/// The maximum number of check requests that wait for the task. A further caller waits until it can send.
const CHECK_REQUESTS_MAX: usize = 8;

/// The result of one check of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileCheckResult {
    /// The files define the configuration in effect.
    Unchanged,
    /// A new configuration is in effect, with this generation number.
    Applied(u64),
    /// The files cannot be used, and the old configuration stays in effect.
    Failed(String),
}

impl Reloader {
    /// Starts a reloader with the first generation, which is already in effect, and watches its files.
    ///
    /// # Panics
    /// Panics outside of a tokio runtime, unless flags define the configuration.
    pub fn start(
        builder: AuthorizerBuilder,
        plan: &AuthorizationPlan,
        first: Arc<Generation>,
        options: ReloadOptions,
        publish: PublishGenerationFn,
        log: ReloadLogFn,
    ) -> Self {
        let first_hash = first.hash.as_deref();
        first
            .report_applied_config(first_hash, |it| builder.observer_factory.on_config_applied(it));
        let reloader_state =
            Arc::new(ArcSwap::from_pointee(ReloaderState::new(Arc::clone(&first))));
        let reload_task = match plan {
            AuthorizationPlan::Modes(_) => None,
            AuthorizationPlan::File(plan) => {
                let reloader_state = Arc::clone(&reloader_state);
                let plan = plan.clone();
                let checker =
                    ConfigChecker::new(builder, plan, first, options, publish, log, reloader_state);
                let (check_requests, received) = mpsc::channel(CHECK_REQUESTS_MAX);
                Some(ReloadTask {
                    task_handle: tokio::spawn(run(checker, received)),
                    file_check_request_sender: check_requests,
                })
            }
        };
        Self { reloader_state, reload_task }
    }

    /// Checks the files now, or after the check that is running.
    pub async fn check_files_now(&self) -> FileCheckResult {
        let Some(reload_task) = &self.reload_task else { return FileCheckResult::Unchanged };
        let (request, result) = oneshot::channel();
        let ended = || FileCheckResult::Failed("the reload task has ended".to_owned());
        match reload_task.file_check_request_sender.send(request).await {
            Ok(()) => result.await.unwrap_or_else(|_| ended()),
            Err(_) => ended(),
        }
    }

    /// Returns the generation in effect.
    pub fn generation(&self) -> Arc<Generation> {
        Arc::clone(&self.reloader_state.load().generation)
    }

    /// Reports the configuration in effect, the result of the last reload, and the state of each webhook.
    pub fn status(&self) -> AuthorizationStatus {
        self.reloader_state.load().status()
    }
}

impl Drop for Reloader {
    fn drop(&mut self) {
        if let Some(reload_task) = &self.reload_task {
            reload_task.task_handle.abort();
        }
    }
}

/// Checks the files when the system reports a change, at each poll, and on request.
async fn run(mut checker: ConfigChecker, mut check_requests: mpsc::Receiver<FileCheckRequest>) {
    let mut changes = checker.file_change_counter().subscribe_to_changes();
    let mut poll = tokio::time::interval(checker.options().poll_interval.max(POLL_MIN));
    poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
    poll.reset();
    let mut watch = PathWatch::default();
    loop {
        if checker.options().watches_files {
            watch = checker.renew_file_watch(watch).await;
        }
        let request = tokio::select! {
            () = wait_for_change(&mut changes) => None,
            _ = poll.tick() => None,
            request = check_requests.recv() => match request {
                Some(request) => Some(request),
                // The reloader was dropped, so nothing uses the result of a check.
                None => return,
            },
        };
        let result = checker.check_files().await;
        if let Some(request) = request {
            // The caller may have stopped waiting.
            let _ = request.send(result);
        }
    }
}

/// The minimum interval between two polls: tokio panics for an interval of zero.
const POLL_MIN: Duration = Duration::from_millis(1);
