//! Reads the objects of a cluster that decide about requests.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use api_resources::{DiscoveredResourceNames, ResourceNameTable};
use cluster_client::{
    ClusterClient, ClusterError, DiscoveredResource, Discovery, ListObjectsOutcome, ListRevision,
    ObjectConversionFn, ObjectList, list_objects,
};
use kubeconfig::ClusterConnection;
use manifests::{AuthorizerObject, parse_node_authorizer_object, rbac};
use serde_json::Value;

use super::load_failure::LoadFailure;

/// How often all lists begin again when the server drops their revision.
const READS_MAX: usize = 3;

/// The namespace of a context that names none, as in kubectl.
const DEFAULT_NAMESPACE: &str = "default";

const RBAC: &str = "rbac.authorization.k8s.io";

/// The lists of roles and bindings: the plural, and whether they are in namespaces.
const RBAC_LISTS: [(&str, bool); 4] = [
    ("clusterroles", false),
    ("clusterrolebindings", false),
    ("roles", true),
    ("rolebindings", true),
];

/// The lists that the node authorizer decides from: group and plural.
const NODE_LISTS: [(&str, &str); 5] = [
    ("", "pods"),
    ("", "persistentvolumes"),
    ("storage.k8s.io", "volumeattachments"),
    ("resource.k8s.io", "resourceslices"),
    ("certificates.k8s.io", "podcertificaterequests"),
];

/// The resources whose access by a node depends on its pods and volumes.
const NODE_GRAPH_RESOURCES: [&str; 10] = [
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "persistentvolumes",
    "volumeattachments",
    "serviceaccounts",
    "pods",
    "resourceclaims",
    "resourceslices",
    "podcertificaterequests",
];

/// Whether a question also needs the pods, volumes and other objects that relate to nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeObjectsNeed {
    /// The question is about a node, or about something that a node may read for its pods.
    Read,
    /// No node can be part of the answer.
    Skip,
}

impl NodeObjectsNeed {
    /// A question of a user needs pods and volumes only if the user is a node.
    pub(crate) fn node_objects_needed_for_user(name: Option<&str>) -> Self {
        match name.is_some_and(|name| name.starts_with("system:node:")) {
            true => Self::Read,
            false => Self::Skip,
        }
    }

    /// A question about a resource needs pods and volumes only if nodes read the resource for their pods.
    pub(crate) fn node_objects_needed_for_resource(plural_or_kind: &str) -> Self {
        let lower = plural_or_kind.to_ascii_lowercase();
        // Singular and short names are not resolved yet, so a common beginning counts.
        let is_graph =
            |resource: &&str| resource.starts_with(&*lower) || lower.starts_with(*resource);
        let is_short = matches!(lower.as_str(), "cm" | "pvc" | "pv" | "sa" | "po" | "*");
        match is_short || NODE_GRAPH_RESOURCES.iter().any(is_graph) {
            true => Self::Read,
            false => Self::Skip,
        }
    }
}

/// The state of a cluster, at one revision if the cluster allows it.
#[derive(Debug)]
pub(crate) struct ClusterState<T> {
    pub(crate) cluster_client: Arc<ClusterClient>,
    /// The converted objects of all lists.
    pub(crate) objects: Vec<T>,
    pub(crate) resource_names: ResourceNameTable,
    /// The namespace of questions without a namespace.
    pub(crate) namespace: String,
    /// Notes and warnings, for standard error.
    pub(crate) cluster_remarks: Vec<String>,
    /// Whether a part of the policy could not be read, so that more may be allowed than the answer says.
    pub(crate) is_policy_partial: bool,
}

