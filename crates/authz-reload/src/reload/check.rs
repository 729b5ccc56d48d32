//! One check of the files: read, compare, build, publish.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::ArcSwap;
use authz_chain::AuthorizerType;
use document::Diagnostic;

use super::health;
use super::inspect_files::{CurrentConfig, Inspection, RejectedFiles, inspect_files};
use super::watch::{ChangeCounter, FolderWatch, renew_watch, wait_for_change};
use super::watched_paths::WatchedPaths;
use super::{CheckResult, Log, Publish, ReloadOptions};
use crate::assemble::Assembler;
use crate::flags::ConfigFilePlan;
use crate::generation::Generation;
use crate::notice::ReloadNotice;
use crate::observers::ReloadStatus;
use crate::status::{ReloadAttempt, ReloadProgress};

/// Checks the files of a configuration. The reload task owns it.
pub(super) struct ConfigChecker {
    inputs: Arc<CheckInputs>,
    options: ReloadOptions,
    publish: Publish,
    log: Log,
    changes: Arc<ChangeCounter>,
    progress: Arc<ArcSwap<ReloadProgress>>,
    generation: Arc<Generation>,
    /// The hash of the file; see [`CurrentConfig::file_hash`].
    file_hash: String,
    /// The files of the last rejected configuration, until a check finds other ones. Each check inspects
    /// them again, but only a new fault counts as a new failure.
    rejected: Option<RejectedFiles>,
}

/// The values that a check reads on a blocking thread.
struct CheckInputs {
    assembler: Assembler,
    plan: ConfigFilePlan,
    built_in_types: BTreeSet<AuthorizerType>,
}

/// The watch of the file system, and why it does not cover every file.
#[derive(Default)]
pub(super) struct PathWatch {
    watch: Option<FolderWatch>,
    error: Option<String>,
}

impl ConfigChecker {
    pub(super) fn new(
        assembler: Assembler,
        plan: ConfigFilePlan,
        first: Arc<Generation>,
        options: ReloadOptions,
        publish: Publish,
        log: Log,
        progress: Arc<ArcSwap<ReloadProgress>>,
    ) -> Self {
        let built_in_types = first.configuration.built_in_types();
        Self {
            inputs: Arc::new(CheckInputs { assembler, plan, built_in_types }),
            options,
            publish,
            log,
            changes: Arc::new(ChangeCounter::new()),
            progress,
            file_hash: first.hash.clone().unwrap_or_default(),
            generation: first,
            rejected: None,
        }
    }

    pub(super) fn changes(&self) -> &ChangeCounter {
        &self.changes
    }

    pub(super) fn options(&self) -> &ReloadOptions {
        &self.options
    }

    /// Watches the paths that matter now. Paths that can not be watched are polled, and each poll tries to
    /// watch them again.
    pub(super) async fn renew_watch(&self, old: PathWatch) -> PathWatch {
        let paths = self.progress.load().watched_files();
        let changes = Arc::clone(&self.changes);
        let renewed = tokio::task::spawn_blocking(move || {
            let watched = WatchedPaths::resolve(paths.iter().map(PathBuf::as_path));
            renew_watch(old.watch, watched, &changes)
        });
        let (watch, error) = match renewed.await {
            Ok((watch, result)) => (watch, result.err().map(|error| error.to_string())),
            Err(error) => (None, Some(error.to_string())),
        };
        if let Some(message) = error.as_deref().filter(|it| old.error.as_deref() != Some(it)) {
            (self.log)(&ReloadNotice::Unwatched { message });
        }
        PathWatch { watch, error }
    }

    /// Checks the files once.
    ///
    /// 1. The files are inspected on a blocking thread. If they mean the configuration in effect, nothing
    ///    else happens. If they can not be read or used, the reload fails.
    /// 2. With `--authorization-config-reload-health-check`, each webhook that is new or changed is
    ///    contacted. If one can not be reached, the reload fails and the next check tries again. If a file
    ///    changes meanwhile, the check starts again.
    /// 3. The new generation is published. If that fails, the reload fails and the next check tries again.
    ///
    /// A reload that fails changes no authorizer.
    pub(super) async fn check(&mut self) -> CheckResult {
        loop {
            // Subscribed before the files are read, so that no later change is missed.
            let mut changes = self.changes.subscribe();
            match self.inspect().await {
                Inspection::Unchanged { hash } => return self.keep_generation(hash),
                Inspection::Unreadable(error) => return self.fail(&error.to_string(), &[]),
                Inspection::Rejected(rejected) => return self.reject(rejected),
                Inspection::Built(generation) => {
                    let health = tokio::select! {
                        biased;
                        health = self.check_health(&generation) => health,
                        // A webhook that is slow to answer must not delay a configuration without it.
                        () = wait_for_change(&mut changes) => continue,
                    };
                    return match health {
                        Ok(()) => self.publish(*generation),
                        Err(error) => self.fail_until_next_check(&generation, &error.to_string()),
                    };
                }
            }
        }
    }

