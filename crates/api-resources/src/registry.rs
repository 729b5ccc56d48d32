//! The registry of served resources.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, OnceLock};

use api_object::Tree;
use foldhash::{HashMap, HashMapExt};

use crate::built_in::TABLE;
use crate::custom::Definition;
use crate::discovery::Discovery;
use crate::openapi::OpenApi;
use crate::resource::Resource;
use crate::version_order;

/// An immutable snapshot of the served resources.
#[derive(Debug)]
pub struct Registry {
    /// The core group first, then the built-in groups, then the others by name.
    groups: Vec<Group>,
    by_name: HashMap<String, usize>,
    /// Built on first use, because most snapshots are replaced before a client requests discovery.
    discovery: OnceLock<Discovery>,
    openapi: OnceLock<OpenApi>,
}

/// A group of resources.
#[derive(Debug, Clone)]
pub struct Group {
    /// Empty for the core group.
    pub name: String,
    /// Whether the group has a built-in resource. The response for unknown resources depends on that.
    pub is_built_in: bool,
    /// The versions, the preferred one first. Never empty.
    pub versions: Vec<GroupVersionResources>,
}

/// The resources of one version of an API group.
#[derive(Debug, Clone)]
pub struct GroupVersionResources {
    /// The version of the group, such as `v1`.
    pub version: String,
    /// Whether its resources are built in. A version has either built-in or custom resources.
    pub is_built_in: bool,
    /// The resources, sorted by plural name.
    resources: BTreeMap<String, Arc<Resource>>,
    by_plural: HashMap<String, Arc<Resource>>,
}

impl Registry {
    /// The registry of the built-in resources only.
    #[must_use]
    pub fn built_in() -> Self {
        let mut registry = Self::of(Vec::new());
        for row in TABLE {
            registry.insert(row.resource());
        }
        registry.into_sorted()
    }

    /// Returns the built-in resources and those that the given CustomResourceDefinitions add, and for
    /// each definition that should add resources but cannot, its name and the reason.
    ///
    /// A definition counts as soon as its names are accepted, because its resource must be served before
    /// the status says so. A definition can not replace a built-in resource, add resources to a version
    /// with built-in resources, or use the storage path of a built-in resource.
    #[must_use]
    pub fn with_definitions(trees: &[&Tree]) -> (Self, Vec<(String, String)>) {
        let mut registry = Self::built_in();
        let mut faults = Vec::new();
        for tree in trees {
            let mut fault =
                |why: &str| faults.push((api_object::name(tree).to_owned(), why.to_owned()));
            let Some(definition) = Definition::read(tree) else {
                fault("does not say which resource it defines");
                continue;
            };
            if !definition.is_served() {
                match definition.storage_path() {
                    _ if !definition.is_established() => {}
                    None => fault("defines a resource that is part of the program"),
                    Some(_) => fault("was accepted under names that are not its own"),
                }
                continue;
            }
            for resource in definition.resources() {
                if !registry.insert(resource) {
                    fault("defines what is served already");
                }
            }
        }
        (registry.into_sorted(), faults)
    }

    /// The resource that a path names.
    #[must_use]
    pub fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.group(group)?.version(version)?.resource(plural)
    }

    /// The resource whose objects have that kind.
    #[must_use]
    pub fn resource_of_kind(
        &self,
        group: &str,
        version: &str,
        kind: &str,
    ) -> Option<&Arc<Resource>> {
        self.group(group)?.version(version)?.resources().find(|it| it.kind == kind)
    }

    /// The group of that name.
    #[must_use]
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.get(*self.by_name.get(name)?)
    }

    /// The groups, in the order of discovery. The core group comes first.
    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter()
    }

    /// The resources of all versions of all groups.
    pub fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.groups().flat_map(|group| &group.versions).flat_map(GroupVersionResources::resources)
    }

    /// Each stored resource once, in its preferred version.
    pub fn stored_resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.groups().flat_map(|group| {
            let versions = group.versions.iter().enumerate();
            versions.flat_map(move |(at, version)| {
                let earlier = group.versions.get(..at).unwrap_or_default();
                let is_first =
                    |it: &Resource| earlier.iter().all(|it2| it2.resource(&it.plural).is_none());
                version.resources().filter(move |it| it.is_stored() && is_first(it))
            })
        })
    }

    /// The discovery documents of the served resources.
    #[must_use]
    pub fn discovery(&self) -> &Discovery {
        self.discovery.get_or_init(|| Discovery::new(self))
    }

    /// The OpenAPI documents of the served resources.
    #[must_use]
    pub fn openapi(&self) -> &OpenApi {
        self.openapi.get_or_init(|| OpenApi::new(self))
    }

    fn of(groups: Vec<Group>) -> Self {
        let names = groups.iter().enumerate();
        let by_name = names.map(|(at, group)| (group.name.clone(), at)).collect();
        Self { groups, by_name, discovery: OnceLock::new(), openapi: OnceLock::new() }
    }

    /// Adds a resource. Returns `false` if the resource exists or the version has resources of the other
    /// origin.
    fn insert(&mut self, resource: Resource) -> bool {
        let is_built_in = !resource.is_custom();
        let at = *self.by_name.entry(resource.group.clone()).or_insert_with(|| {
            let (name, versions) = (resource.group.clone(), Vec::new());
            self.groups.push(Group { name, is_built_in, versions });
            self.groups.len() - 1
        });
        let Some(group) = self.groups.get_mut(at) else { return false };
        match group.versions.iter_mut().find(|it| it.version == resource.version) {
            Some(version) if version.is_built_in != is_built_in => false,
            Some(version) => version.insert(resource),
            None => {
                let mut version = GroupVersionResources {
                    version: resource.version.clone(),
                    is_built_in,
                    resources: BTreeMap::new(),
                    by_plural: HashMap::new(),
                };
                version.insert(resource);
                group.versions.push(version);
                true
            }
        }
    }

    /// Sorts custom groups by name after the built-in groups, and the versions of each group by priority.
    fn into_sorted(mut self) -> Self {
        let n_built_in = self.groups.iter().take_while(|it| it.is_built_in).count();
        if let Some(custom) = self.groups.get_mut(n_built_in..) {
            custom.sort_by(|left, right| left.name.cmp(&right.name));
        }
        for group in &mut self.groups {
            group.versions.sort_by(|a, b| version_order::compare_versions(&a.version, &b.version));
        }
        Self::of(self.groups)
    }
}

impl Group {
    /// The resources of this group and version.
    #[must_use]
    pub fn version(&self, version: &str) -> Option<&GroupVersionResources> {
        self.versions.iter().find(|it| it.version == version)
    }
}

impl GroupVersionResources {
    /// The resource of that plural.
    #[must_use]
    pub fn resource(&self, plural: &str) -> Option<&Arc<Resource>> {
        self.by_plural.get(plural)
    }

    /// The resources, by plural.
    pub fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values()
    }

    fn insert(&mut self, resource: Resource) -> bool {
        let Entry::Vacant(vacant) = self.resources.entry(resource.plural.clone()) else {
            return false;
        };
        let resource = Arc::clone(vacant.insert(Arc::new(resource)));
        self.by_plural.insert(resource.plural.clone(), resource);
        true
    }
}
