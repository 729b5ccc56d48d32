//! The hooks and initializers of dynamic admission as part of the picture: what is configured, and
//! the ways to the hooks.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use admission::{Configuration, ConfigurationKind, Snapshot};
use admission_hooks::{Connections, HookEnvironment};
use api_object::Tree;
use store::{Key, KeyError};

/// What is configured through the API, at one moment.
#[derive(Clone)]
pub struct Hooks {
    /// Compiled, by where they are stored.
    configurations: Arc<BTreeMap<String, Arc<Configuration>>>,
    /// What is stored and can not be read, and why.
    pub(crate) unreadable: Arc<BTreeMap<String, String>>,
    /// Those that were known before everything is read again. One of them stays in force if the next thing
    /// that is read in its place can not be decoded.
    last_known: Arc<BTreeMap<String, Arc<Configuration>>>,
    /// All of them, in order and indexed.
    pub(crate) snapshot: Arc<Snapshot>,
    /// The ways to the hooks.
    pub(crate) connections: Arc<Connections>,
    surroundings: Arc<HookEnvironment>,
}

/// Where the kinds that configure admission are stored, below the prefix.
pub(crate) const CONFIGURATION_PATHS: [(&str, ConfigurationKind); 4] = [
    (
        "admissionregistration.k8s.io/externaladmissionhookconfigurations/",
        ConfigurationKind::ExternalHook,
    ),
    ("admissionregistration.k8s.io/initializerconfigurations/", ConfigurationKind::Initializer),
    ("mutatingwebhookconfigurations/", ConfigurationKind::Mutating),
    ("validatingwebhookconfigurations/", ConfigurationKind::Validating),
];

/// Moves with every write of a kind that configures admission.
pub(crate) const MARK_PATH: &str = "admission-config-revision";

/// The key of that, below a prefix without a slash at its end.
pub(crate) fn mark_key(prefix: &str) -> Result<Key, KeyError> {
    Key::new(&format!("{prefix}/{MARK_PATH}"))
}

/// The kind of what is stored at a path, if it configures admission.
pub(crate) fn kind_at(path: &str) -> Option<ConfigurationKind> {
    let found = CONFIGURATION_PATHS.iter().find(|(prefix, _)| path.starts_with(prefix));
    found.map(|(_, kind)| *kind)
}

/// A configuration that was stored or removed.
pub(crate) struct Changed {
    /// Where, below the prefix.
    pub(crate) path: String,
    pub(crate) kind: ConfigurationKind,
    /// `None` if it was removed; an error if it can not be read.
    pub(crate) tree: Option<Result<Tree, String>>,
}

impl Hooks {
    /// Nothing is configured.
    pub(crate) fn none(surroundings: Arc<HookEnvironment>) -> Self {
        Self {
            configurations: Arc::default(),
            unreadable: Arc::default(),
            last_known: Arc::default(),
            snapshot: Arc::new(Snapshot::new(&[])),
            connections: Arc::default(),
            surroundings,
        }
    }

    /// Nothing is configured, but there are ways to who was.
    pub(crate) fn cleared(&self) -> Self {
        Self {
            configurations: Arc::default(),
            unreadable: Arc::default(),
            last_known: Arc::clone(&self.configurations),
            snapshot: Arc::new(Snapshot::new(&[])),
            connections: Arc::clone(&self.connections),
            surroundings: Arc::clone(&self.surroundings),
        }
    }

    /// The hooks after these changes. Only what changed is compiled again, and connections are kept.
    ///
    /// A configuration that can not be decoded must not stop the others, and says nothing. Where this server
    /// knows what it said before, that stays in force: a hook does not vanish because of damaged bytes.
    pub(crate) fn with_changes(&self, changes: Vec<Changed>) -> Self {
        let mut configurations = self.configurations.as_ref().clone();
        let mut unreadable = self.unreadable.as_ref().clone();
        for Changed { path, kind, tree } in changes {
            unreadable.remove(&path);
            match tree {
                None => {
                    configurations.remove(&path);
                }
                Some(Ok(tree)) => {
                    configurations.insert(path, Arc::new(Configuration::compile(kind, &tree)));
                }
                Some(Err(why)) => {
                    if let Some(known) = self.last_known.get(&path) {
                        configurations.entry(path.clone()).or_insert_with(|| Arc::clone(known));
                    }
                    unreadable.insert(path, why);
                }
            }
        }
        let all: Vec<Arc<Configuration>> = configurations.values().cloned().collect();
        let snapshot = Snapshot::new(&all);
        let connections = Connections::new(&snapshot, &self.surroundings, &self.connections);
        Self {
            configurations: Arc::new(configurations),
            unreadable: Arc::new(unreadable),
            last_known: Arc::default(),
            snapshot: Arc::new(snapshot),
            connections: Arc::new(connections),
            surroundings: Arc::clone(&self.surroundings),
        }
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks").field("configurations", &self.configurations.len()).finish()
    }
}