    async fn inspect(&self) -> Inspection {
        let (inputs, generation) = (Arc::clone(&self.inputs), Arc::clone(&self.generation));
        let file_hash = self.file_hash.clone();
        let inspected = tokio::task::spawn_blocking(move || {
            let current = CurrentConfig {
                generation: &generation,
                file_hash: &file_hash,
                built_in_types: &inputs.built_in_types,
            };
            inspect_files(&inputs.assembler, &inputs.plan, &current)
        });
        inspected.await.unwrap_or_else(|error| {
            Inspection::Rejected(RejectedFiles {
                hash: self.file_hash.clone(),
                message: error.to_string(),
                diagnostics: Vec::new(),
                files: Vec::new(),
            })
        })
    }

    async fn check_health(&self, generation: &Generation) -> Result<(), health::Unhealthy> {
        match self.options.has_health_check {
            true => health::check_new_webhooks(generation, &self.generation).await,
            false => Ok(()),
        }
    }

    /// The files with this hash mean the generation in effect.
    fn keep_generation(&mut self, hash: String) -> CheckResult {
        self.file_hash = hash;
        self.rejected = None;
        let last_attempt = self.progress.load().last_attempt.clone();
        let progress = ReloadProgress::new(Arc::clone(&self.generation));
        self.progress.store(Arc::new(ReloadProgress { last_attempt, ..progress }));
        CheckResult::Unchanged
    }

    fn reject(&mut self, rejected: RejectedFiles) -> CheckResult {
        let message = rejected.message.clone();
        let is_known = self.rejected.as_ref().is_some_and(|known| {
            (&known.hash, &known.message) == (&rejected.hash, &rejected.message)
        });
        let diagnostics = rejected.diagnostics.clone();
        self.rejected = Some(rejected);
        if is_known {
            self.record_failure(&message);
            return CheckResult::Failed(message);
        }
        self.fail(&message, &diagnostics)
    }

    /// The files are valid, but the generation can not go into effect now. Each attempt counts.
    fn fail_until_next_check(&mut self, generation: &Generation, message: &str) -> CheckResult {
        self.rejected = Some(RejectedFiles {
            hash: generation.hash.clone().unwrap_or_default(),
            message: message.to_owned(),
            diagnostics: Vec::new(),
            files: generation.files().map(PathBuf::from).collect(),
        });
        self.fail(message, &[])
    }

    /// Requests that begin after this are decided by the new generation, unless it can not be published.
    fn publish(&mut self, generation: Generation) -> CheckResult {
        let generation = Arc::new(generation);
        if let Err(error) = (self.publish)(&generation) {
            return self.fail_until_next_check(&generation, &error.to_string());
        }
        self.file_hash = generation.hash.clone().unwrap_or_default();
        self.rejected = None;
        self.generation = Arc::clone(&generation);
        let now = SystemTime::now();
        let attempt = ReloadAttempt { at: now, error: None };
        let progress = ReloadProgress::new(Arc::clone(&generation));
        self.progress.store(Arc::new(ReloadProgress { last_attempt: Some(attempt), ..progress }));
        let observers = &self.inputs.assembler.observers;
        observers.on_reload(ReloadStatus::Success, now);
        generation.with_applied_config(|applied| observers.on_config_applied(applied));
        for warning in &generation.warnings {
            (self.log)(&ReloadNotice::Warned(warning));
        }
        (self.log)(&ReloadNotice::Applied(&generation));
        CheckResult::Applied(generation.number)
    }

    /// Reports a failure to the status, the metrics and the log. The generation in effect stays.
    fn fail(&self, message: &str, diagnostics: &[Diagnostic]) -> CheckResult {
        self.record_failure(message);
        let CheckInputs { assembler, plan, .. } = &*self.inputs;
        assembler.observers.on_reload(ReloadStatus::Failure, SystemTime::now());
        let file = assembler.directory.join(&plan.path);
        (self.log)(&ReloadNotice::Failed { file: &file, message, diagnostics });
        CheckResult::Failed(message.to_owned())
    }

    /// Reports a failure to the status only.
    fn record_failure(&self, message: &str) {
        let attempt = ReloadAttempt { at: SystemTime::now(), error: Some(message.to_owned()) };
        let rejected = self.rejected.as_ref();
        self.progress.store(Arc::new(ReloadProgress {
            generation: Arc::clone(&self.generation),
            last_attempt: Some(attempt),
            rejected_config_hash: rejected.map(|rejected| rejected.hash.clone()),
            rejected_config_files: rejected
                .map(|rejected| rejected.files.clone())
                .unwrap_or_default(),
        }));
    }
}
