//! Replacing the configuration of a running server.

mod examine;
mod follow;
mod health;
mod watch;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use authz_chain::AuthorizerType;
use document::Diagnostic;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use self::examine::{Finding, Known, Rejected, examine};
use self::follow::Followed;
use self::watch::{Changes, Watch, changed, renew};
use crate::assemble::Assembler;
use crate::flags::{FilePlan, Plan};
use crate::generation::Generation;
use crate::instruments::ReloadStatus;
use crate::notice::Notice;
use crate::status::{Attempt, Progress, Status};

/// How a reload behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReloadOptions {
    /// How often files are looked at whether or not anything is heard of them.
    pub poll: Duration,
    /// Whether to listen for changes. Without it changes wait for the next poll, as they do where
    /// listening is impossible.
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
pub type Publish = Arc<dyn Fn(&Arc<Generation>) + Send + Sync>;

/// Writes to the log. Must not block.
pub type Log = Arc<dyn Fn(&Notice<'_>) + Send + Sync>;

/// Follows a configuration file and everything that it leads to. Dropping it ends that.
///
/// A configuration from flags stays as it is; then this only knows it.
pub struct Reloader {
    shared: Arc<Shared>,
    task: Option<JoinHandle<()>>,
}

/// What a check came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checked {
    /// The configuration in effect is what the files say.
    Same,
    /// A new configuration is in effect, with this number.
    Applied(u64),
    /// What the files say can not be used, and the old configuration stays.
    Failed(String),
}

struct Shared {
    assembler: Assembler,
    /// `None` if the configuration comes from flags.
    plan: Option<FilePlan>,
    options: ReloadOptions,
    publish: Publish,
    log: Log,
    built_in_types: BTreeSet<AuthorizerType>,
    changes: Arc<Changes>,
    /// The one lock: whoever holds it is the only one to check.
    state: Mutex<State>,
    /// What the status shows. Readers take no lock.
    progress: ArcSwap<Progress>,
}

/// What the last checks found.
struct State {
    generation: Arc<Generation>,
    /// See [`Known::settled`].
    settled: String,
    /// The files that were refused last, if they were not taken back since. They are looked at
    /// again with every check, but only a new fault is a new failure.
    rejected: Option<Rejected>,
}

impl Reloader {
    /// Takes over the generation of the start, which is already in effect, and follows its files.
    ///
    /// # Panics
    /// Outside of a runtime of tokio, unless the configuration comes from flags.
    pub fn start(
        assembler: Assembler,
        plan: &Plan,
        first: Arc<Generation>,
        options: ReloadOptions,
        publish: Publish,
        log: Log,
    ) -> Self {
        let file_plan = match plan {
            Plan::File(plan) => Some(plan.clone()),
            Plan::Modes(_) => None,
        };
        first.tell(|applied| assembler.instruments.applied(applied));
        let state = State {
            settled: first.hash.clone().unwrap_or_default(),
            generation: Arc::clone(&first),
            rejected: None,
        };
        let shared = Arc::new(Shared {
            built_in_types: first.configuration.built_in_types(),
            progress: ArcSwap::from_pointee(Progress::new(first)),
            state: Mutex::new(state),
            changes: Arc::new(Changes::new()),
            plan: file_plan,
            assembler,
            options,
            publish,
            log,
        });
        let task = shared.plan.is_some().then(|| tokio::spawn(run(Arc::clone(&shared))));
        Self { shared, task }
    }

    /// Looks at the files now, after any check that is under way.
    pub async fn check_now(&self) -> Checked {
        self.shared.check().await
    }

    /// The generation in effect.
    pub fn generation(&self) -> Arc<Generation> {
        Arc::clone(&self.shared.progress.load().generation)
    }

    /// What is in effect, since when, and how it is doing.
    pub fn status(&self) -> Status {
        self.shared.progress.load().status()
    }
}

impl Drop for Reloader {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// Checks the files when anything is heard of them, and once in a while.
async fn run(shared: Arc<Shared>) {
    let mut changes = shared.changes.listen();
    let mut poll = tokio::time::interval(shared.options.poll.max(POLL_MIN));
    poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
    poll.reset();
    let mut watching = Watching::default();
    loop {
        if shared.options.has_watch {
            watching = shared.watch(watching).await;
        }
        tokio::select! {
            () = changed(&mut changes) => {}
            _ = poll.tick() => {}
        }
        shared.check().await;
    }
}

/// An interval can not be empty, and reading files all the time serves nobody.
const POLL_MIN: Duration = Duration::from_millis(1);

/// The watch, and why it does not hear of everything.
#[derive(Default)]
struct Watching {
    watch: Option<Watch>,
    trouble: Option<String>,
}

impl Shared {
    /// Watches what has to be followed now. For what can not be watched there is still the poll, and
    /// after it the next attempt.
    async fn watch(&self, old: Watching) -> Watching {
        let paths = self.progress.load().followed();
        let changes = Arc::clone(&self.changes);
        let renewed = tokio::task::spawn_blocking(move || {
            let followed = Followed::of(paths.iter().map(PathBuf::as_path));
            renew(old.watch, followed, &changes)
        });
        let (watch, trouble) = match renewed.await {
            Ok((watch, watched)) => (watch, watched.err().map(|error| error.to_string())),
            Err(error) => (None, Some(error.to_string())),
        };
        if let Some(message) = trouble.as_deref().filter(|it| old.trouble.as_deref() != Some(it)) {
            (self.log)(&Notice::Unwatched { message });
        }
        Watching { watch, trouble }
    }

