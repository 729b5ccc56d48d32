//! A folder with configuration files, a reloader of them, and the events that the reloader reports.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use authz_chain::{AuthorizerType, DecisionObserver};
use authz_reload::{
    AppliedConfig, AuthorizationObserverFactory, AuthorizationPlan, AuthorizerBuilder,
    ConfigFilePlan, Generation, PublishError, ReloadOptions, ReloadStatus, Reloader, StartError,
};
use tokio::sync::watch;
use tokio::time::timeout;

/// An interval longer than any test, so that no poll finds a change.
pub(crate) const NEVER: Duration = Duration::from_secs(3600);

/// The time within which a change takes effect on a machine that is not busy.
pub(crate) const AT_ONCE: Duration = Duration::from_secs(1);

/// The time that a test waits for a change. Builds on the same machine make tests wait for their turn.
const PATIENCE: Duration = Duration::from_secs(10);

/// The events that the reloader reported, in order.
#[derive(Debug, Default, Clone)]
pub(crate) struct Observed {
    /// The names of authorizers in each configuration that was published.
    pub(crate) published: Vec<String>,
    /// The result of each reload.
    pub(crate) reloads: Vec<ReloadStatus>,
    /// The hash of the configuration in effect.
    pub(crate) hash: Option<String>,
    /// The lines of the log.
    pub(crate) log: Vec<String>,
    /// The server refuses new generations.
    refuses_to_publish: bool,
}

impl Observed {
    pub(crate) fn failures(&self) -> usize {
        self.reloads.iter().filter(|status| **status == ReloadStatus::Failure).count()
    }

    pub(crate) fn successes(&self) -> usize {
        self.reloads.len() - self.failures()
    }
}

/// Records events, and wakes the tests that wait for one.
#[derive(Default, Clone)]
struct Listener(Arc<watch::Sender<Observed>>);

impl AuthorizationObserverFactory for Listener {
    fn create_webhook_observer(&self, _name: &str) -> Arc<dyn authz_webhook::WebhookObserver> {
        Arc::new(authz_webhook::NoObserver)
    }

    fn create_decision_observer(
        &self,
        _kind: AuthorizerType,
        _name: &str,
    ) -> Option<DecisionObserver> {
        None
    }

    fn connection_observer(&self) -> Arc<dyn https_client::CertificateObserver> {
        Arc::new(https_client::NoCertificateObserver)
    }

    fn on_reload(&self, status: ReloadStatus, _at: SystemTime) {
        self.0.send_modify(|observed| observed.reloads.push(status));
    }

    fn on_config_applied(&self, applied: &AppliedConfig<'_>) {
        self.0.send_modify(|observed| observed.hash = applied.hash.map(str::to_owned));
    }
}

