//! The discovery documents of `/api` and `/apis`.

use foldhash::HashMap;
use serde_json::{Value, json};

use crate::published_document::EncodedDocument;
use crate::registry::{Group, GroupVersionResources, Registry};
use crate::resource::{Resource, ResourceOrigin, Scope, Subresource, SubresourceKind};
use crate::verb::{Verb, Verbs};

/// The discovery documents of one registry.
#[derive(Debug)]
pub struct Discovery {
    /// The document of `/apis`: all groups except for the core group.
    pub groups: EncodedDocument,
    /// The aggregated discovery document of `/api`.
    pub aggregated_core_document: EncodedDocument,
    /// The aggregated discovery document of `/apis`.
    pub aggregated_groups_document: EncodedDocument,
    documents_by_group: HashMap<String, GroupDiscoveryDocuments>,
}

#[derive(Debug)]
struct GroupDiscoveryDocuments {
    /// The document of `/apis/{group}`.
    group: EncodedDocument,
    /// The document of `/apis/{group}/{version}`, or of `/api/v1`.
    documents_by_version: HashMap<String, EncodedDocument>,
}

impl Discovery {
    pub(crate) fn new(registry: &Registry) -> Self {
        let (core, others): (Vec<&Group>, Vec<&Group>) =
            registry.groups().partition(|it| it.name.is_empty());
        let list: Vec<Value> = others.iter().map(|group| api_group_json(group)).collect();
        let documents_by_group =
            registry.groups().map(|it| (it.name.clone(), GroupDiscoveryDocuments::new(it)));
        Self {
            groups: EncodedDocument::new(&json!({
                "kind": "APIGroupList", "apiVersion": "v1", "groups": list,
            })),
            aggregated_core_document: aggregated_discovery_document(&core),
            aggregated_groups_document: aggregated_discovery_document(&others),
            documents_by_group: documents_by_group.collect(),
        }
    }

    /// Builds the document of `/api`: the versions of the core group, and the one address of the server
    /// for clients of all networks.
    #[must_use]
    pub fn core_versions_document(server_address: &str) -> EncodedDocument {
        EncodedDocument::new(&json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [
                { "clientCIDR": "0.0.0.0/0", "serverAddress": server_address },
            ],
        }))
    }

    /// The document of `/apis/{group}`.
    #[must_use]
    pub fn group(&self, group: &str) -> Option<&EncodedDocument> {
        // The core group has no such path.
        if group.is_empty() { None } else { Some(&self.documents_by_group.get(group)?.group) }
    }

    /// The document of `/apis/{group}/{version}`, or of `/api/{version}` for the core group.
    #[must_use]
    pub fn version(&self, group: &str, version: &str) -> Option<&EncodedDocument> {
        self.documents_by_group.get(group)?.documents_by_version.get(version)
    }
}

impl GroupDiscoveryDocuments {
    fn new(group: &Group) -> Self {
        let mut tree = json!({ "kind": "APIGroup", "apiVersion": "v1" });
        if let (Value::Object(members), Value::Object(more)) = (&mut tree, api_group_json(group)) {
            members.extend(more);
        }
        let versions = group.versions.iter();
        let versions =
            versions.map(|it| (it.version.clone(), resource_list_document(&group.name, it)));
        Self { group: EncodedDocument::new(&tree), documents_by_version: versions.collect() }
    }
}

fn api_group_json(group: &Group) -> Value {
    let version = |it: &GroupVersionResources| {
        let version = &it.version;
        json!({ "groupVersion": format!("{}/{version}", group.name), "version": version })
    };
    let versions: Vec<Value> = group.versions.iter().map(version).collect();
    let preferred = versions.first().cloned().unwrap_or_default();
    json!({ "name": group.name, "versions": versions, "preferredVersion": preferred })
}

fn resource_list_document(group: &str, version: &GroupVersionResources) -> EncodedDocument {
    let resources: Vec<Value> =
        version.resources().flat_map(|it| api_resource_entries(it)).collect();
    // The list of the core group has no `apiVersion`, because old clients expect none.
    let tree = match group {
        "" => json!({
            "kind": "APIResourceList", "groupVersion": version.version, "resources": resources,
        }),
        _ => json!({
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": format!("{group}/{}", version.version),
            "resources": resources,
        }),
    };
    EncodedDocument::new(&tree)
}

