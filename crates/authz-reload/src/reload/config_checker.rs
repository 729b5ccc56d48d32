//! Checks the files of a configuration: reads them, compares them with the configuration in effect, builds the
//! authorizers and publishes them.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::ArcSwap;
use authz_chain::AuthorizerType;
use document::Diagnostic;

use super::folder_watch::{ChangeCounter, FolderWatch, renew_watch, wait_for_change};
use super::inspect_files::{CurrentConfig, InspectionResult, RejectedFiles, inspect_files};
use super::watched_paths::WatchedPaths;
use super::webhook_health_check;
use super::{CheckResult, PublishGeneration, ReloadLog, ReloadOptions};
use crate::authorization_status::{ReloadAttempt, ReloaderState};
use crate::build_authorizers::AuthorizerBuilder;
use crate::generation::Generation;
use crate::observers::ReloadStatus;
use crate::plan_from_flags::ConfigFilePlan;
use crate::reload_notice::ReloadNotice;

/// Checks the files of a configuration. The reload task owns it.
pub(super) struct ConfigChecker {
    check_inputs: Arc<CheckInputs>,
    options: ReloadOptions,
    publish_generation: PublishGeneration,
    reload_log: ReloadLog,
    change_counter: Arc<ChangeCounter>,
    reloader_state: Arc<ArcSwap<ReloaderState>>,
    generation: Arc<Generation>,
    /// The hash of the configuration file; see [`CurrentConfig::file_hash`].
    file_hash: String,
    /// The last rejected configuration, until a check finds another one. Each check inspects its files again, but
    /// only a new fault counts as a new failure.
    last_rejected_files: Option<RejectedFiles>,
    /// The error of the last check, if it could not read the configuration file.
    last_read_error: Option<String>,
}

/// The values that a check reads on a blocking thread.
struct CheckInputs {
    authorizer_builder: AuthorizerBuilder,
    config_file_plan: ConfigFilePlan,
    built_in_types: BTreeSet<AuthorizerType>,
}

/// The watch of the file system, and the reason if it does not cover every file.
#[derive(Default)]
pub(super) struct PathWatch {
    folder_watch: Option<FolderWatch>,
    error: Option<String>,
}

impl ConfigChecker {
    pub(super) fn new(
        builder: AuthorizerBuilder,
        plan: ConfigFilePlan,
        first: Arc<Generation>,
        options: ReloadOptions,
        publish: PublishGeneration,
        log: ReloadLog,
        reloader_state: Arc<ArcSwap<ReloaderState>>,
    ) -> Self {
        let built_in_types = first.configuration.built_in_types();
        Self {
            check_inputs: Arc::new(CheckInputs {
                authorizer_builder: builder,
                config_file_plan: plan,
                built_in_types,
            }),
            options,
            publish_generation: publish,
            reload_log: log,
            change_counter: Arc::new(ChangeCounter::new()),
            reloader_state,
            file_hash: first.hash.clone().unwrap_or_default(),
            generation: first,
            last_rejected_files: None,
            last_read_error: None,
        }
    }

    pub(super) fn change_counter(&self) -> &ChangeCounter {
        &self.change_counter
    }

    pub(super) fn options(&self) -> &ReloadOptions {
        &self.options
    }

    /// Watches the current paths. The reloader polls paths that cannot be watched, and tries to watch them again at
    /// each poll.
    pub(super) async fn renew_watch(&self, old: PathWatch) -> PathWatch {
        let paths = self.reloader_state.load().watched_files();
        let changes = Arc::clone(&self.change_counter);
        let renewed = tokio::task::spawn_blocking(move || {
            let watched = WatchedPaths::resolve_paths(paths.iter().map(PathBuf::as_path));
            renew_watch(old.folder_watch, watched, &changes)
        });
        let (watch, error) = match renewed.await {
            Ok((watch, result)) => (watch, result.err().map(|error| error.to_string())),
            Err(error) => (None, Some(error.to_string())),
        };
        if let Some(message) = error.as_deref().filter(|it| old.error.as_deref() != Some(it)) {
            (self.reload_log)(&ReloadNotice::Unwatched { message });
        }
        PathWatch { folder_watch: watch, error }
    }

