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
    configurations: Arc<BTreeMap<String, Arc<Configuration>>>,
    /// The errors of stored configurations that can not be decoded, by path.
    pub(crate) undecodable: Arc<BTreeMap<String, String>>,
    /// The configurations before the store is read again from scratch. One of them stays in force if the
    /// object at its path can not be decoded any more.
    last_known_configurations: Arc<BTreeMap<String, Arc<Configuration>>>,
    /// All configurations, ordered and indexed.
    pub(crate) snapshot: Arc<Snapshot>,
    /// The connections to the hooks.
    pub(crate) connections: Arc<HookConnections>,
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
pub(crate) fn configuration_kind_at(path: &str) -> Option<ConfigurationKind> {
    let entry = CONFIGURATION_PATHS.iter().find(|(prefix, _)| path.starts_with(prefix));
    entry.map(|(_, kind)| *kind)
}

/// A configuration that was stored or deleted.
pub(crate) struct ConfigurationChange {
    /// Its path below the prefix of the store.
    pub(crate) path: String,
    pub(crate) kind: ConfigurationKind,
    /// `None` if it was deleted; an error if it can not be decoded.
    pub(crate) tree: Option<Result<Tree, JsonError>>,
}

impl ConfiguredHooks {
    /// No configuration and no connections.
    pub(crate) fn empty(hook_environment: Arc<HookEnvironment>) -> Self {
        Self {
            configurations: Arc::default(),
            undecodable: Arc::default(),
            last_known_configurations: Arc::default(),
            snapshot: Arc::new(Snapshot::new(&[])),
            connections: Arc::default(),
            hook_environment,
        }
    }

    /// No configuration, but with the connections and the last known configurations of this value, for
    /// reading the store again from scratch.
    pub(crate) fn without_configurations(&self) -> Self {
        Self {
            configurations: Arc::default(),
            undecodable: Arc::default(),
            last_known_configurations: Arc::clone(&self.configurations),
            snapshot: Arc::new(Snapshot::new(&[])),
            connections: Arc::clone(&self.connections),
            hook_environment: Arc::clone(&self.hook_environment),
        }
    }

    /// The bytes of memory that the regular expressions of all configurations take, without the one that is about
    /// to be replaced.
    pub(super) fn pattern_bytes_except(&self, kind: ConfigurationKind, name: &str) -> usize {
        let others = self.configurations.values();
        let others = others.filter(|other| other.kind() != kind || other.name() != name);
        others.map(|other| other.pattern_bytes()).sum()
    }

    /// Applies changes. Only changed configurations are compiled, and connections are reused.
    ///
    /// A configuration that can not be decoded does not affect the others. If this server knows its last
    /// decodable state, that stays in force: a hook does not vanish because of damaged bytes.
    pub(crate) fn with_configuration_changes(&self, changes: Vec<ConfigurationChange>) -> Self {
        let mut configurations = self.configurations.as_ref().clone();
        let mut undecodable = self.undecodable.as_ref().clone();
        for ConfigurationChange { path, kind, tree } in changes {
            undecodable.remove(&path);
            match tree {
                None => {
                    configurations.remove(&path);
                }
                Some(Ok(tree)) => {
                    configurations.insert(path, Arc::new(Configuration::compile(kind, &tree)));
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
            HookConnections::new(&snapshot, &self.hook_environment, &self.connections);
        Self {
            configurations: Arc::new(configurations),
            undecodable: Arc::new(undecodable),
            last_known_configurations: Arc::default(),
            snapshot: Arc::new(snapshot),
            connections: Arc::new(connections),
            hook_environment: Arc::clone(&self.hook_environment),
        }
    }
}

impl fmt::Debug for ConfiguredHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks").field("configurations", &self.configurations.len()).finish()
    }
}
