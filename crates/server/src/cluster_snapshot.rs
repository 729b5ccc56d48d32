//! What the server decides from: an immutable picture of some of its own objects, swapped whole.

mod namespace;
mod roles;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use admission::ConfigurationKind;
use api_object::Tree;
use api_resources::Registry;
use authz_chain::{AuthorizerSlot, Chain, ConfigurationError};
use serde_json::Value;
use store::{Change, Event, Item, Revision};

pub use self::namespace::{Namespace, NamespacePhase};
use self::roles::apply_rbac;
use crate::hooks::{Changed, Hooks, MARK_PATH, kind_at};
use crate::initialize::{UNINITIALIZED_PATH, WAITING_PATH, is_shown};

/// A definition as it is stored.
#[derive(Debug, Clone)]
pub struct StoredDefinition {
    /// The object.
    pub tree: Arc<Tree>,
    /// The revision that wrote it.
    pub mod_rev: Revision,
}

/// The picture, as of one revision of the store.
#[derive(Clone)]
pub struct ClusterSnapshot {
    /// Everything up to here is in it.
    pub revision: Revision,
    /// Roles and bindings.
    pub rbac: Arc<authz_rbac::Snapshot>,
    /// What nodes may reach.
    pub node: Arc<authz_node::Snapshot>,
    /// The authorizers over these two, in order.
    pub chain: Arc<Chain>,
    /// The namespaces there are.
    pub namespaces: Arc<HashMap<String, Namespace>>,
    /// CustomResourceDefinitions by name.
    pub definitions: Arc<BTreeMap<String, StoredDefinition>>,
    /// Which resources are served.
    pub registry: Arc<Registry>,
    /// Who is asked before something is stored.
    pub hooks: Hooks,
    /// When they were configured last: where their mark is.
    pub mark: Option<Revision>,
    /// Objects that decisions would depend on but that can not be decoded, by where they are stored, with
    /// the reason. They count as absent.
    pub undecodable: Arc<BTreeMap<String, String>>,
    /// Where resources are stored that have, or once had, objects that are not initialized.
    pub uninitialized: Arc<BTreeSet<String>>,
    slots: Arc<[AuthorizerSlot]>,
}

/// Which objects the picture is made of, by where they are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tracked {
    Rbac,
    Node,
    Namespace,
    Definition,
    Hooks(ConfigurationKind),
    /// Moves with every change of the hooks.
    Mark,
    Uninitialized,
    /// Records of objects that wait for initializers, which are counted beside the cluster.
    Waiting,
    /// No decision depends on where services are, but who has written one wants it to be found.
    Address,
}

/// The storage paths that are followed. All are read at start; the order does not matter.
pub(crate) const TRACKED_PATHS: [&str; 19] = [
    "roles",
    "rolebindings",
    "clusterroles",
    "clusterrolebindings",
    "namespaces",
    "pods",
    "persistentvolumes",
    "volumeattachments",
    "resourceslices",
    "podcertificaterequests",
    "services/specs",
    "endpointslices",
    "apiextensions.k8s.io/customresourcedefinitions",
    "admissionregistration.k8s.io/externaladmissionhookconfigurations",
    "admissionregistration.k8s.io/initializerconfigurations",
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
    UNINITIALIZED_PATH,
    WAITING_PATH,
];

/// A key that was written or deleted.
struct Altered<'b> {
    /// The whole key, or the path below the prefix.
    key: &'b str,
    /// When.
    at: Revision,
    prev: Option<&'b bytes::Bytes>,
    value: Option<&'b bytes::Bytes>,
}

/// What has to be made anew after some events.
#[derive(Default)]
struct Touched {
    rbac: Option<authz_rbac::Snapshot>,
    node: Option<authz_node::Snapshot>,
    namespaces: Option<HashMap<String, Namespace>>,
    definitions: Option<BTreeMap<String, StoredDefinition>>,
    hooks: Vec<Changed>,
    mark: Option<Option<Revision>>,
    undecodable: Option<BTreeMap<String, String>>,
    uninitialized: Option<BTreeSet<String>>,
    has_cluster_role: bool,
}

/// What following found out, for others to act on.
#[derive(Debug, Default)]
pub struct Noticed {
    /// Objects that could not be read, with the reason. They count as absent.
    pub unreadable: Vec<(String, String)>,
    /// Aggregated cluster roles whose stored rules are not what they should be.
    pub stale_roles: Vec<Arc<authz_rbac::Role>>,
}