    /// Checks the files once.
    ///
    /// 1. Inspect the files on a blocking thread. If they define the configuration in effect, the check ends. If they
    ///    cannot be read or used, the reload fails.
    /// 2. Unless `--authorization-config-reload-health-check` is false, send one SubjectAccessReview to each new
    ///    or changed webhook. If one does not answer with a review, the reload fails and the next check tries
    ///    again. If a file changes meanwhile, the check starts again.
    /// 3. Publish the new generation. If that fails, the reload fails and the next check tries again.
    ///
    /// A reload that fails changes no authorizer. Repeated checks of the same files count as one failure.
    pub(super) async fn check_files(&mut self) -> CheckResult {
        loop {
            // Subscribe before the files are read, so that the check does not miss a later change.
            let mut changes = self.change_counter.subscribe_to_changes();
            let inspected = self.inspect_files_on_blocking_thread().await;
            if !matches!(inspected, InspectionResult::Unreadable(_)) {
                self.last_read_error = None;
            }
            match inspected {
                InspectionResult::Unchanged { hash } => return self.keep_current_generation(hash),
                InspectionResult::Unreadable(error) => {
                    return self.report_unreadable_file(&error.to_string());
                }
                InspectionResult::Rejected(last_rejected) => {
                    return self.reject_files(last_rejected);
                }
                InspectionResult::Built(generation) => {
                    let health = tokio::select! {
                        biased;
                        health = self.check_webhook_health(&generation) => health,
                        // A webhook that is slow to answer must not delay a configuration without it.
                        () = wait_for_change(&mut changes) => continue,
                    };
                    return match health {
                        Ok(()) => self.publish_new_generation(*generation),
                        Err(error) => self.reject_until_next_check(&generation, &error.to_string()),
                    };
                }
            }
        }
    }

    async fn inspect_files_on_blocking_thread(&self) -> InspectionResult {
        let (inputs, generation) = (Arc::clone(&self.check_inputs), Arc::clone(&self.generation));
        let file_hash = self.file_hash.clone();
        let inspected = tokio::task::spawn_blocking(move || {
            let current = CurrentConfig {
                generation: &generation,
                file_hash: &file_hash,
                built_in_types: &inputs.built_in_types,
            };
            inspect_files(&inputs.authorizer_builder, &inputs.config_file_plan, &current)
        });
        inspected.await.unwrap_or_else(|error| {
            InspectionResult::Rejected(RejectedFiles {
                hash: self.file_hash.clone(),
                message: error.to_string(),
                diagnostics: Vec::new(),
                other_file_paths: Vec::new(),
                file_states: None,
            })
        })
    }

    async fn check_webhook_health(
        &self,
        generation: &Generation,
    ) -> Result<(), webhook_health_check::UnhealthyWebhooks> {
        match self.options.checks_webhook_health {
            true => webhook_health_check::check_new_webhooks(generation, &self.generation).await,
            false => Ok(()),
        }
    }

    /// Records that the files with this hash define the generation in effect. If the check before failed, this ends the
    /// failure.
    fn keep_current_generation(&mut self, hash: String) -> CheckResult {
        let mut last_attempt = self.reloader_state.load().last_attempt.clone();
        let is_other_hash = hash != self.file_hash;
        self.file_hash = hash;
        self.last_rejected_files = None;
        let observers = &self.check_inputs.authorizer_builder.observers;
        if last_attempt.as_ref().is_some_and(|attempt| attempt.error.is_some()) {
            let now = SystemTime::now();
            last_attempt = Some(ReloadAttempt { at: now, error: None });
            observers.on_reload(ReloadStatus::Success, now);
            (self.reload_log)(&ReloadNotice::Reverted(&self.generation));
        }
        if is_other_hash {
            let hash = Some(self.file_hash.as_str());
            self.generation.report_applied_config(hash, |it| observers.on_config_applied(it));
        }
        self.reloader_state.store(Arc::new(ReloaderState {
            file_hash: Some(self.file_hash.clone()),
            last_attempt,
            ..ReloaderState::new(Arc::clone(&self.generation))
        }));
        CheckResult::Unchanged
    }

