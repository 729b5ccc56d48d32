//! A server's view of its configuration: files in a folder, a reloader, and what it tells.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use authz_chain::{AuthorizerType, DecisionObserver};
use authz_reload::{
    AppliedConfig, Assembler, AuthorizationObservers, AuthorizationPlan, ConfigFilePlan,
    Generation, PublishError, ReloadOptions, ReloadStatus, Reloader, StartError,
};

/// Longer than any test runs: nothing is found by polling.
pub(crate) const NEVER: Duration = Duration::from_secs(3600);

/// How long a change may take to be in effect.
pub(crate) const AT_ONCE: Duration = Duration::from_secs(1);

/// What was told, in order.
#[derive(Debug, Default, Clone)]
pub(crate) struct Told {
    /// The names of authorizers in each configuration that was published.
    pub(crate) published: Vec<String>,
    /// How each reload ended.
    pub(crate) reloads: Vec<ReloadStatus>,
    /// The hash of what is in effect.
    pub(crate) hash: Option<String>,
    /// The lines of the log.
    pub(crate) log: Vec<String>,
    /// The server refuses new generations.
    refuses_to_publish: bool,
}

impl Told {
    pub(crate) fn failures(&self) -> usize {
        self.reloads.iter().filter(|status| **status == ReloadStatus::Failure).count()
    }

    pub(crate) fn successes(&self) -> usize {
        self.reloads.len() - self.failures()
    }
}

#[derive(Default, Clone)]
struct Listener(Arc<Mutex<Told>>);

impl AuthorizationObservers for Listener {
    fn webhook_observer(&self, _name: &str) -> Arc<dyn authz_webhook::WebhookObserver> {
        Arc::new(authz_webhook::NoObserver)
    }

    fn authorizer_observer(&self, _kind: AuthorizerType, _name: &str) -> Option<DecisionObserver> {
        None
    }

    fn connection_observer(&self) -> Arc<dyn https_client::CertificateObserver> {
        Arc::new(https_client::NoCertificateObserver)
    }

    fn on_reload(&self, status: ReloadStatus, _at: SystemTime) {
        self.0.lock().unwrap().reloads.push(status);
    }

    fn on_config_applied(&self, applied: &AppliedConfig<'_>) {
        self.0.lock().unwrap().hash = applied.hash.map(str::to_owned);
    }
}

/// A folder with files, and perhaps a server that follows them.
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

    /// Puts a new file where another one is, in one step.
    pub(crate) fn rename(&self, name: &str, content: &str) {
        let new = self.path(&format!("{name}.new"));
        std::fs::write(&new, content).unwrap();
        std::fs::rename(new, self.path(name)).unwrap();
    }

    pub(crate) fn assembler(&self) -> Assembler {
        Assembler {
            observers: Arc::new(self.listener.clone()),
            resolver: self.resolver.clone(),
            directory: self.folder.path().to_owned(),
            ..Assembler::new().unwrap()
        }
    }

    pub(crate) fn plan(&self, file: &str) -> AuthorizationPlan {
        AuthorizationPlan::File(ConfigFilePlan {
            path: PathBuf::from(file),
            policy_file: self.policy_file.clone(),
        })
    }

    /// The first generation from a file.
    pub(crate) fn start(&self, file: &str) -> Result<Generation, StartError> {
        self.assembler().start(&self.plan(file))
    }

    /// A server that looks at the file when it hears something, and not by itself.
    pub(crate) fn follow(&self, file: &str) -> Reloader {
        self.follow_with(file, ReloadOptions { poll: NEVER, ..ReloadOptions::default() })
    }

    /// A server that looks at the file only when it is told to.
    pub(crate) fn deaf(&self, file: &str) -> Reloader {
        let options = ReloadOptions { poll: NEVER, has_watch: false, ..ReloadOptions::default() };
        self.follow_with(file, options)
    }

    pub(crate) fn follow_with(&self, file: &str, options: ReloadOptions) -> Reloader {
        let first = Arc::new(self.start(file).unwrap());
        let (published, logged) = (self.listener.clone(), self.listener.clone());
        Reloader::start(
            self.assembler(),
            &self.plan(file),
            first,
            options,
            Arc::new(move |generation| {
                let mut told = published.0.lock().unwrap();
                if told.refuses_to_publish {
                    return Err(PublishError("no room".into()));
                }
                told.published.push(names(generation));
                Ok(())
            }),
            Arc::new(move |notice| logged.0.lock().unwrap().log.push(notice.to_string())),
        )
    }

    /// Makes the server refuse or accept new generations.
    pub(crate) fn refuse_to_publish(&self, is_refused: bool) {
        self.listener.0.lock().unwrap().refuses_to_publish = is_refused;
    }

    pub(crate) fn told(&self) -> Told {
        self.listener.0.lock().unwrap().clone()
    }

    /// Waits until what was told is as it should be, and no longer than a change may take.
    pub(crate) async fn hear(&self, what: &str, is_right: impl Fn(&Told) -> bool) -> Told {
        let start = Instant::now();
        loop {
            let told = self.told();
            if is_right(&told) {
                return told;
            }
            assert!(start.elapsed() < AT_ONCE * patience(), "{what}: {told:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// A change is in effect within a second, unless the machine does other things: builds that share
/// it make tests wait for their turn.
fn patience() -> u32 {
    10
}

/// The names of the authorizers in order.
pub(crate) fn names(generation: &Generation) -> String {
    generation.slots.iter().map(|slot| slot.name()).collect::<Vec<_>>().join(",")
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
