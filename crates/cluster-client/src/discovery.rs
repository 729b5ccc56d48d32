//! The resources that a cluster serves.

use serde_json::Value;

use crate::api_error::ClusterError;
use crate::client::ClusterClient;

/// The media types of discovery: all groups in one document, or the older documents.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                          application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

/// A resource that a cluster serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoveredResource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version of this description.
    pub version: String,
    /// The name in paths and policies, such as `deployments`.
    pub plural: String,
    /// The name of one object, such as `deployment`; may be empty.
    pub singular: String,
    /// The kind of the objects.
    pub kind: String,
    /// The short names, such as `deploy`.
    pub short_names: Vec<String>,
    /// Whether the objects are in namespaces.
    pub is_namespaced: bool,
    /// The verbs that the server implements.
    pub verbs: Vec<String>,
    /// The subresources, such as `scale`.
    pub subresources: Vec<String>,
}

/// The resources of a cluster. Of a group with several versions, the preferred one comes first, and the others add only
/// resources that it lacks.
#[derive(Debug, Clone, Default)]
pub struct Discovery {
    /// The resources of all groups.
    pub resources: Vec<DiscoveredResource>,
    /// The groups whose server did not describe them, so that their resources are unknown.
    pub unavailable_groups: Vec<String>,
}

impl Discovery {
    /// Reads the resources of a cluster.
    ///
    /// # Errors
    ///
    /// The server does not answer, or describes no API.
    pub async fn read(client: &ClusterClient) -> Result<Self, ClusterError> {
        let mut discovery = Self::default();
        for root in ["/api", "/apis"] {
            let document = client.get_json(root, AGGREGATED).await?;
            match document.get("kind").and_then(Value::as_str) {
                Some("APIGroupDiscoveryList") => discovery.add_aggregated_discovery(&document),
                Some("APIVersions" | "APIGroupList") => {
                    discovery.read_unaggregated_discovery(client, &document).await?;
                }
                _ => {
                    let expected = "a description of an API";
                    return Err(ClusterError::NotKubernetes { path: root.to_owned(), expected });
                }
            }
        }
        Ok(discovery)
    }

    fn add_aggregated_discovery(&mut self, document: &Value) {
        for group in items(document, "items") {
            let name =
                group.get("metadata").map(|it| string_member(it, "name")).unwrap_or_default();
            for version in items(group, "versions") {
                if string_member(version, "freshness") == "Stale" {
                    self.record_unavailable_group(&name);
                }
                for resource in items(version, "resources") {
                    let names = |list: &str| string_list_member(resource, list);
                    self.add_resource(DiscoveredResource {
                        group: name.clone(),
                        version: string_member(version, "version"),
                        plural: string_member(resource, "resource"),
                        singular: string_member(resource, "singularResource"),
                        kind: resource
                            .get("responseKind")
                            .map(|kind| string_member(kind, "kind"))
                            .unwrap_or_default(),
                        short_names: names("shortNames"),
                        is_namespaced: string_member(resource, "scope") == "Namespaced",
                        verbs: names("verbs"),
                        subresources: items(resource, "subresources")
                            .map(|subresource| string_member(subresource, "subresource"))
                            .collect(),
                    });
                }
            }
        }
    }

    /// Reads one document for each version of each group.
    async fn read_unaggregated_discovery(
        &mut self,
        client: &ClusterClient,
        document: &Value,
    ) -> Result<(), ClusterError> {
        let mut versions: Vec<(String, String, String)> = Vec::new();
        for version in string_list_member(document, "versions") {
            versions.push((format!("/api/{version}"), String::new(), version));
        }
        for group in items(document, "groups") {
            let name = string_member(group, "name");
            let preferred = group.get("preferredVersion").map(|it| string_member(it, "version"));
            let mut of_group: Vec<String> =
                items(group, "versions").map(|version| string_member(version, "version")).collect();
            of_group.sort_by_key(|version| Some(version) != preferred.as_ref());
            for version in of_group {
                versions.push((format!("/apis/{name}/{version}"), name.clone(), version));
            }
        }
        for (path, group, version) in versions {
            match client.get_json(&path, "").await {
                Ok(document) => self.add_resource_list(&document, &group, &version),
                Err(error @ (ClusterError::NoResponse(_) | ClusterError::Unauthorized { .. })) => {
                    return Err(error);
                }
                // The server of one aggregated group may be down.
                Err(_) => self.record_unavailable_group(&group),
            }
        }
        Ok(())
    }

    fn add_resource_list(&mut self, document: &Value, group: &str, version: &str) {
        let (resources, subresources): (Vec<&Value>, Vec<&Value>) = items(document, "resources")
            .partition(|resource| !string_member(resource, "name").contains('/'));
        for resource in resources {
            let plural = string_member(resource, "name");
            let own = subresources.iter().filter_map(|subresource| {
                let name = string_member(subresource, "name");
                let (parent, name) = name.split_once('/')?;
                (parent == plural).then(|| name.to_owned())
            });
            self.add_resource(DiscoveredResource {
                group: group.to_owned(),
                version: version.to_owned(),
                singular: string_member(resource, "singularName"),
                kind: string_member(resource, "kind"),
                short_names: string_list_member(resource, "shortNames"),
                is_namespaced: resource.get("namespaced").and_then(Value::as_bool) == Some(true),
                verbs: string_list_member(resource, "verbs"),
                subresources: own.collect(),
                plural,
            });
        }
    }

    fn add_resource(&mut self, resource: DiscoveredResource) {
        let is_known =
            |own: &DiscoveredResource| own.group == resource.group && own.plural == resource.plural;
        if !resource.plural.is_empty() && !self.resources.iter().any(is_known) {
            self.resources.push(resource);
        }
    }

    fn record_unavailable_group(&mut self, group: &str) {
        if !self.unavailable_groups.iter().any(|own| own == group) {
            self.unavailable_groups.push(group.to_owned());
        }
    }
}

fn items<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn string_member(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn string_list_member(value: &Value, name: &str) -> Vec<String> {
    items(value, name).filter_map(Value::as_str).map(str::to_owned).collect()
}
