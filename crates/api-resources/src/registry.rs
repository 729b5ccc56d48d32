//! The registry of served resources.

use std::sync::{Arc, LazyLock, OnceLock};

use api_object::Tree;
use foldhash::{HashMap, HashMapExt};
use persistent::Map;

use crate::built_in_resources::TABLE;
use crate::custom_resources::DefinedResources;
use crate::discovery::Discovery;
use crate::openapi::OpenApi;
use crate::published_document::EncodedDocument;
use crate::resource::Resource;
use crate::resource_name::ResourceNameTable;
use crate::version_order;

/// An immutable snapshot of the served resources.
///
/// The next snapshot shares the groups that did not change, and most of the resources of the others, so a change of one
/// definition costs little more than a list of groups, however many definitions there are.
#[derive(Debug)]
pub struct Registry {
    /// The core group first, then the built-in groups, then the others by name.
    groups: Vec<Arc<Group>>,
    /// Built on first use, because most snapshots are replaced before a client requests discovery.
    discovery: OnceLock<Discovery>,
    openapi: OnceLock<OpenApi>,
    resource_names: OnceLock<ResourceNameTable>,
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
    resources_by_plural: Map<Arc<str>, Arc<Resource>>,
    /// The documents that are derived from the resources on first use. Clones share them until the resources
    /// change.
    derived_documents: Arc<DerivedDocuments>,
}

/// The documents about the resources of one version. Each is built when it is first needed.
#[derive(Debug, Default)]
struct DerivedDocuments {
    /// The resources, sorted by plural name.
    sorted_resources: OnceLock<Vec<Arc<Resource>>>,
    openapi: OnceLock<EncodedDocument>,
}

/// A change of one CustomResourceDefinition.
#[derive(Debug, Clone, Default)]
pub struct DefinitionChange {
    /// The resources of the version that the registry contains; `None` if there is none.
    pub old_resources: Option<Arc<DefinedResources>>,
    /// The resources of the new version; `None` if the definition was deleted.
    pub new_resources: Option<Arc<DefinedResources>>,
}

/// The built-in groups, which every registry has at the same places.
struct BuiltInGroups {
    groups: Vec<Arc<Group>>,
    positions_by_group_name: HashMap<String, usize>,
}

static BUILT_IN: LazyLock<BuiltInGroups> = LazyLock::new(|| {
    let mut groups: Vec<Group> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for row in TABLE {
        let resource = row.resource();
        let at = *places.entry(resource.group.clone()).or_insert_with(|| {
            let (name, versions) = (resource.group.clone(), Vec::new());
            groups.push(Group { name, is_built_in: true, versions });
            groups.len() - 1
        });
        if let Some(group) = groups.get_mut(at) {
            group.insert(Arc::new(resource));
        }
    }
    BuiltInGroups {
        groups: groups.into_iter().map(Arc::new).collect(),
        positions_by_group_name: places,
    }
});

impl Registry {
    /// The registry of the built-in resources only.
    #[must_use]
    pub fn with_built_in_resources() -> Self {
        Self::of(BUILT_IN.groups.clone())
    }

    /// Returns the built-in resources and those that the given CustomResourceDefinitions add, and for
    /// each definition that should add resources but cannot, its name and the reason.
    #[must_use]
    pub fn with_custom_resource_definitions(trees: &[&Tree]) -> (Self, Vec<(String, String)>) {
        let changes = trees.iter().map(|tree| {
            let new = Some(Arc::new(DefinedResources::read(tree)));
            DefinitionChange { old_resources: None, new_resources: new }
        });
        Self::with_built_in_resources().with_definition_changes(changes)
    }

    /// Returns the next registry after some definitions have changed, and for each of them that should add
    /// resources but cannot, its name and the reason.
    ///
    /// A definition counts as soon as its names are accepted, because its resource must be served before the
    /// status says so. A definition cannot replace a built-in resource, add resources to a version with
    /// built-in resources, or use the storage path of a built-in resource. Two definitions never define the
    /// same resource, because the name of a definition contains its group and plural.
    #[must_use]
    pub fn with_definition_changes(
        &self,
        changes: impl IntoIterator<Item = DefinitionChange>,
    ) -> (Self, Vec<(String, String)>) {
        let mut next = Self::of(self.groups.clone());
        let mut faults = Vec::new();
        for DefinitionChange { old_resources: old, new_resources: new } in changes {
            for resource in old.iter().flat_map(|own| &own.resources) {
                next.remove(resource);
            }
            let Some(new) = new else { continue };
            let mut fault = |why: &str| faults.push((new.name.clone(), why.to_owned()));
            if let Some(why) = new.definition_fault {
                fault(why);
            }
            for resource in &new.resources {
                if !next.insert(Arc::clone(resource)) {
                    fault("defines what is served already");
                }
            }
        }
        (next, faults)
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
        self.groups.get(self.group_position(name).ok()?).map(Arc::as_ref)
    }

