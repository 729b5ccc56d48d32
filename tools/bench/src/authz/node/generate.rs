//! Generates the pods and volumes of a cluster, and requests for them.
//!
//! Each node has 30 pods. A pod uses a secret of its own, one of 20 secrets and one of 20 config maps that
//! its namespace shares, and a service account. Every third pod has a volume.

use std::collections::HashMap;

use ::authz::User;
use authz_node::{GraphObject, NODE_USER_PREFIX, NODES_GROUP, Pod};
use serde_json::{Value, json};

use crate::authz::random::Random;
use crate::authz::request_pool::{ALL_USERS_GROUP, RequestTarget};
use crate::authz::vocabulary;

/// The number of pods of each node.
pub(crate) const PODS_OF_A_NODE: usize = 30;
/// The number of pods of each namespace.
const PODS_OF_A_NAMESPACE: usize = 300;
/// The number of shared secrets of each namespace, and of shared config maps.
const SHARED: usize = 20;
/// The number of service accounts of each namespace.
const ACCOUNTS: usize = 5;

/// The name of a node by its number.
fn node(number: usize) -> String {
    format!("node-{number:05}.internal")
}

/// The users of the nodes.
pub(crate) fn node_users(n_nodes: usize) -> Vec<User> {
    let node_user = |number| User {
        name: format!("{NODE_USER_PREFIX}{}", node(number)),
        groups: vec![NODES_GROUP.to_owned(), ALL_USERS_GROUP.to_owned()],
        ..User::default()
    };
    (0..n_nodes).map(node_user).collect()
}

/// The objects of a cluster in the form of the API. Each pod runs on a random node.
pub(crate) fn objects(n_nodes: usize, random: &mut Random) -> Vec<Value> {
    let n_pods = n_nodes * PODS_OF_A_NODE;
    let mut places: Vec<usize> = (0..n_pods).map(|number| number / PODS_OF_A_NODE).collect();
    random.shuffle(&mut places);
    let mut objects = Vec::new();
    for (number, place) in places.into_iter().enumerate() {
        let namespace = vocabulary::namespace(number / PODS_OF_A_NAMESPACE);
        let name = format!("pod-{number:06}");
        let mut volumes = vec![
            json!({"name": "tls", "secret": {
                "secretName": format!("shared-{:02}", random.below(SHARED))}}),
            json!({"name": "settings", "configMap": {
                "name": format!("settings-{:02}", random.below(SHARED))}}),
        ];
        if number % 3 == 0 {
            let claim = format!("data-{name}");
            volumes.push(json!({"name": "data", "persistentVolumeClaim": {"claimName": claim}}));
            objects.push(json!({
                "apiVersion": "v1", "kind": "PersistentVolume",
                "metadata": {"name": format!("volume-{number:06}")},
                "spec": {"claimRef": {"namespace": namespace, "name": claim}},
            }));
        }
        objects.push(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": namespace, "name": name, "uid": format!("uid-{number}")},
            "spec": {
                "nodeName": node(place),
                "serviceAccountName": format!("robot-{}", random.below(ACCOUNTS)),
                "containers": [{"name": "main", "env": [{"name": "TOKEN", "valueFrom": {
                    "secretKeyRef": {"name": format!("own-{name}"), "key": "token"}}}]}],
                "volumes": volumes,
            },
        }));
    }
    objects
}

/// Generates requests. A request that should be allowed is for a pod of the node; any other is for a pod of
/// another node.
pub(crate) struct RequestGenerator<'a> {
    pods: Vec<&'a Pod>,
    /// The pods of each node, by the name of its user.
    own: HashMap<String, Vec<&'a Pod>>,
}

impl<'a> RequestGenerator<'a> {
    pub(crate) fn new(objects: &'a [GraphObject]) -> Self {
        let pods = objects.iter().filter_map(|object| match object {
            GraphObject::Pod(pod) => Some(pod.as_ref()),
            _ => None,
        });
        let pods: Vec<&Pod> = pods.collect();
        let mut own: HashMap<String, Vec<&Pod>> = HashMap::new();
        for pod in &pods {
            own.entry(format!("{NODE_USER_PREFIX}{}", pod.node_name)).or_default().push(pod);
        }
        Self { pods, own }
    }

    pub(crate) fn propose(
        &self,
        random: &mut Random,
        user: &User,
        is_allowed: bool,
    ) -> Option<(String, RequestTarget)> {
        let pods = if is_allowed { self.own.get(&user.name)? } else { &self.pods };
        let pod = random.pick(pods)?;
        let read = ["get", "list", "watch"];
        let (verb, resource, subresource, name) = match random.below(10) {
            0..3 => (random.word(&read), "secrets", "", random.pick(&pod.secret_names)?),
            3..5 => (random.word(&read), "configmaps", "", random.pick(&pod.config_map_names)?),
            5 => ("get", "pods", "", &pod.name),
            6 => ("create", "serviceaccounts", "token", &pod.service_account_name),
            7 => ("get", "serviceaccounts", "", &pod.service_account_name),
            8 => {
                let claim = pod.persistent_volume_claim_names.first()?;
                ("get", "persistentvolumeclaims", "", claim)
            }
            _ => return self.volume(pod),
        };
        let asked = RequestTarget::Resource {
            namespace: pod.namespace.clone(),
            api_group: String::new(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            name: name.clone(),
        };
        Some((verb.to_owned(), asked))
    }

    /// A request for the volume of a pod, if it has one. The names of both contain the same number.
    fn volume(&self, pod: &Pod) -> Option<(String, RequestTarget)> {
        pod.persistent_volume_claim_names.first()?;
        let number = pod.name.strip_prefix("pod-")?;
        let asked = RequestTarget::Resource {
            namespace: String::new(),
            api_group: String::new(),
            resource: "persistentvolumes".to_owned(),
            subresource: String::new(),
            name: format!("volume-{number}"),
        };
        Some(("get".to_owned(), asked))
    }

    /// Pods that move to other nodes: each is the old and the new object.
    pub(crate) fn changes(
        &self,
        random: &mut Random,
        n_changes: usize,
    ) -> Vec<(GraphObject, GraphObject)> {
        let mut changes = Vec::new();
        for at in random.distinct(n_changes, self.pods.len()) {
            let (Some(old), Some(other)) = (self.pods.get(at), random.pick(&self.pods)) else {
                continue;
            };
            let old = (*old).clone();
            let new = Pod { node_name: other.node_name.clone(), ..old.clone() };
            changes.push((GraphObject::Pod(Box::new(old)), GraphObject::Pod(Box::new(new))));
        }
        changes
    }
}
