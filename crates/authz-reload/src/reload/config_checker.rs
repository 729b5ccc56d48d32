//! Checks the files of a configuration: reads them, compares them with the configuration in effect, builds the
//! authorizers and publishes them.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::ArcSwap;
use authz_chain::AuthorizerType;
use document::Diagnostic;

use super::folder_watch::{FileChangeCounter, FolderWatch, renew_folder_watch, wait_for_change};
use super::inspect_files::{CurrentConfig, FileInspectionResult, RejectedFiles, inspect_files};
use super::watched_paths::WatchedPaths;
use super::webhook_health_check;
use super::{FileCheckResult, PublishGenerationFn, ReloadLogFn, ReloadOptions};
use crate::authorization_status::{ReloadAttempt, ReloaderState};
use crate::build_authorizers::AuthorizerBuilder;
use crate::config_generation::Generation;
use crate::observers::ReloadStatus;
use crate::plan_from_flags::ConfigFilePlan;
use crate::reload_notice::ReloadNotice;

/// Checks the files of a configuration. The reload task owns it.
pub(super) struct ConfigChecker {
    file_check_inputs: Arc<FileCheckInputs>,
    options: ReloadOptions,
    publish_generation: PublishGenerationFn,
    reload_log: ReloadLogFn,
    file_change_counter: Arc<FileChangeCounter>,
    reloader_state: Arc<ArcSwap<ReloaderState>>,
    generation: Arc<Generation>,
    /// The hash of the configuration file; see [`CurrentConfig::file_hash`].
    config_file_hash: String,
    /// The last rejected configuration, until a check finds another one. Each check inspects its files again, but
    /// only a new fault counts as a new failure.
    last_rejected_files: Option<RejectedFiles>,
    /// The error of the last check, if it could not read the configuration file.
    last_read_error: Option<String>,
}