impl<T: Send> ClusterState<T> {
    /// Reads discovery, roles, bindings and, if needed, the objects of the node authorizer.
    ///
    /// 1. The first list gives the revision; the others are read at exactly this revision.
    /// 2. If the server has dropped the revision, all lists begin again.
    /// 3. If the server cannot read at a revision, the lists are read at the newest one, and a remark says so.
    /// 4. If the user may not list a resource, a remark names the rule that would complete the answer. Roles and bindings
    ///    are then read in the namespace of the question alone.
    ///
    /// `convert_object` decodes each object; it counts as one that cannot be decoded if the result is `None`.
    ///
    /// # Errors
    /// The cluster cannot be reached, or refuses the credentials.
    pub(crate) async fn read(
        connection: ClusterConnection,
        namespace: Option<&str>,
        node_objects: NodeObjectsNeed,
        convert_object: ObjectConversionFn<'_, T>,
    ) -> Result<Self, LoadFailure> {
        let context_namespace = match connection.namespace.as_str() {
            "" => DEFAULT_NAMESPACE.to_owned(),
            own => own.to_owned(),
        };
        let mut remarks: Vec<String> = connection
            .server_connection
            .warnings
            .iter()
            .map(|own| format!("warning: {}", own.message))
            .collect();
        let client = Arc::new(ClusterClient::new(connection));
        let discovery = Discovery::read(&client).await.map_err(cluster_load_failure)?;
        for group in &discovery.unavailable_groups {
            remarks.push(format!(
                "note: the server of the group {group} does not describe its resources"
            ));
        }
        let question_namespace = namespace.unwrap_or(&context_namespace).to_owned();
        if !field_errors::dns1123_label_faults(&question_namespace).is_empty() {
            let message = format!("`{question_namespace}` is not the name of a namespace");
            return Err(LoadFailure::Usage(vec![message]));
        }
        let mut reader = ClusterObjectReader {
            cluster_client: &client,
            discovery: &discovery,
            namespace: &question_namespace,
            convert_object,
            cluster_remarks: Vec::new(),
            is_policy_partial: false,
        };
        let objects = reader.read_all_objects(node_objects).await.map_err(cluster_load_failure)?;
        let is_partial = reader.is_policy_partial;
        remarks.append(&mut reader.cluster_remarks);
        let resource_names = resource_names(discovery);
        Ok(Self {
            cluster_client: client,
            objects,
            resource_names,
            namespace: context_namespace,
            cluster_remarks: remarks,
            is_policy_partial: is_partial,
        })
    }
}

fn resource_names(discovery: Discovery) -> ResourceNameTable {
    let mut names = ResourceNameTable::default();
    for resource in discovery.resources {
        let DiscoveredResource {
            group,
            plural,
            singular,
            kind,
            short_names,
            is_namespaced,
            subresources,
            ..
        } = resource;
        names.add_discovered_resource(DiscoveredResourceNames {
            group,
            plural,
            singular,
            kind,
            short_names,
            is_namespaced,
            subresources,
        });
    }
    for group in &discovery.unavailable_groups {
        names.add_external_group(group);
    }
    names.add_unserved_resources_of_policies();
    names
}

fn cluster_load_failure(error: ClusterError) -> LoadFailure {
    match error {
        ClusterError::Connection(cause) => LoadFailure::from_message(format_args!(
            "the kubeconfig describes no usable connection: {cause}"
        )),
        error => LoadFailure::from_message(format_args!("the cluster cannot be read: {error}")),
    }
}

/// Reads lists at one revision.
struct ClusterObjectReader<'r, T> {
    cluster_client: &'r ClusterClient,
    discovery: &'r Discovery,
    /// The namespace to read if the user may not read all of them.
    namespace: &'r str,
    convert_object: ObjectConversionFn<'r, T>,
    cluster_remarks: Vec<String>,
    is_policy_partial: bool,
}

/// The result of one list.
enum ListResult<T> {
    Objects(ObjectList<T>),
    RevisionGone,
    /// The user may not list the resource.
    Forbidden,
    /// The server cannot list at a given revision.
    NoExactRevision,
}

