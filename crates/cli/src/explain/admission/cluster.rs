//! What manifests say about the cluster that objects are written to.

use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;

use admission::{Configuration, ConfigurationKind, Snapshot};
use api_object::Tree;
use api_resources::{Definition, Registry};
use document::Diagnostic;
use jiff::Timestamp;
use manifests::{KindHandling, WholeObject};

use crate::admission::{Rules, examine, keeps};
use crate::offline::{CallFlags, Policy, PolicyFlags, Unusable, Wanted, Webhooks};

/// What is known of a cluster.
pub(super) struct Cluster {
    /// The hooks and initializers.
    pub(super) snapshot: Snapshot,
    /// Which resources there are.
    pub(super) registry: Registry,
    /// Answers what match conditions ask.
    pub(super) policy: Policy,
    namespaces: HashMap<String, Tree>,
}

const NAMESPACE: (&str, &str) = ("v1", "Namespace");
const DEFINITION: (&str, &str) = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");

impl Cluster {
    /// Reads everything that the flags name.
    ///
    /// # Errors
    /// Something is missing or wrong.
    pub(super) fn load(
        flags: &PolicyFlags,
        calls: &CallFlags,
        stdin: &mut dyn Read,
    ) -> Result<Self, Unusable> {
        let webhooks = if calls.no_webhooks { Webhooks::LeftOpen } else { Webhooks::Called };
        let wanted = Wanted { keeps: &wants, faults: &faults };
        let (policy, kept) = Policy::load_with(flags, webhooks, stdin, wanted)?;
        let mut configurations = Vec::new();
        let mut namespaces = Vec::new();
        let mut definitions = Vec::new();
        for kept in kept {
            match (kept.api_version(), kept.kind_name()) {
                NAMESPACE => namespaces.push(kept),
                DEFINITION => definitions.push(kept),
                // What is wrong with one was told already.
                _ => configurations.extend(examine(kept, Rules::Stored).ok()),
            }
        }
        let configurations: Vec<Arc<Configuration>> = configurations
            .iter()
            .map(|examined| Arc::new(Configuration::compile(examined.kind, &examined.tree)))
            .collect();
        let registry = registry(&definitions)?;
        let namespaces = namespaces.iter().map(|kept| namespace(kept, &registry));
        Ok(Self {
            snapshot: Snapshot::new(&configurations),
            namespaces: namespaces.collect::<Result<_, Unusable>>()?,
            registry,
            policy,
        })
    }

    /// A namespace as it is stored, if a manifest has it.
    pub(super) fn namespace(&self, name: &str) -> Option<&Tree> {
        self.namespaces.get(name)
    }
}

/// Configurations of admission, and what they look at besides the object.
fn wants(api_version: &str, kind: &str) -> KindHandling {
    match (api_version, kind) {
        NAMESPACE | DEFINITION => KindHandling::KeepWhole,
        (api_version, kind) => keeps(api_version, kind),
    }
}

/// Configurations are held against the rules for what a server has: they may have been raised to
/// `Fail` long ago.
fn faults(kept: &WholeObject) -> Vec<Diagnostic> {
    match ConfigurationKind::from_type_meta(kept.api_version(), kept.kind_name()) {
        Some(_) => examine(kept.clone(), Rules::Stored).err().unwrap_or_default(),
        None => Vec::new(),
    }
}

/// The resources of a server that has these definitions and serves what they define.
fn registry(definitions: &[WholeObject]) -> Result<Registry, Unusable> {
    let built_in = Registry::built_in();
    let mut trees: Vec<Tree> = Vec::new();
    for kept in definitions {
        let mut tree = settled(kept, &built_in)?;
        let others: Vec<Definition> = trees.iter().filter_map(Definition::read).collect();
        // When that happened is of no interest.
        api_resources::accept_names(&mut tree, &others, Timestamp::UNIX_EPOCH);
        api_resources::mark_established(&mut tree, Timestamp::UNIX_EPOCH);
        trees.push(tree);
    }
    let (registry, faults) = Registry::with_definitions(&trees.iter().collect::<Vec<_>>());
    match faults.first() {
        None => Ok(registry),
        Some((name, why)) => {
            Err(Unusable::broken(format!("CustomResourceDefinition `{name}` {why}")))
        }
    }
}

fn namespace(kept: &WholeObject, registry: &Registry) -> Result<(String, Tree), Unusable> {
    Ok((kept.name().to_owned(), settled(kept, registry)?))
}

/// An object of the cluster as a server would have stored it.
fn settled(kept: &WholeObject, registry: &Registry) -> Result<Tree, Unusable> {
    let place = kept.place();
    let wrong = |why: &str| {
        let (file, line, column) = (&kept.file, place.line, place.column);
        Unusable::broken(format!("{file}:{line}:{column}: {why}"))
    };
    let (group, version) = kept.api_version().split_once('/').unwrap_or(("", kept.api_version()));
    let resource = registry.resource_of_kind(group, version, kept.kind_name());
    let Some(resource) = resource else { return Err(wrong("nobody knows this kind")) };
    let mut tree = kept.value.clone();
    api_object::normalize_metadata(&mut tree).map_err(|error| wrong(&error.to_string()))?;
    let status = tree.get("status").cloned();
    api_resources::prepare_create(resource, &mut tree).map_err(|status| wrong(&status.message))?;
    if let Some(status) = status {
        tree.insert("status".to_owned(), status);
    }
    Ok(tree)
}