    /// The groups, in the order of discovery. The core group comes first.
    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().map(Arc::as_ref)
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

    /// The names of the resources of Kubernetes, served or not, and of the custom resources.
    #[must_use]
    pub fn resource_names(&self) -> &ResourceNameTable {
        self.resource_names
            .get_or_init(|| ResourceNameTable::kubernetes_and_custom_resource_names(self))
    }

    fn of(groups: Vec<Arc<Group>>) -> Self {
        let (discovery, openapi) = (OnceLock::new(), OnceLock::new());
        Self { groups, discovery, openapi, resource_names: OnceLock::new() }
    }

    /// The place of a group, or the place at which it would be inserted. Built-in groups keep their places, and
    /// the others follow in the order of their names.
    fn group_position(&self, name: &str) -> Result<usize, usize> {
        if let Some(at) = BUILT_IN.positions_by_group_name.get(name) {
            return Ok(*at);
        }
        let n_built_in = BUILT_IN.groups.len();
        let custom = self.groups.get(n_built_in..).unwrap_or_default();
        let found = custom.binary_search_by(|group| group.name.as_str().cmp(name));
        found.map(|at| at + n_built_in).map_err(|at| at + n_built_in)
    }

    /// Adds a custom resource. Returns `false` if the resource exists or the version has built-in resources.
    fn insert(&mut self, resource: Arc<Resource>) -> bool {
        let at = match self.group_position(&resource.group) {
            Ok(at) => at,
            Err(at) => {
                let (name, versions) = (resource.group.clone(), Vec::new());
                self.groups.insert(at, Arc::new(Group { name, is_built_in: false, versions }));
                at
            }
        };
        self.groups.get_mut(at).is_some_and(|group| Arc::make_mut(group).insert(resource))
    }

    /// Removes a custom resource, and its version and group if they are empty then.
    fn remove(&mut self, resource: &Resource) {
        let Ok(at) = self.group_position(&resource.group) else { return };
        let Some(group) = self.groups.get_mut(at) else { return };
        let group = Arc::make_mut(group);
        group.remove(resource);
        if group.versions.is_empty() {
            self.groups.remove(at);
        }
    }
}

impl Group {
    /// The resources of this group and version.
    #[must_use]
    pub fn version(&self, version: &str) -> Option<&GroupVersionResources> {
        self.versions.iter().find(|it| it.version == version)
    }

    /// Adds a resource. Returns `false` if the resource exists or the version has resources of the other
    /// origin.
    fn insert(&mut self, resource: Arc<Resource>) -> bool {
        let is_built_in = !resource.is_custom_resource();
        match self.versions.iter_mut().find(|it| it.version == resource.version) {
            Some(version) if version.is_built_in != is_built_in => false,
            Some(version) => version.insert(resource),
            None => {
                let mut version = GroupVersionResources {
                    version: resource.version.clone(),
                    is_built_in,
                    resources_by_plural: Map::default(),
                    derived_documents: Arc::default(),
                };
                version.insert(resource);
                self.versions.push(version);
                let versions = &mut self.versions;
                versions.sort_by(|a, b| version_order::compare_versions(&a.version, &b.version));
                true
            }
        }
    }

    /// Removes a custom resource, and its version if it is empty then.
    fn remove(&mut self, resource: &Resource) {
        self.versions.retain_mut(|version| {
            if version.version == resource.version && !version.is_built_in {
                version.resources_by_plural.remove(resource.plural.as_str());
                version.derived_documents = Arc::default();
            }
            !version.resources_by_plural.is_empty()
        });
    }
}

impl GroupVersionResources {
    /// The resource of that plural.
    #[must_use]
    pub fn resource(&self, plural: &str) -> Option<&Arc<Resource>> {
        self.resources_by_plural.get(plural)
    }

    /// The resources, by plural.
    pub fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        let sorted = self.derived_documents.sorted_resources.get_or_init(|| {
            let mut sorted: Vec<Arc<Resource>> =
                self.resources_by_plural.values().cloned().collect();
            sorted.sort_unstable_by(|a, b| a.plural.cmp(&b.plural));
            sorted
        });
        sorted.iter()
    }

    /// The OpenAPI document of the version, which `make` makes if it was not needed before.
    pub(crate) fn openapi(&self, make: impl FnOnce() -> EncodedDocument) -> &EncodedDocument {
        self.derived_documents.openapi.get_or_init(make)
    }

    fn insert(&mut self, resource: Arc<Resource>) -> bool {
        if self.resources_by_plural.contains_key(resource.plural.as_str()) {
            return false;
        }
        self.resources_by_plural.insert(Arc::from(resource.plural.as_str()), resource);
        self.derived_documents = Arc::default();
        true
    }
}