impl<T: Send> ClusterObjectReader<'_, T> {
    async fn read_all_objects(
        &mut self,
        node_objects: NodeObjectsNeed,
    ) -> Result<Vec<T>, ClusterError> {
        for _ in 0..READS_MAX {
            let n_remarks = self.cluster_remarks.len();
            if let Some(objects) = self.read_objects_at_one_revision(node_objects).await? {
                return Ok(objects);
            }
            self.cluster_remarks.truncate(n_remarks);
            self.is_policy_partial = false;
        }
        let mut objects = Vec::new();
        for (path, group, plural, is_namespaced) in self.lists_to_read(node_objects) {
            match self.list_objects_at_path(&path, &ListRevision::Newest).await? {
                ListResult::Objects(list) => objects.extend(list.items),
                _ => objects.extend(
                    self.list_objects_in_permitted_namespace(
                        &group,
                        &plural,
                        is_namespaced,
                        &ListRevision::Newest,
                    )
                    .await?,
                ),
            }
        }
        self.add_several_revisions_remark();
        Ok(objects)
    }

    /// Returns `None` if the server drops the revision before all lists are read.
    async fn read_objects_at_one_revision(
        &mut self,
        node_objects: NodeObjectsNeed,
    ) -> Result<Option<Vec<T>>, ClusterError> {
        let mut objects = Vec::new();
        let mut revision = ListRevision::Newest;
        let mut has_several_revisions = false;
        for (path, group, plural, is_namespaced) in self.lists_to_read(node_objects) {
            let list = match self.list_objects_at_path(&path, &revision).await? {
                ListResult::NoExactRevision => {
                    has_several_revisions = true;
                    self.list_objects_at_path(&path, &ListRevision::Newest).await?
                }
                list => list,
            };
            match list {
                ListResult::Objects(list) => {
                    if revision == ListRevision::Newest && !list.revision.is_empty() {
                        revision = ListRevision::Exact(list.revision);
                    }
                    objects.extend(list.items);
                }
                ListResult::RevisionGone => return Ok(None),
                ListResult::Forbidden | ListResult::NoExactRevision => {
                    objects.extend(
                        self.list_objects_in_permitted_namespace(
                            &group,
                            &plural,
                            is_namespaced,
                            &revision,
                        )
                        .await?,
                    );
                }
            }
        }
        if has_several_revisions {
            self.add_several_revisions_remark();
        }
        Ok(Some(objects))
    }

    fn add_several_revisions_remark(&mut self) {
        let note = "note: the cluster cannot be read at one revision, so objects that changed meanwhile may be missing";
        self.cluster_remarks.push(note.to_owned());
    }

    /// The lists that the cluster serves: path, group, plural, and whether they are in namespaces.
    fn lists_to_read(&self, node_objects: NodeObjectsNeed) -> Vec<(String, String, String, bool)> {
        let mut lists: Vec<_> = RBAC_LISTS
            .iter()
            .map(|(plural, is_namespaced)| {
                let path = format!("/apis/{RBAC}/v1/{plural}");
                (path, RBAC.to_owned(), (*plural).to_owned(), *is_namespaced)
            })
            .collect();
        if node_objects == NodeObjectsNeed::Read {
            for (group, plural) in NODE_LISTS {
                let is_same =
                    |own: &&DiscoveredResource| own.plural == plural && own.group == group;
                if let Some(served) = self.discovery.resources.iter().find(is_same) {
                    let path = match group {
                        "" => format!("/api/{}/{plural}", served.version),
                        group => format!("/apis/{group}/{}/{plural}", served.version),
                    };
                    lists.push((path, group.to_owned(), plural.to_owned(), false));
                }
            }
        }
        lists
    }

    async fn list_objects_at_path(
        &mut self,
        path: &str,
        revision: &ListRevision,
    ) -> Result<ListResult<T>, ClusterError> {
        let n_undecodable = AtomicUsize::new(0);
        let convert = |object: &Value| {
            let converted = (self.convert_object)(object);
            if converted.is_none() {
                n_undecodable.fetch_add(1, Ordering::Relaxed);
            }
            converted
        };
        let shows_progress = std::io::stderr().is_terminal();
        let mut progress = |n_objects: usize| {
            if shows_progress {
                // A failed write to the terminal must not prevent the answer.
                let _ = write!(std::io::stderr(), "\r\x1b[Kreading {path}: {n_objects}");
            }
        };
        let listed =
            list_objects(self.cluster_client, path, revision, &convert, &mut progress).await;
        if shows_progress {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
        let n_undecodable = n_undecodable.into_inner();
        if n_undecodable > 0 {
            self.is_policy_partial = true;
            let warning = "objects cannot be decoded and are left out";
            self.cluster_remarks.push(format!("warning: {path}: {n_undecodable} {warning}"));
        }
        match listed {
            Ok(ListObjectsOutcome::Complete(list)) => Ok(ListResult::Objects(list)),
            Ok(ListObjectsOutcome::RevisionGone) => Ok(ListResult::RevisionGone),
            Err(ClusterError::Forbidden { .. }) => Ok(ListResult::Forbidden),
            // Servers before 1.19 do not know the match, and some do not allow it with a limit.
            Err(ClusterError::Status { status: 400 | 422, .. })
                if *revision != ListRevision::Newest =>
            {
                Ok(ListResult::NoExactRevision)
            }
            Err(error) => Err(error),
        }
    }

    /// Reads the objects of a resource in the namespace of the question, if the user may list them, and
    /// adds a remark about the others.
    async fn list_objects_in_permitted_namespace(
        &mut self,
        group: &str,
        plural: &str,
        is_namespaced: bool,
        revision: &ListRevision,
    ) -> Result<Vec<T>, ClusterError> {
        let rule =
            format!("{{apiGroups: [\"{group}\"], resources: [\"{plural}\"], verbs: [\"list\"]}}");
        if is_namespaced {
            let path = format!("/apis/{group}/v1/namespaces/{}/{plural}", self.namespace);
            if let ListResult::Objects(list) = self.list_objects_at_path(&path, revision).await? {
                // A question may be about another namespace, so a refusal is not certain.
                self.is_policy_partial = true;
                self.cluster_remarks.push(format!(
                    "note: only {plural} of the namespace {} can be read; the others need the rule {rule} in a ClusterRole",
                    self.namespace
                ));
                return Ok(list.items);
            }
        }
        self.is_policy_partial = true;
        self.cluster_remarks.push(format!(
            "warning: the answer is incomplete: the user of the kubeconfig may not list {plural}; this rule in a ClusterRole \
             would complete it: {rule}"
        ));
        Ok(Vec::new())
    }
}