    /// One check from beginning to end.
    async fn check(self: &Arc<Self>) -> Checked {
        let mut state = self.state.lock().await;
        loop {
            // Changes from here on may be missed by what is read below.
            let mut changes = self.changes.listen();
            match self.examine(&state).await {
                Finding::Same { hash } => return self.settle(&mut state, hash),
                Finding::Unreadable(error) => {
                    let message = error.to_string();
                    self.fail(&state, &message, &[]);
                    return Checked::Failed(message);
                }
                Finding::Rejected(rejected) => return self.reject(&mut state, rejected),
                Finding::Built(generation) => {
                    let is_healthy = tokio::select! {
                        biased;
                        healthy = self.health(&state, &generation) => healthy,
                        // Waiting for a webhook must not delay a configuration without it.
                        () = changed(&mut changes) => continue,
                    };
                    return match is_healthy {
                        Ok(()) => self.apply(&mut state, *generation),
                        Err(message) => self.postpone(&mut state, &generation, message),
                    };
                }
            }
        }
    }

    async fn examine(self: &Arc<Self>, state: &State) -> Finding {
        let (shared, generation) = (Arc::clone(self), Arc::clone(&state.generation));
        let settled = state.settled.clone();
        let examined = tokio::task::spawn_blocking(move || {
            let known = Known {
                generation: &generation,
                settled: &settled,
                built_in_types: &shared.built_in_types,
            };
            shared.plan.as_ref().map(|plan| examine(&shared.assembler, plan, &known))
        });
        let same = || Finding::Same { hash: state.settled.clone() };
        match examined.await {
            Ok(finding) => finding.unwrap_or_else(same),
            Err(error) => Finding::Rejected(Rejected {
                hash: state.settled.clone(),
                message: error.to_string(),
                diagnostics: Vec::new(),
                files: Vec::new(),
            }),
        }
    }

    async fn health(&self, state: &State, generation: &Generation) -> Result<(), String> {
        match self.options.has_health_check {
            true => health::check(generation, &state.generation).await,
            false => Ok(()),
        }
    }

    fn settle(&self, state: &mut State, hash: String) -> Checked {
        state.settled = hash;
        state.rejected = None;
        let last_attempt = self.progress.load().last_attempt.clone();
        let progress = Progress::new(Arc::clone(&state.generation));
        self.progress.store(Arc::new(Progress { last_attempt, ..progress }));
        Checked::Same
    }

    fn reject(&self, state: &mut State, rejected: Rejected) -> Checked {
        let message = rejected.message.clone();
        let is_known = state.rejected.as_ref().is_some_and(|known| {
            (&known.hash, &known.message) == (&rejected.hash, &rejected.message)
        });
        let diagnostics = rejected.diagnostics.clone();
        state.rejected = Some(rejected);
        match is_known {
            true => self.note_failure(state, &message),
            false => self.fail(state, &message, &diagnostics),
        }
        Checked::Failed(message)
    }

    /// A configuration whose webhooks can not be reached is tried again with the next check, and
    /// each attempt counts.
    fn postpone(&self, state: &mut State, generation: &Generation, message: String) -> Checked {
        state.rejected = Some(Rejected {
            hash: generation.hash.clone().unwrap_or_default(),
            message: message.clone(),
            diagnostics: Vec::new(),
            files: generation.files().map(PathBuf::from).collect(),
        });
        self.fail(state, &message, &[]);
        Checked::Failed(message)
    }

    /// Requests that begin from now on are decided by the new generation.
    fn apply(&self, state: &mut State, generation: Generation) -> Checked {
        let generation = Arc::new(generation);
        (self.publish)(&generation);
        state.settled = generation.hash.clone().unwrap_or_default();
        state.rejected = None;
        state.generation = Arc::clone(&generation);
        let now = SystemTime::now();
        let attempt = Attempt { at: now, error: None };
        let progress = Progress::new(Arc::clone(&generation));
        self.progress.store(Arc::new(Progress { last_attempt: Some(attempt), ..progress }));
        let instruments = &self.assembler.instruments;
        instruments.reloaded(ReloadStatus::Success, now);
        generation.tell(|applied| instruments.applied(applied));
        for warning in &generation.warnings {
            (self.log)(&Notice::Warned(warning));
        }
        (self.log)(&Notice::Applied(&generation));
        Checked::Applied(generation.number)
    }

    /// A failure leaves everything as it is, and is told everywhere.
    fn fail(&self, state: &State, message: &str, diagnostics: &[Diagnostic]) {
        self.note_failure(state, message);
        self.assembler.instruments.reloaded(ReloadStatus::Failure, SystemTime::now());
        let file = self.plan.as_ref().map(|plan| self.assembler.directory.join(&plan.path));
        let file = file.unwrap_or_default();
        (self.log)(&Notice::Failed { file: &file, message, diagnostics });
    }

    /// A failure that was told before is only seen in the status.
    fn note_failure(&self, state: &State, message: &str) {
        let attempt = Attempt { at: SystemTime::now(), error: Some(message.to_owned()) };
        let rejected = state.rejected.as_ref();
        self.progress.store(Arc::new(Progress {
            generation: Arc::clone(&state.generation),
            last_attempt: Some(attempt),
            pending: rejected.map(|rejected| rejected.hash.clone()),
            awaited: rejected.map(|rejected| rejected.files.clone()).unwrap_or_default(),
        }));
    }
}
