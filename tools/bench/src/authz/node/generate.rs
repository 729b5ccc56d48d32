//! Pods and volumes of a cluster, and questions about them.
//!
//! Each node has 30 pods. A pod uses a secret of its own, one of 20 secrets and one of 20 config
//! maps that are shared in its namespace, and a service account. Every third has a volume.

use std::collections::HashMap;

use ::authz::User;
use authz_node::{GraphObject, NODE_USER_PREFIX, NODES_GROUP, Pod};
use serde_json::{Value, json};

use crate::authz::question::{Asked, EVERYBODY};
use crate::authz::random::Random;
use crate::authz::vocabulary;

/// Pods of a node.
pub(crate) const PODS_OF_A_NODE: usize = 30;
/// Pods of a namespace.
const PODS_OF_A_NAMESPACE: usize = 300;
/// Shared secrets of a namespace, and as many config maps.
const SHARED: usize = 20;
/// Service accounts of a namespace.
const ACCOUNTS: usize = 5;

/// The name of a node, by number.
fn node(number: usize) -> String {
    format!("node-{number:05}.internal")
}

/// The nodes as users.
pub(crate) fn askers(n_nodes: usize) -> Vec<User> {
    let asker = |number| User {
        name: format!("{NODE_USER_PREFIX}{}", node(number)),
        groups: vec![NODES_GROUP.to_owned(), EVERYBODY.to_owned()],
        ..User::default()
    };
    (0..n_nodes).map(asker).collect()
}

/// The objects of a cluster as the API shows them. The nodes of a namespace's pods are random.
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

/// Makes up questions. One that should be allowed is about a pod of the asker; any other is about a
/// pod of somebody else.
pub(crate) struct Questions<'a> {
    pods: Vec<&'a Pod>,
    /// The pods of each node, by the name of its user.
    own: HashMap<String, Vec<&'a Pod>>,
}

impl<'a> Questions<'a> {
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
    ) -> Option<(String, Asked)> {
        let pods = if is_allowed { self.own.get(&user.name)? } else { &self.pods };
        let pod = random.pick(pods)?;
        let read = ["get", "list", "watch"];
        let (verb, resource, subresource, name) = match random.below(10) {
            0..3 => (random.word(&read), "secrets", "", random.pick(&pod.secrets)?),
            3..5 => (random.word(&read), "configmaps", "", random.pick(&pod.config_maps)?),
            5 => ("get", "pods", "", &pod.name),
            6 => ("create", "serviceaccounts", "token", &pod.service_account_name),
            7 => ("get", "serviceaccounts", "", &pod.service_account_name),
            8 => {
                let claim = pod.persistent_volume_claims.first()?;
                ("get", "persistentvolumeclaims", "", claim)
            }
            _ => return self.volume(pod),
        };
        let asked = Asked::Resource {
            namespace: pod.namespace.clone(),
            api_group: String::new(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            name: name.clone(),
        };
        Some((verb.to_owned(), asked))
    }

    /// The volume of a pod, if it has one: both bear its number.
    fn volume(&self, pod: &Pod) -> Option<(String, Asked)> {
        pod.persistent_volume_claims.first()?;
        let number = pod.name.strip_prefix("pod-")?;
        let asked = Asked::Resource {
            namespace: String::new(),
            api_group: String::new(),
            resource: "persistentvolumes".to_owned(),
            subresource: String::new(),
            name: format!("volume-{number}"),
        };
        Some(("get".to_owned(), asked))
    }

    /// Pods that are made anew on other nodes, each with what it was before.
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