/// Decodes an object that an authorizer uses. The cluster has validated it.
pub(crate) fn decode_authorizer_object(object: &Value) -> Option<AuthorizerObject> {
    match rbac::decode_unvalidated_rbac_object(object) {
        Ok(decoded) => decoded.into_object_unvalidated().ok().map(AuthorizerObject::Rbac),
        Err(_) => parse_node_authorizer_object(object).map(AuthorizerObject::Node),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_and_volumes_are_read_for_questions_about_nodes() {
        for (name, want) in [
            ("secrets", NodeObjectsNeed::Read),
            ("secret", NodeObjectsNeed::Read),
            ("cm", NodeObjectsNeed::Read),
            ("Pod", NodeObjectsNeed::Read),
            ("deployments", NodeObjectsNeed::Skip),
            ("leases", NodeObjectsNeed::Skip),
        ] {
            assert_eq!(NodeObjectsNeed::node_objects_needed_for_resource(name), want, "{name}");
        }
        assert_eq!(
            NodeObjectsNeed::node_objects_needed_for_user(Some("system:node:a")),
            NodeObjectsNeed::Read
        );
        assert_eq!(
            NodeObjectsNeed::node_objects_needed_for_user(Some("ana")),
            NodeObjectsNeed::Skip
        );
    }
}