/// The entries of a resource and of its subresources.
fn api_resource_entries(resource: &Resource) -> Vec<Value> {
    let mut entry = json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.is_namespaced(),
        "kind": resource.kind,
        "verbs": discovery_verbs(resource).verb_names(),
    });
    add_short_names_and_categories(&mut entry, resource);
    let mut entries = vec![entry];
    for subresource in &resource.subresources {
        let other = subresource.kind.as_ref();
        let kind = other.map_or(resource.kind.as_str(), |other| other.kind);
        let other = other.filter(|other| !has_group_version_of_resource(other, resource));
        let mut entry = json!({
            "name": format!("{}/{}", resource.plural, subresource.name),
            "singularName": "",
            "namespaced": resource.is_namespaced(),
            "kind": kind,
            "verbs": subresource.verbs.verb_names(),
        });
        if let (Value::Object(members), Some(other)) = (&mut entry, other) {
            members.insert("group".to_owned(), other.group.into());
            members.insert("version".to_owned(), other.version.into());
        }
        entries.push(entry);
    }
    entries
}

fn aggregated_discovery_document(groups: &[&Group]) -> EncodedDocument {
    let items: Vec<Value> = groups.iter().map(|group| aggregated_group_json(group)).collect();
    EncodedDocument::new(&json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }))
}

fn aggregated_group_json(group: &Group) -> Value {
    let version = |it: &GroupVersionResources| {
        let resources: Vec<Value> = it.resources().map(|it| aggregated_resource_json(it)).collect();
        json!({ "version": it.version, "resources": resources, "freshness": "Current" })
    };
    let versions: Vec<Value> = group.versions.iter().map(version).collect();
    let metadata = match group.name.as_str() {
        "" => json!({}),
        name => json!({ "name": name }),
    };
    json!({ "metadata": metadata, "versions": versions })
}

fn aggregated_resource_json(resource: &Resource) -> Value {
    let scope = match resource.scope {
        Scope::Cluster => "Cluster",
        Scope::Namespaced => "Namespaced",
    };
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": { "group": "", "version": "", "kind": resource.kind },
        "scope": scope,
        "singularResource": resource.singular,
        "verbs": discovery_verbs(resource).verb_names(),
    });
    add_short_names_and_categories(&mut entry, resource);
    let part = |part: &Subresource| {
        let kind = match &part.kind {
            None => json!({ "group": "", "version": "", "kind": resource.kind }),
            Some(it) if has_group_version_of_resource(it, resource) => {
                json!({ "group": "", "version": "", "kind": it.kind })
            }
            Some(it) => json!({ "group": it.group, "version": it.version, "kind": it.kind }),
        };
        json!({ "subresource": part.name, "responseKind": kind, "verbs": part.verbs.verb_names() })
    };
    let parts: Vec<Value> = resource.subresources.iter().map(part).collect();
    if let (Value::Object(members), false) = (&mut entry, parts.is_empty()) {
        members.insert("subresources".to_owned(), parts.into());
    }
    entry
}

/// Whether the kind of a subresource has the group and version of the resource. Discovery then omits both.
fn has_group_version_of_resource(kind: &SubresourceKind, resource: &Resource) -> bool {
    (kind.group, kind.version) == (resource.group.as_str(), resource.version.as_str())
}

/// Adds the short names and categories of a resource, if it has any.
fn add_short_names_and_categories(entry: &mut Value, resource: &Resource) {
    let Value::Object(members) = entry else { return };
    for (key, names) in
        [("shortNames", &resource.short_names), ("categories", &resource.categories)]
    {
        if !names.is_empty() {
            members.insert(key.to_owned(), names.as_slice().into());
        }
    }
}

/// The verbs that discovery shows. A resource whose definition is being deleted has none that create or
/// change objects.
fn discovery_verbs(resource: &Resource) -> Verbs {
    match &resource.resource_origin {
        ResourceOrigin::Custom(served) if served.is_terminating => resource
            .verbs
            .without_verb(Verb::Create)
            .without_verb(Verb::Patch)
            .without_verb(Verb::Update),
        ResourceOrigin::Custom(_) | ResourceOrigin::BuiltIn(_) => resource.verbs,
    }
}