    /// Rejects files. Only a new edit counts as a failure; a known one is logged again if its message has changed.
    fn reject_files(&mut self, rejected: RejectedFiles) -> CheckResult {
        let known = self
            .last_rejected_files
            .as_ref()
            .filter(|known| known.is_same_rejected_edit(&rejected));
        let is_known = known.is_some();
        let is_known_message = known.is_some_and(|known| known.message == rejected.message);
        let (message, diagnostics) = (rejected.message.clone(), rejected.diagnostics.clone());
        self.last_rejected_files = Some(rejected);
        self.record_reload_failure(&message);
        if !is_known {
            self.count_reload_failure();
        }
        if !is_known_message {
            self.log_reload_failure(&message, &diagnostics);
        }
        CheckResult::Failed(message)
    }

    /// Rejects valid files whose generation cannot take effect now.
    fn reject_until_next_check(&mut self, generation: &Generation, message: &str) -> CheckResult {
        self.reject_files(RejectedFiles {
            hash: generation.hash.clone().unwrap_or_default(),
            message: message.to_owned(),
            diagnostics: Vec::new(),
            other_file_paths: generation.file_paths().map(PathBuf::from).collect(),
            file_states: Some(generation.file_set.clone()),
        })
    }

    /// Reports that the configuration file cannot be read. The last rejected files stay known.
    fn report_unreadable_file(&mut self, message: &str) -> CheckResult {
        self.record_reload_failure(message);
        if self.last_read_error.as_deref() != Some(message) {
            self.last_read_error = Some(message.to_owned());
            self.count_reload_failure();
            self.log_reload_failure(message, &[]);
        }
        CheckResult::Failed(message.to_owned())
    }

    /// Publishes a generation, which then decides all requests that begin later.
    fn publish_new_generation(&mut self, generation: Generation) -> CheckResult {
        let generation = Arc::new(generation);
        if let Err(error) = (self.publish_generation)(&generation) {
            return self.reject_until_next_check(&generation, &error.to_string());
        }
        self.file_hash = generation.hash.clone().unwrap_or_default();
        self.last_rejected_files = None;
        self.generation = Arc::clone(&generation);
        let now = SystemTime::now();
        let attempt = ReloadAttempt { at: now, error: None };
        let reloader_state = ReloaderState::new(Arc::clone(&generation));
        self.reloader_state
            .store(Arc::new(ReloaderState { last_attempt: Some(attempt), ..reloader_state }));
        let observers = &self.check_inputs.authorizer_builder.observers;
        observers.on_reload(ReloadStatus::Success, now);
        let hash = generation.hash.as_deref();
        generation.report_applied_config(hash, |applied| observers.on_config_applied(applied));
        for warning in &generation.warnings {
            (self.reload_log)(&ReloadNotice::Warned(warning));
        }
        (self.reload_log)(&ReloadNotice::Applied(&generation));
        CheckResult::Applied(generation.generation_number)
    }

    fn count_reload_failure(&self) {
        self.check_inputs
            .authorizer_builder
            .observers
            .on_reload(ReloadStatus::Failure, SystemTime::now());
    }

    fn log_reload_failure(&self, message: &str, diagnostics: &[Diagnostic]) {
        let CheckInputs { authorizer_builder: builder, config_file_plan: plan, .. } =
            &*self.check_inputs;
        let file = builder.base_directory.join(&plan.path);
        (self.reload_log)(&ReloadNotice::Failed { file: &file, message, diagnostics });
    }

    /// Reports a failure to the status. The generation in effect stays.
    fn record_reload_failure(&self, message: &str) {
        let attempt = ReloadAttempt { at: SystemTime::now(), error: Some(message.to_owned()) };
        let last_rejected = self.last_rejected_files.as_ref();
        self.reloader_state.store(Arc::new(ReloaderState {
            generation: Arc::clone(&self.generation),
            file_hash: Some(self.file_hash.clone()),
            last_attempt: Some(attempt),
            rejected_config_hash: last_rejected.map(|last_rejected| last_rejected.hash.clone()),
            rejected_config_files: last_rejected
                .map(|last_rejected| last_rejected.other_file_paths.clone())
                .unwrap_or_default(),
        }));
    }
}
