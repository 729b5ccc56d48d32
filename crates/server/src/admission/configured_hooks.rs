//! The configured hooks and initializers as a part of the cluster snapshot, with the connections to the
//! hooks.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use admission::{Configuration, ConfigurationKind, Snapshot};
use admission_hooks::{HookConnections, HookEnvironment};
use api_object::Tree;
use codec::JsonError;

/// The hooks and initializers that are configured through the API, at one revision.
#[derive(Clone)]
pub struct ConfiguredHooks {
    /// The compiled configurations, by path in the store.
    compiled_configurations: Arc<BTreeMap<String, Arc<Configuration>>>,
    /// The errors of stored configurations that cannot be decoded, by path.
    pub(crate) undecodable_configurations: Arc<BTreeMap<String, String>>,
    /// The configurations from before the last full read of the store. One of them stays in force if the object at
    /// its path can no longer be decoded.
    last_known_configurations: Arc<BTreeMap<String, Arc<Configuration>>>,
    /// All configurations, ordered and indexed.
    pub(crate) hook_index: Arc<Snapshot>,
    /// The connections to the hooks.
    pub(crate) hook_connections: Arc<HookConnections>,
    hook_environment: Arc<HookEnvironment>,
}

/// The paths of the kinds that configure admission, below the prefix of the store.
pub(crate) const CONFIGURATION_PATHS: [(&str, ConfigurationKind); 4] = [
    (
        "admissionregistration.k8s.io/externaladmissionhookconfigurations/",
        ConfigurationKind::ExternalHook,
    ),
    ("admissionregistration.k8s.io/initializerconfigurations/", ConfigurationKind::Initializer),
    ("mutatingwebhookconfigurations/", ConfigurationKind::Mutating),
    ("validatingwebhookconfigurations/", ConfigurationKind::Validating),
];

/// The kind of the configuration at a path; `None` for other objects.
pub(crate) fn configuration_kind_at_path(path: &str) -> Option<ConfigurationKind> {
    let entry = CONFIGURATION_PATHS.iter().find(|(prefix, _)| path.starts_with(prefix));
    entry.map(|(_, kind)| *kind)
}

/// A configuration that was stored or deleted.
pub(crate) struct AdmissionConfigChange {
    /// The path of the configuration below the prefix of the store.
    pub(crate) path: String,
    pub(crate) kind: ConfigurationKind,
    /// `None` if it was deleted; an error if it cannot be decoded.
    pub(crate) object_tree: Option<Result<Tree, JsonError>>,
}

impl ConfiguredHooks {
    /// Creates a value without configurations and connections.
    pub(crate) fn without_hooks(hook_environment: Arc<HookEnvironment>) -> Self {
        Self {
            compiled_configurations: Arc::default(),
            undecodable_configurations: Arc::default(),
            last_known_configurations: Arc::default(),
            hook_index: Arc::new(Snapshot::new(&[])),
            hook_connections: Arc::default(),
            hook_environment,
        }
    }

    /// Returns a copy without configurations. It keeps the hook connections and the last known configurations, and
    /// serves as the base when the server rereads the whole store.
    pub(crate) fn without_configurations(&self) -> Self {
        Self {
            compiled_configurations: Arc::default(),
            undecodable_configurations: Arc::default(),
            last_known_configurations: Arc::clone(&self.compiled_configurations),
            hook_index: Arc::new(Snapshot::new(&[])),
            hook_connections: Arc::clone(&self.hook_connections),
            hook_environment: Arc::clone(&self.hook_environment),
        }
    }

    /// The bytes of memory that the regular expressions of all configurations take, without the one that is about
    /// to be replaced.
    pub(super) fn regex_bytes_except(&self, kind: ConfigurationKind, name: &str) -> usize {
        let others = self.compiled_configurations.values();
        let others = others.filter(|other| other.kind() != kind || other.name() != name);
        others.map(|other| other.compiled_regex_bytes()).sum()
    }

    /// Applies changes. Only changed configurations are compiled, and connections are reused.
    ///
    /// A configuration that cannot be decoded does not affect the others. If this server knows its last
    /// decodable state, that stays in force: a hook does not vanish because of damaged bytes.
    pub(crate) fn with_configuration_changes(&self, changes: Vec<AdmissionConfigChange>) -> Self {
        let mut configurations = self.compiled_configurations.as_ref().clone();
        let mut undecodable = self.undecodable_configurations.as_ref().clone();
        for AdmissionConfigChange { path, kind, object_tree: tree } in changes {
            undecodable.remove(&path);
            match tree {
                None => {
                    configurations.remove(&path);
                }
                Some(Ok(tree)) => {
                    configurations
                        .insert(path, Arc::new(Configuration::compile_configuration(kind, &tree)));
                }
                Some(Err(why)) => {
                    if let Some(known) = self.last_known_configurations.get(&path) {
                        configurations.entry(path.clone()).or_insert_with(|| Arc::clone(known));
                    }
                    undecodable.insert(path, why.to_string());
                }
            }
        }
        let all: Vec<Arc<Configuration>> = configurations.values().cloned().collect();
        let snapshot = Snapshot::new(&all);
        let connections =
            HookConnections::new(&snapshot, &self.hook_environment, &self.hook_connections);
        Self {
            compiled_configurations: Arc::new(configurations),
            undecodable_configurations: Arc::new(undecodable),
            last_known_configurations: Arc::default(),
            hook_index: Arc::new(snapshot),
            hook_connections: Arc::new(connections),
            hook_environment: Arc::clone(&self.hook_environment),
        }
    }
}

impl fmt::Debug for ConfiguredHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfiguredHooks")
            .field("configurations", &self.compiled_configurations.len())
            .finish()
    }
}
