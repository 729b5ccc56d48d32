//! Discovery documents.

use foldhash::HashMap;
use serde_json::{Value, json};

use crate::published_document::Document;
use crate::registry::{Group, GroupVersionResources, Registry};
use crate::resource::{Origin, Resource, Scope, Subresource};
use crate::verb::{Verb, Verbs};

/// The discovery documents of one registry.
#[derive(Debug)]
pub struct Discovery {
    /// `/apis`: the groups but for the core one.
    pub groups: Document,
    /// `/api`, for those who want everything at once.
    pub aggregated_core: Document,
    /// `/apis`, for those who want everything at once.
    pub aggregated_groups: Document,
    by_group: HashMap<String, GroupDocuments>,
}

#[derive(Debug)]
struct GroupDocuments {
    /// `/apis/{group}`.
    group: Document,
    /// `/apis/{group}/{version}`, or `/api/v1`.
    versions: HashMap<String, Document>,
}

impl Discovery {
    pub(crate) fn new(registry: &Registry) -> Self {
        let (core, others): (Vec<&Group>, Vec<&Group>) =
            registry.groups().partition(|it| it.name.is_empty());
        let list: Vec<Value> = others.iter().map(|group| api_group(group)).collect();
        let by_group = registry.groups().map(|it| (it.name.clone(), GroupDocuments::new(it)));
        Self {
            groups: Document::new(&json!({
                "kind": "APIGroupList", "apiVersion": "v1", "groups": list,
            })),
            aggregated_core: aggregated(&core),
            aggregated_groups: aggregated(&others),
            by_group: by_group.collect(),
        }
    }

    /// `/api`: the versions of the core group. Clients in a network of their own would need another
    /// address; there is one for all, which the server knows.
    #[must_use]
    pub fn core_versions(server_address: &str) -> Document {
        Document::new(&json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [
                { "clientCIDR": "0.0.0.0/0", "serverAddress": server_address },
            ],
        }))
    }

    /// `/apis/{group}`.
    #[must_use]
    pub fn group(&self, group: &str) -> Option<&Document> {
        // The core group has no such path.
        if group.is_empty() { None } else { Some(&self.by_group.get(group)?.group) }
    }

    /// `/apis/{group}/{version}`, and `/api/{version}` for the core group.
    #[must_use]
    pub fn version(&self, group: &str, version: &str) -> Option<&Document> {
        self.by_group.get(group)?.versions.get(version)
    }
}

impl GroupDocuments {
    fn new(group: &Group) -> Self {
        let mut tree = json!({ "kind": "APIGroup", "apiVersion": "v1" });
        if let (Value::Object(members), Value::Object(more)) = (&mut tree, api_group(group)) {
            members.extend(more);
        }
        let versions = group.versions.iter();
        let versions = versions.map(|it| (it.version.clone(), resource_list(&group.name, it)));
        Self { group: Document::new(&tree), versions: versions.collect() }
    }
}

fn api_group(group: &Group) -> Value {
    let version = |it: &GroupVersionResources| {
        let version = &it.version;
        json!({ "groupVersion": format!("{}/{version}", group.name), "version": version })
    };
    let versions: Vec<Value> = group.versions.iter().map(version).collect();
    let preferred = versions.first().cloned().unwrap_or_default();
    json!({ "name": group.name, "versions": versions, "preferredVersion": preferred })
}

fn resource_list(group: &str, version: &GroupVersionResources) -> Document {
    let resources: Vec<Value> = version.resources().flat_map(|it| api_resources(it)).collect();
    // The oldest list has no version of its own, and old clients know it so.
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
    Document::new(&tree)
}

/// The entry of a resource, and those of its subresources.
fn api_resources(resource: &Resource) -> Vec<Value> {
    let mut entry = json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.is_namespaced(),
        "kind": resource.kind,
        "verbs": shown_verbs(resource).names(),
    });
    add_names(&mut entry, resource);
    let mut entries = vec![entry];
    for subresource in &resource.subresources {
        let (kind, other) = match &subresource.kind {
            Some(other) => (other.kind, Some(other)),
            None => (resource.kind.as_str(), None),
        };
        let mut entry = json!({
            "name": format!("{}/{}", resource.plural, subresource.name),
            "singularName": "",
            "namespaced": resource.is_namespaced(),
            "kind": kind,
            "verbs": subresource.verbs.names(),
        });
        if let (Value::Object(members), Some(other)) = (&mut entry, other) {
            members.insert("group".to_owned(), other.group.into());
            members.insert("version".to_owned(), other.version.into());
        }
        entries.push(entry);
    }
    entries
}

fn aggregated(groups: &[&Group]) -> Document {
    let items: Vec<Value> = groups.iter().map(|group| aggregated_group(group)).collect();
    Document::new(&json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }))
}

fn aggregated_group(group: &Group) -> Value {
    let version = |it: &GroupVersionResources| {
        let resources: Vec<Value> = it.resources().map(|it| aggregated_resource(it)).collect();
        json!({ "version": it.version, "resources": resources, "freshness": "Current" })
    };
    let versions: Vec<Value> = group.versions.iter().map(version).collect();
    let metadata = match group.name.as_str() {
        "" => json!({}),
        name => json!({ "name": name }),
    };
    json!({ "metadata": metadata, "versions": versions })
}

fn aggregated_resource(resource: &Resource) -> Value {
    let scope = match resource.scope {
        Scope::Cluster => "Cluster",
        Scope::Namespaced => "Namespaced",
    };
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": { "group": "", "version": "", "kind": resource.kind },
        "scope": scope,
        "singularResource": resource.singular,
        "verbs": shown_verbs(resource).names(),
    });
    add_names(&mut entry, resource);
    let part = |part: &Subresource| {
        let kind = match &part.kind {
            None => json!({ "group": "", "version": "", "kind": resource.kind }),
            Some(it) => json!({ "group": it.group, "version": it.version, "kind": it.kind }),
        };
        json!({ "subresource": part.name, "responseKind": kind, "verbs": part.verbs.names() })
    };
    let parts: Vec<Value> = resource.subresources.iter().map(part).collect();
    if let (Value::Object(members), false) = (&mut entry, parts.is_empty()) {
        members.insert("subresources".to_owned(), parts.into());
    }
    entry
}

/// Adds the other names of a resource, if it has any.
fn add_names(entry: &mut Value, resource: &Resource) {
    let Value::Object(members) = entry else { return };
    for (key, names) in
        [("shortNames", &resource.short_names), ("categories", &resource.categories)]
    {
        if !names.is_empty() {
            members.insert(key.to_owned(), names.as_slice().into());
        }
    }
}

/// A resource that is being deleted offers no verbs that create objects.
fn shown_verbs(resource: &Resource) -> Verbs {
    match &resource.origin {
        Origin::Custom(served) if served.is_terminating => {
            resource.verbs.without(Verb::Create).without(Verb::Patch).without(Verb::Update)
        }
        Origin::Custom(_) | Origin::BuiltIn(_) => resource.verbs,
    }
}