/// The values that a check reads on a blocking thread.
struct FileCheckInputs {
    authorizer_builder: AuthorizerBuilder,
    config_file_plan: ConfigFilePlan,
    initial_built_in_types: BTreeSet<AuthorizerType>,
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
        publish: PublishGenerationFn,
        log: ReloadLogFn,
        reloader_state: Arc<ArcSwap<ReloaderState>>,
    ) -> Self {
        let built_in_types = first.configuration.built_in_types();
        Self {
            file_check_inputs: Arc::new(FileCheckInputs {
                authorizer_builder: builder,
                config_file_plan: plan,
                initial_built_in_types: built_in_types,
            }),
            options,
            publish_generation: publish,
            reload_log: log,
            file_change_counter: Arc::new(FileChangeCounter::new()),
            reloader_state,
            config_file_hash: first.hash.clone().unwrap_or_default(),
            generation: first,
            last_rejected_files: None,
            last_read_error: None,
        }
    }

    pub(super) fn file_change_counter(&self) -> &FileChangeCounter {
        &self.file_change_counter
    }

    pub(super) fn options(&self) -> &ReloadOptions {
        &self.options
    }

    /// Watches the current paths. The reloader polls paths that cannot be watched, and tries to watch them again at
    /// each poll.
    pub(super) async fn renew_file_watch(&self, old: PathWatch) -> PathWatch {
        let paths = self.reloader_state.load().watched_files();
        let changes = Arc::clone(&self.file_change_counter);
        let renewed = tokio::task::spawn_blocking(move || {
            let watched = WatchedPaths::resolve_watched_paths(paths.iter().map(PathBuf::as_path));
            renew_folder_watch(old.folder_watch, watched, &changes)
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
    pub(super) async fn check_files(&mut self) -> FileCheckResult {
        loop {
            // Subscribe before the files are read, so that the check does not miss a later change.
            let mut changes = self.file_change_counter.subscribe_to_changes();
            let inspected = self.inspect_files_on_blocking_thread().await;
            if !matches!(inspected, FileInspectionResult::Unreadable(_)) {
                self.last_read_error = None;
            }
            match inspected {
                FileInspectionResult::Unchanged { hash } => {
                    return self.keep_current_generation(hash);
                }
                FileInspectionResult::Unreadable(error) => {
                    return self.report_unreadable_file(&error.to_string());
                }
                FileInspectionResult::Rejected(last_rejected) => {
                    return self.reject_files(last_rejected);
                }
                FileInspectionResult::Built(generation) => {
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

    async fn inspect_files_on_blocking_thread(&self) -> FileInspectionResult {
        let (inputs, generation) =
            (Arc::clone(&self.file_check_inputs), Arc::clone(&self.generation));
        let file_hash = self.config_file_hash.clone();
        let inspected = tokio::task::spawn_blocking(move || {
            let current = CurrentConfig {
                generation: &generation,
                config_file_hash: &file_hash,
                initial_built_in_types: &inputs.initial_built_in_types,
            };
            inspect_files(&inputs.authorizer_builder, &inputs.config_file_plan, &current)
        });
        inspected.await.unwrap_or_else(|error| {
            FileInspectionResult::Rejected(RejectedFiles {
                hash: self.config_file_hash.clone(),
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
            true => {
                webhook_health_check::check_health_of_new_webhooks(generation, &self.generation)
                    .await
            }
            false => Ok(()),
        }
    }

    /// Records that the files with this hash define the generation in effect. If the check before failed, this ends the
    /// failure.
    fn keep_current_generation(&mut self, hash: String) -> FileCheckResult {
        let mut last_attempt = self.reloader_state.load().last_reload_attempt.clone();
        let is_other_hash = hash != self.config_file_hash;
        self.config_file_hash = hash;
        self.last_rejected_files = None;
        let observers = &self.file_check_inputs.authorizer_builder.observer_factory;
        if last_attempt.as_ref().is_some_and(|attempt| attempt.error.is_some()) {
            let now = SystemTime::now();
            last_attempt = Some(ReloadAttempt { at: now, error: None });
            observers.on_reload(ReloadStatus::Success, now);
            (self.reload_log)(&ReloadNotice::Reverted(&self.generation));
        }
        if is_other_hash {
            let hash = Some(self.config_file_hash.as_str());
            self.generation.report_applied_config(hash, |it| observers.on_config_applied(it));
        }
        self.reloader_state.store(Arc::new(ReloaderState {
            config_file_hash: Some(self.config_file_hash.clone()),
            last_reload_attempt: last_attempt,
            ..ReloaderState::new(Arc::clone(&self.generation))
        }));
        FileCheckResult::Unchanged
    }

    /// Rejects files. Only a new edit counts as a failure; a known one is logged again if its message has changed.
    fn reject_files(&mut self, rejected: RejectedFiles) -> FileCheckResult {
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
        FileCheckResult::Failed(message)
    }

    /// Rejects valid files whose generation cannot take effect now.
    fn reject_until_next_check(
        &mut self,
        generation: &Generation,
        message: &str,
    ) -> FileCheckResult {
        self.reject_files(RejectedFiles {
            hash: generation.hash.clone().unwrap_or_default(),
            message: message.to_owned(),
            diagnostics: Vec::new(),
            other_file_paths: generation.file_paths().map(PathBuf::from).collect(),
            file_states: Some(generation.file_set.clone()),
        })
    }

    /// Reports that the configuration file cannot be read. The last rejected files stay known.
    fn report_unreadable_file(&mut self, message: &str) -> FileCheckResult {
        self.record_reload_failure(message);
        if self.last_read_error.as_deref() != Some(message) {
            self.last_read_error = Some(message.to_owned());
            self.count_reload_failure();
            self.log_reload_failure(message, &[]);
        }
        FileCheckResult::Failed(message.to_owned())
    }

    /// Publishes a generation, which then decides all requests that begin later.
    fn publish_new_generation(&mut self, generation: Generation) -> FileCheckResult {
        let generation = Arc::new(generation);
        if let Err(error) = (self.publish_generation)(&generation) {
            return self.reject_until_next_check(&generation, &error.to_string());
        }
        self.config_file_hash = generation.hash.clone().unwrap_or_default();
        self.last_rejected_files = None;
        self.generation = Arc::clone(&generation);
        let now = SystemTime::now();
        let attempt = ReloadAttempt { at: now, error: None };
        let reloader_state = ReloaderState::new(Arc::clone(&generation));
        self.reloader_state.store(Arc::new(ReloaderState {
            last_reload_attempt: Some(attempt),
            ..reloader_state
        }));
        let observers = &self.file_check_inputs.authorizer_builder.observer_factory;
        observers.on_reload(ReloadStatus::Success, now);
        let hash = generation.hash.as_deref();
        generation.report_applied_config(hash, |applied| observers.on_config_applied(applied));
        for warning in &generation.warnings {
            (self.reload_log)(&ReloadNotice::Warned(warning));
        }
        (self.reload_log)(&ReloadNotice::Applied(&generation));
        FileCheckResult::Applied(generation.generation_number)
    }

    fn count_reload_failure(&self) {
        self.file_check_inputs
            .authorizer_builder
            .observer_factory
            .on_reload(ReloadStatus::Failure, SystemTime::now());
    }

    fn log_reload_failure(&self, message: &str, diagnostics: &[Diagnostic]) {
        let FileCheckInputs { authorizer_builder: builder, config_file_plan: plan, .. } =
            &*self.file_check_inputs;
        let file = builder.base_directory.join(&plan.path);
        (self.reload_log)(&ReloadNotice::Failed { file: &file, message, diagnostics });
    }

    /// Reports a failure to the status. The generation in effect stays.
    fn record_reload_failure(&self, message: &str) {
        let attempt = ReloadAttempt { at: SystemTime::now(), error: Some(message.to_owned()) };
        let last_rejected = self.last_rejected_files.as_ref();
        self.reloader_state.store(Arc::new(ReloaderState {
            generation: Arc::clone(&self.generation),
            config_file_hash: Some(self.config_file_hash.clone()),
            last_reload_attempt: Some(attempt),
            rejected_config_hash: last_rejected.map(|last_rejected| last_rejected.hash.clone()),
            rejected_config_files: last_rejected
                .map(|last_rejected| last_rejected.other_file_paths.clone())
                .unwrap_or_default(),
        }));
    }
}