impl ClusterSnapshot {
    /// The picture of an empty store.
    ///
    /// # Errors
    /// Two authorizers have one name.
    pub fn empty(
        slots: Arc<[AuthorizerSlot]>,
        node: authz_node::Snapshot,
        hooks: Hooks,
    ) -> Result<Self, ConfigurationError> {
        let cluster = Self {
            revision: Revision::ZERO,
            rbac: Arc::default(),
            node: Arc::new(node),
            chain: Arc::default(),
            namespaces: Arc::default(),
            definitions: Arc::default(),
            registry: Arc::new(Registry::built_in()),
            hooks,
            mark: None,
            undecodable: Arc::default(),
            uninitialized: Arc::default(),
            slots,
        };
        Ok(Self { chain: cluster.chain_on(&cluster.slots)?, ..cluster })
    }

    /// The same objects, and other authorizers around them.
    ///
    /// # Errors
    /// Two authorizers have one name.
    pub fn with_seats(&self, slots: &Arc<[AuthorizerSlot]>) -> Result<Self, ConfigurationError> {
        let chain = self.chain_on(slots)?;
        Ok(Self { chain, slots: Arc::clone(slots), ..self.clone() })
    }

    /// The authorizers, in order.
    pub(crate) fn slots(&self) -> &Arc<[AuthorizerSlot]> {
        &self.slots
    }

    /// The chain over these objects for somebody who began with other authorizers, perhaps.
    pub(crate) fn chain_as_of(&self, begun: &Self) -> Arc<Chain> {
        match Arc::ptr_eq(&self.slots, &begun.slots) {
            true => Arc::clone(&self.chain),
            // Names were unique then.
            false => self.chain_on(&begun.slots).unwrap_or_else(|_| Arc::clone(&begun.chain)),
        }
    }

    fn chain_on(&self, slots: &[AuthorizerSlot]) -> Result<Arc<Chain>, ConfigurationError> {
        let members =
            slots.iter().map(|slot| (slot.member(&self.rbac, &self.node), slot.observe.clone()));
        Chain::observed(members).map(Arc::new)
    }

    /// The picture with these objects, which were read in one state of the store.
    #[must_use]
    pub fn with_items(&self, prefix: &str, items: &[Item], revision: Revision) -> (Self, Noticed) {
        let changes = items.iter().map(|item| Altered {
            key: item.key.as_str(),
            at: item.entry.mod_rev,
            prev: None,
            value: Some(&item.entry.value),
        });
        self.with_changes(prefix, changes, revision)
    }

    /// The picture after these events.
    #[must_use]
    pub fn with_events(
        &self,
        prefix: &str,
        events: &[Event],
        revision: Revision,
    ) -> (Self, Noticed) {
        let changes = events.iter().map(|event| {
            let (prev, value) = match &event.change {
                Change::Create(entry) => (None, Some(&entry.value)),
                Change::Update { entry, prev } => (Some(&prev.value), Some(&entry.value)),
                Change::Delete { prev } => (Some(&prev.value), None),
            };
            Altered { key: event.key.as_str(), at: event.revision, prev, value }
        });
        self.with_changes(prefix, changes, revision)
    }