/// A folder with files, and perhaps a reloader of them.
pub(crate) struct Stage {
    folder: tempfile::TempDir,
    listener: Listener,
    policy_file: Option<PathBuf>,
    pub(crate) resolver: Option<Arc<dyn https_client::ServiceResolver>>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, listener: Listener::default(), policy_file: None, resolver: None }
    }

    pub(crate) fn with_policy(mut self, name: &str) -> Self {
        self.policy_file = Some(self.path(name));
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        std::fs::write(self.path(name), content).unwrap();
    }

    /// Replaces a file atomically.
    pub(crate) fn rename(&self, name: &str, content: &str) {
        let new = self.path(&format!("{name}.new"));
        std::fs::write(&new, content).unwrap();
        std::fs::rename(new, self.path(name)).unwrap();
    }

    pub(crate) fn builder(&self) -> AuthorizerBuilder {
        AuthorizerBuilder {
            observer_factory: Arc::new(self.listener.clone()),
            service_resolver: self.resolver.clone(),
            base_directory: self.folder.path().to_owned(),
            ..AuthorizerBuilder::new().unwrap()
        }
    }

    pub(crate) fn plan(&self, file: &str) -> AuthorizationPlan {
        AuthorizationPlan::File(ConfigFilePlan {
            path: PathBuf::from(file),
            abac_policy_file: self.policy_file.clone(),
        })
    }

    /// The first generation from a file.
    pub(crate) fn start(&self, file: &str) -> Result<Generation, StartError> {
        self.builder().build_first_generation(&self.plan(file))
    }

    /// Starts a reloader that reads the file when the system reports a change, and never polls. It does not check the
    /// health of webhooks, so that tests may count their calls.
    pub(crate) fn start_watching(&self, file: &str) -> Reloader {
        let options = ReloadOptions {
            poll_interval: NEVER,
            checks_webhook_health: false,
            ..ReloadOptions::default()
        };
        self.start_reloader(file, options)
    }

    /// Starts a reloader that reads the file only on request, and does not check the health of webhooks.
    pub(crate) fn start_unwatched(&self, file: &str) -> Reloader {
        let options = ReloadOptions {
            poll_interval: NEVER,
            watches_files: false,
            checks_webhook_health: false,
        };
        self.start_reloader(file, options)
    }

    pub(crate) fn start_reloader(&self, file: &str, options: ReloadOptions) -> Reloader {
        let first = Arc::new(self.start(file).unwrap());
        let (published, logged) = (self.listener.clone(), self.listener.clone());
        Reloader::start(
            self.builder(),
            &self.plan(file),
            first,
            options,
            Arc::new(move |generation| {
                if published.0.borrow().refuses_to_publish {
                    return Err(PublishError("no room".into()));
                }
                published.0.send_modify(|observed| observed.published.push(names(generation)));
                Ok(())
            }),
            Arc::new(move |notice| {
                logged.0.send_modify(|observed| observed.log.push(notice.to_string()));
            }),
        )
    }

    /// Makes the server refuse or accept new generations.
    pub(crate) fn refuse_to_publish(&self, is_refused: bool) {
        self.listener.0.send_modify(|observed| observed.refuses_to_publish = is_refused);
    }

    pub(crate) fn observed(&self) -> Observed {
        self.listener.0.borrow().clone()
    }

    /// Waits until the observed events are as expected, and fails if that takes too long.
    pub(crate) async fn wait_until(
        &self,
        what: &str,
        is_reached: impl Fn(&Observed) -> bool,
    ) -> Observed {
        let mut events = self.listener.0.subscribe();
        let reached = timeout(PATIENCE, events.wait_for(is_reached)).await;
        match reached {
            Ok(observed) => observed.unwrap().clone(),
            Err(_) => panic!("{what}: {:?}", self.observed()),
        }
    }

    /// Waits until the task of a dropped reloader is gone. The task owns the other references to the listener.
    pub(crate) async fn wait_for_end_of_task(&self) {
        let is_gone = || Arc::strong_count(&self.listener.0) == 1;
        let gone = async {
            while !is_gone() {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, gone).await.unwrap();
    }
}

/// The names of the authorizers in order.
pub(crate) fn names(generation: &Generation) -> String {
    generation.authorizer_slots.iter().map(|slot| slot.name()).collect::<Vec<_>>().join(",")
}

/// A configuration of built-in types.
pub(crate) fn built_in(types: &[&str]) -> String {
    let mut text = header();
    for kind in types {
        text += &format!("- type: {kind}\n  name: {}\n", kind.to_lowercase());
    }
    text
}

/// A configuration of a webhook and RBAC.
pub(crate) fn with_webhook(name: &str, kubeconfig: &Path) -> String {
    webhook_entry(&header(), name, kubeconfig) + "- type: RBAC\n  name: rbac\n"
}

pub(crate) fn webhook_entry(before: &str, name: &str, kubeconfig: &Path) -> String {
    format!(
        "{before}- type: Webhook\n  name: {name}\n  webhook:\n    timeout: 3s\n    \
         authorizedTTL: 1m\n    unauthorizedTTL: 1m\n    subjectAccessReviewVersion: v1\n    \
         failurePolicy: Deny\n    connectionInfo:\n      type: KubeConfigFile\n      \
         kubeConfigFile: {}\n",
        kubeconfig.display()
    )
}

pub(crate) fn header() -> String {
    "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n"
        .to_owned()
}