    fn with_changes<'b>(
        &self,
        prefix: &str,
        changes: impl Iterator<Item = Altered<'b>>,
        revision: Revision,
    ) -> (Self, Noticed) {
        let mut touched = Touched::default();
        let mut noticed = Noticed::default();
        for Altered { key, at, prev, value } in changes {
            let Some((tracked, path)) = tracked(prefix, key) else { continue };
            let (prev, value) = match tracked {
                Tracked::Mark => {
                    touched.mark = Some(value.map(|_| at));
                    continue;
                }
                // A namespace ends like any other, even if it never was initialized; its phase says so.
                Tracked::Namespace
                | Tracked::Hooks(_)
                | Tracked::Uninitialized
                | Tracked::Waiting => (prev, value),
                // Nobody decides by what is not there for everybody.
                Tracked::Rbac | Tracked::Node | Tracked::Definition | Tracked::Address => {
                    (prev.filter(is_shown), value.filter(is_shown))
                }
            };
            let altered = Altered { key: path, at, prev, value };
            let applied = self.apply(&mut touched, tracked, altered);
            self.remember(&mut touched, path, applied.as_ref().err());
            if let Err(why) = applied {
                noticed.unreadable.push((key.to_owned(), why));
            }
        }
        let next = self.finish(touched, revision, &mut noticed);
        (next, noticed)
    }

    /// Remembers why an object can not be decoded, or that it can be.
    fn remember(&self, touched: &mut Touched, path: &str, why: Option<&String>) {
        let known = touched.undecodable.as_ref().unwrap_or(&self.undecodable);
        if why.is_none() && !known.contains_key(path) {
            return;
        }
        let own = touched.undecodable.get_or_insert_with(|| self.undecodable.as_ref().clone());
        match why {
            Some(why) => drop(own.insert(path.to_owned(), why.clone())),
            None => drop(own.remove(path)),
        }
    }

    /// Takes in one object. One that can not be decoded counts as absent: what was known of it before does
    /// not stay in force.
    fn apply(
        &self,
        touched: &mut Touched,
        tracked: Tracked,
        altered: Altered<'_>,
    ) -> Result<(), String> {
        let Altered { key: path, at, prev, value } = altered;
        match tracked {
            Tracked::Rbac => {
                let rbac = touched.rbac.get_or_insert_with(|| self.rbac.as_ref().clone());
                touched.has_cluster_role |= path.starts_with("clusterroles/");
                apply_rbac(rbac, path, value)
            }
            Tracked::Node => {
                let node = touched.node.get_or_insert_with(|| self.node.as_ref().clone());
                let read = |value: Option<&bytes::Bytes>| -> Result<_, String> {
                    let object = value.map(|value| parse(value)).transpose()?;
                    Ok(object.and_then(|object| manifests::parse_node_object(&object)))
                };
                // A version that could not be read relates nothing: it neither stays nor keeps the next
                // one out.
                let old = read(prev).unwrap_or_default();
                let new = read(value);
                match (&old, new.as_ref().ok().and_then(Option::as_ref)) {
                    (Some(old), Some(new)) => node.graph.update(old, new),
                    (None, Some(new)) => node.graph.add(new),
                    (Some(old), None) => node.graph.delete(old),
                    (None, None) => {}
                }
                new.map(drop)
            }
            Tracked::Namespace => {
                let own =
                    touched.namespaces.get_or_insert_with(|| self.namespaces.as_ref().clone());
                let name = last_segment(path);
                let stored = value.map(|value| Namespace::read(value, at)).transpose();
                match &stored {
                    Ok(Some(namespace)) => own.insert(name.to_owned(), namespace.clone()),
                    Ok(None) | Err(_) => own.remove(name),
                };
                stored.map(drop)
            }
            Tracked::Hooks(kind) => {
                let read = |value: &bytes::Bytes| match parse(value)? {
                    Value::Object(tree) => Ok(tree),
                    _ => Err("it is no object".to_owned()),
                };
                let tree = value.map(read);
                let outcome = match &tree {
                    Some(Err(why)) => Err(why.clone()),
                    _ => Ok(()),
                };
                touched.hooks.push(Changed { path: path.to_owned(), kind, tree });
                outcome
            }
            Tracked::Address | Tracked::Mark | Tracked::Waiting => Ok(()),
            Tracked::Uninitialized => {
                let own = (touched.uninitialized)
                    .get_or_insert_with(|| self.uninitialized.as_ref().clone());
                let path = path.strip_prefix(UNINITIALIZED_PATH).unwrap_or_default();
                own.insert(path.trim_start_matches('/').to_owned());
                Ok(())
            }
            Tracked::Definition => {
                let own =
                    touched.definitions.get_or_insert_with(|| self.definitions.as_ref().clone());
                let name = last_segment(path);
                let stored = value.map(|value| parse(value)).transpose();
                match &stored {
                    Ok(Some(Value::Object(tree))) => {
                        let tree = Arc::new(tree.clone());
                        own.insert(name.to_owned(), StoredDefinition { tree, mod_rev: at })
                    }
                    Ok(_) | Err(_) => own.remove(name),
                };
                stored.map(drop)
            }
        }
    }

    fn finish(&self, touched: Touched, revision: Revision, noticed: &mut Noticed) -> Self {
        let mut next = Self { revision, ..self.clone() };
        let is_chain_stale = touched.rbac.is_some() || touched.node.is_some();
        if let Some(mut rbac) = touched.rbac {
            if touched.has_cluster_role {
                // Decisions see at once what aggregation makes of a change; that the roles are
                // stored so takes a moment longer.
                noticed.stale_roles = rbac.aggregate_roles();
            }
            next.rbac = Arc::new(rbac);
        }
        if let Some(node) = touched.node {
            next.node = Arc::new(node);
        }
        if is_chain_stale {
            // Names were unique before, and they are the same.
            next.chain = next.chain_on(&next.slots).unwrap_or(next.chain);
        }
        if let Some(namespaces) = touched.namespaces {
            next.namespaces = Arc::new(namespaces);
        }
        if let Some(uninitialized) = touched.uninitialized {
            next.uninitialized = Arc::new(uninitialized);
        }
        if let Some(undecodable) = touched.undecodable {
            next.undecodable = Arc::new(undecodable);
        }
        if let Some(mark) = touched.mark {
            next.mark = mark;
        }
        if !touched.hooks.is_empty() {
            next.hooks = next.hooks.with_changes(touched.hooks);
        }
        if let Some(definitions) = touched.definitions {
            let (registry, faults) = served(&definitions);
            noticed.unreadable.extend(faults);
            next.registry = Arc::new(registry);
            next.definitions = Arc::new(definitions);
        }
        next
    }
}

/// The built-in resources and those of established definitions.
fn served(definitions: &BTreeMap<String, StoredDefinition>) -> (Registry, Vec<(String, String)>) {
    let trees: Vec<&Tree> = definitions.values().map(|own| own.tree.as_ref()).collect();
    Registry::with_definitions(&trees)
}

/// The path of a service or of its endpoints, if the key is one.
pub(crate) fn address_path<'k>(prefix: &str, key: &'k str) -> Option<&'k str> {
    tracked(prefix, key).and_then(|(own, path)| (own == Tracked::Address).then_some(path))
}

/// Whether decisions depend on what is stored under a key.
pub(crate) fn is_tracked(prefix: &str, key: &str) -> bool {
    tracked(prefix, key).is_some()
}

fn tracked<'k>(prefix: &str, key: &'k str) -> Option<(Tracked, &'k str)> {
    let path = key.strip_prefix(prefix)?.strip_prefix('/')?;
    // Whole segments are compared: a resource whose name only begins alike is another one.
    let mut segments = path.split('/');
    let resource = (segments.next()?, segments.next());
    let has_name = segments.next().is_some();
    let tracked = match resource {
        (MARK_PATH, None) => Tracked::Mark,
        ("roles" | "rolebindings" | "clusterroles" | "clusterrolebindings", Some(_)) => {
            Tracked::Rbac
        }
        (
            "pods"
            | "persistentvolumes"
            | "volumeattachments"
            | "resourceslices"
            | "podcertificaterequests",
            Some(_),
        ) => Tracked::Node,
        ("namespaces", Some(_)) => Tracked::Namespace,
        (UNINITIALIZED_PATH, Some(_)) => Tracked::Uninitialized,
        (WAITING_PATH, Some(_)) => Tracked::Waiting,
        ("endpointslices", Some(_)) => Tracked::Address,
        ("services", Some("specs")) if has_name => Tracked::Address,
        ("apiextensions.k8s.io", Some("customresourcedefinitions")) if has_name => {
            Tracked::Definition
        }
        _ => Tracked::Hooks(kind_at(path)?),
    };
    Some((tracked, path))
}

fn last_segment(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

fn parse(value: &[u8]) -> Result<Value, String> {
    codec::from_stored(value).map(Value::Object).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The path that its objects are read from, and the nearest one that is somebody else's.
    #[test]
    fn a_path_that_only_begins_alike_is_not_followed() {
        for path in TRACKED_PATHS {
            assert!(is_tracked("/registry", &format!("/registry/{path}/x")), "{path}");
            for other in [
                format!("/registry/{path}x/x"),
                format!("/registry/x{path}/x"),
                format!("/registryx/{path}/x"),
                format!("/registry/x/{path}/x"),
                format!("/registry/{path}"),
            ] {
                assert!(!is_tracked("/registry", &other), "{other}");
            }
        }
        assert!(is_tracked("/registry", &format!("/registry/{MARK_PATH}")));
        assert!(!is_tracked("/registry", &format!("/registry/{MARK_PATH}/x")));
        assert!(!is_tracked("/registry", &format!("/registry/{MARK_PATH}x")));
    }
}
