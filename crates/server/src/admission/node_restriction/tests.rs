//! The rules, per resource, subresource and verb.

use std::collections::HashMap;

use serde_json::json;

use super::*;

use Operation::{Create, Delete, Update};

/// The objects of a store, and the names that the node is allowed something on.
#[derive(Default)]
struct Objects {
    /// By resource, namespace and name.
    objects: HashMap<String, Value>,
    /// Verb, resource and name.
    allowed: Vec<(&'static str, &'static str, &'static str)>,
}

impl NodeRestrictionLookups for Objects {
    async fn find_stored_object(
        &self,
        _group: &str,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Tree>, Status> {
        let found = self.objects.get(&format!("{resource}/{namespace}/{name}"));
        Ok(found.map(|own| own.as_object().cloned().unwrap()))
    }

    async fn is_node_allowed(
        &self,
        _write: &NodeWrite<'_>,
        verb: &str,
        resource: &str,
        name: &str,
    ) -> Result<bool, Status> {
        Ok(self.allowed.contains(&(verb, resource, name)))
    }
}

/// Runs a rule whose lookups are never pending.
fn outcome(write: &NodeWrite<'_>, objects: &Objects) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    match runtime.block_on(check_node_write(write, objects)) {
        Ok(()) => "ok".to_owned(),
        Err(NodeWriteRefusal::Forbidden(why)) => why,
        Err(NodeWriteRefusal::Status(status)) => format!("{} {}", status.code, status.message),
    }
}

/// A write of the node `n` to an object `n` of the namespace `ns`.
struct Case {
    target: &'static str,
    operation: Operation,
    name: &'static str,
    object: Value,
    old: Value,
}

impl Case {
    fn new(target: &'static str, operation: Operation, object: Value, old: Value) -> Self {
        Self { target, operation, name: "n", object, old }
    }

    fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    fn outcome(&self, objects: &Objects) -> String {
        let (resource, subresource) = self.target.split_once('/').unwrap_or((self.target, ""));
        let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
        let (resource, namespace) = resource.split_once('@').unwrap_or((resource, "ns"));
        let write = NodeWrite {
            node_name: "n",
            operation: self.operation,
            group,
            version: "v1",
            resource,
            subresource,
            namespace,
            name: self.name,
            object: self.object.as_object(),
            old_object: self.old.as_object(),
        };
        outcome(&write, objects)
    }
}

#[track_caller]
fn check(cases: Vec<(Case, &str)>, objects: &Objects) {
    for (case, want) in cases {
        let found = case.outcome(objects);
        let (target, operation) = (case.target, case.operation);
        assert_eq!(found, want, "{operation:?} {target} {} from {}", case.object, case.old);
    }
}

fn owner(changes: Value) -> Value {
    let mut owner =
        json!({"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": true});
    owner.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    owner
}

fn mirror_pod(metadata: Value, spec: Value) -> Value {
    let mut pod = json!({
        "metadata": {"name": "p", "annotations": {MIRROR: "hash"}, "ownerReferences": [owner(json!({}))]},
        "spec": {"nodeName": "n", "containers": [{"name": "c"}]},
    });
    for (part, changes) in [("metadata", metadata), ("spec", spec)] {
        let own = pod[part].as_object_mut().unwrap();
        own.extend(changes.as_object().unwrap().clone());
    }
    pod
}

const MIRROR: &str = "kubernetes.io/config.mirror";

fn objects() -> Objects {
    let objects = [
        ("nodes//n", json!({"metadata": {"name": "n", "uid": "u"}})),
        (
            "pods/ns/mine",
            json!({"metadata": {"name": "mine", "uid": "pu"},
                "spec": {"nodeName": "n", "serviceAccountName": "sa"}}),
        ),
        ("pods/ns/other", json!({"metadata": {"uid": "pu"}, "spec": {"nodeName": "m"}})),
        ("pods/ns/unbound", json!({"metadata": {"uid": "pu"}, "spec": {}})),
        ("serviceaccounts/ns/sa", json!({"metadata": {"uid": "su"}})),
    ];
    Objects {
        objects: objects.into_iter().map(|(key, own)| (key.to_owned(), own)).collect(),
        allowed: Vec::new(),
    }
}

#[test]
fn a_node_creates_mirror_pods_of_its_own() {
    let create = |metadata: Value, spec: Value| {
        Case::new("pods", Create, mirror_pod(metadata, spec), Value::Null)
    };
    let owners = |owners: Value| create(json!({"ownerReferences": owners}), json!({}));
    let no_owner = "node \"n\" can only create pods with an owner reference set to itself";
    check(
        vec![
            (create(json!({}), json!({})), "ok"),
            (
                create(json!({"annotations": {}}), json!({})),
                "pod does not have \"kubernetes.io/config.mirror\" annotation, node \"n\" can only \
                 create mirror pods",
            ),
            (
                create(json!({"annotations": {"kubernetes.io/config.mirror2": ""}}), json!({})),
                "pod does not have \"kubernetes.io/config.mirror\" annotation, node \"n\" can only \
                 create mirror pods",
            ),
            (
                create(json!({}), json!({"nodeName": "m"})),
                "node \"n\" can only create pods with spec.nodeName set to itself",
            ),
            (
                create(json!({}), json!({"nodeName": ""})),
                "node \"n\" can only create pods with spec.nodeName set to itself",
            ),
            (owners(json!([])), no_owner),
            (
                owners(json!([owner(json!({})), owner(json!({"uid": "w"}))])),
                "node \"n\" can only create pods with a single owner reference set to itself",
            ),
            (owners(json!([owner(json!({"kind": "Namespace"}))])), no_owner),
            (owners(json!([owner(json!({"name": "m"}))])), no_owner),
            (owners(json!([owner(json!({"apiVersion": "v2"}))])), no_owner),
            (
                owners(json!([owner(json!({"controller": false}))])),
                "node \"n\" can only create pods with a controller owner reference set to itself",
            ),
            (
                owners(json!([owner(json!({"blockOwnerDeletion": true}))])),
                "node \"n\" must not set blockOwnerDeletion on an owner reference",
            ),
            (owners(json!([owner(json!({"blockOwnerDeletion": false}))])), "ok"),
            (owners(json!([owner(json!({"uid": "w"}))])), "node n UID mismatch: expected w got u"),
        ],
        &objects(),
    );
    // A node that does not exist owns nothing.
    check(
        vec![(owners(json!([owner(json!({}))])), "404 nodes \"n\" not found")],
        &Objects::default(),
    );
}

/// L11, L12: every list of containers and every kind of volume counts.
#[test]
fn a_mirror_pod_refers_to_no_other_object() {
    let volume = |source: Value| {
        let mut volume = json!({"name": "v"});
        volume.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
        json!({"volumes": [volume]})
    };
    let projected = |source: Value| volume(json!({"projected": {"sources": [source]}}));
    let secret_key = json!({"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}});
    let map_key = json!({"name": "A", "valueFrom": {"configMapKeyRef": {"name": "s", "key": "k"}}});
    let mut cases = vec![
        (json!({}), ""),
        (json!({"serviceAccountName": "sa"}), "serviceaccounts"),
        (json!({"serviceAccount": "sa"}), "serviceaccounts"),
        (json!({"imagePullSecrets": [{"name": "s"}]}), "secrets"),
        (json!({"resourceClaims": [{"name": "c"}]}), "resourceclaims"),
        (json!({"resourceClaims": []}), ""),
        (volume(json!({"secret": {"secretName": "s"}})), "secrets"),
        (volume(json!({"secret": {}})), "secrets (via secret volumes)"),
        (volume(json!({"configMap": {"name": "s"}})), "configmaps"),
        (volume(json!({"configMap": {}})), "configmaps (via configmap volumes)"),
        (volume(json!({"csi": {"driver": "d"}})), "csidrivers (via CSI volumes)"),
        (volume(json!({"csi": {"driver": "d", "nodePublishSecretRef": {"name": "s"}}})), "secrets"),
        (volume(json!({"glusterfs": {}})), "endpoints (via glusterFS volumes)"),
        (volume(json!({"persistentVolumeClaim": {"claimName": "c"}})), "persistentvolumeclaims"),
        (volume(json!({"ephemeral": {}})), "persistentvolumeclaims (via ephemeral volumes)"),
        (volume(json!({"azureFile": {}})), "secrets (via azureFile volumes)"),
        (volume(json!({"rbd": {"secretRef": {"name": "s"}}})), "secrets"),
        (volume(json!({"rbd": {}})), ""),
        (volume(json!({"emptyDir": {}})), ""),
        (volume(json!({"emptyDir": {}, "newVolume": null})), ""),
        (volume(json!({"projected": {}})), ""),
        (volume(json!({"hostPath": {"path": "/"}})), ""),
        // One source hides no other one.
        (
            volume(json!({"emptyDir": {}, "persistentVolumeClaim": {"claimName": "c"}})),
            "persistentvolumeclaims",
        ),
        (projected(json!({"secret": {}})), "secrets (via projected volumes)"),
        (projected(json!({"secret": {"name": "s"}})), "secrets"),
        (projected(json!({"configMap": {}})), "configmaps (via projected volumes)"),
        (projected(json!({"serviceAccountToken": {}})), "serviceaccounts (via projected volumes)"),
        (projected(json!({"clusterTrustBundle": {}})), "clustertrustbundles"),
        (projected(json!({"podCertificate": {}})), "podcertificates"),
        (projected(json!({"downwardAPI": {}})), ""),
        (projected(json!({"downwardAPI": {}, "podCertificate": {}})), "podcertificates"),
    ];
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        cases.extend([
            (json!({list: [{"envFrom": [{"secretRef": {"name": "s"}}]}]}), "secrets"),
            (json!({list: [{"envFrom": [{"configMapRef": {"name": "s"}}]}]}), "configmaps"),
            (json!({list: [{"env": [secret_key]}]}), "secrets"),
            (json!({list: [{"env": [map_key]}]}), "configmaps"),
            (json!({list: [{"env": [{"name": "A", "value": "b"}]}]}), ""),
        ]);
    }
    for (spec, reference) in cases {
        let want = match reference {
            "" => "ok".to_owned(),
            what => format!("node \"n\" cannot create pods that reference {what}"),
        };
        let case = Case::new("pods", Create, mirror_pod(json!({}), spec.clone()), Value::Null);
        assert_eq!(case.outcome(&objects()), want, "{spec}");
    }
    let unknown = "error checking mirror pod for API references: unknown ";
    for (spec, want) in [
        (volume(json!({"newVolume": {}})), "volume type for volume  \"v\""),
        (volume(json!({})), "volume type for volume  \"v\""),
        (json!({"volumes": {"v": {}}}), "volume type for volume  \"\""),
        (projected(json!({"newSource": {}})), "source for projected volume \"v\""),
        (volume(json!({"projected": {"sources": {}}})), "source for projected volume \"v\""),
        // A known source hides no unknown one.
        (volume(json!({"projected": {}, "newVolume": {}})), "volume type for volume  \"v\""),
        (volume(json!({"emptyDir": {}, "newVolume": {}})), "volume type for volume  \"v\""),
        (
            projected(json!({"downwardAPI": {}, "newSource": {}})),
            "source for projected volume \"v\"",
        ),
    ] {
        let case = Case::new("pods", Create, mirror_pod(json!({}), spec.clone()), Value::Null);
        assert_eq!(case.outcome(&objects()), format!("{unknown}{want}"), "{spec}");
    }
}

#[test]
fn a_node_acts_on_pods_that_are_bound_to_it() {
    let pod = |node: &str| json!({"metadata": {"name": "p"}, "spec": {"nodeName": node}});
    let delete = |pod: Value| Case::new("pods", Delete, Value::Null, pod);
    let evict = |name| {
        Case::new("pods/eviction", Create, json!({"metadata": {"name": "mine"}}), Value::Null)
            .named(name)
    };
    let not_deleted = "node \"n\" can only delete pods with spec.nodeName set to itself";
    let not_evicted = "node n can only evict pods with spec.nodeName set to itself";
    let no_binding =
        "unexpected pod subresource \"binding\", only 'status' and 'eviction' are allowed";
    check(
        vec![
            (delete(pod("n")), "ok"),
            (delete(pod("m")), not_deleted),
            (delete(pod("")), not_deleted),
            (
                Case::new("pods", Update, pod("n"), pod("n")),
                "unexpected operation \"UPDATE\", node \"n\" can only create and delete mirror pods",
            ),
            (evict("mine"), "ok"),
            (evict("other"), not_evicted),
            (evict("unbound"), not_evicted),
            (evict("gone"), "404 pods \"gone\" not found"),
            (evict(""), "ok"),
            (
                Case::new("pods/eviction", Create, json!({}), Value::Null).named(""),
                "could not determine pod from request data",
            ),
            (
                Case::new("pods/eviction", Update, json!({}), pod("n")),
                "unexpected operation UPDATE",
            ),
            (Case::new("pods/binding", Create, json!({}), Value::Null), no_binding),
            (Case::new("bindings", Create, json!({}), Value::Null), no_binding),
            (
                Case::new("pods/ephemeralcontainers", Update, pod("n"), pod("n")),
                "unexpected pod subresource \"ephemeralcontainers\", only 'status' and 'eviction' \
                 are allowed",
            ),
        ],
        &objects(),
    );
}

#[test]
fn a_node_reports_the_status_of_its_pods_and_nothing_else() {
    let pod = |node: &str, labels: Value, status: Value| json!({"metadata": {"labels": labels}, "spec": {"nodeName": node}, "status": status});
    let update = |new: Value, old: Value| Case::new("pods/status", Update, new, old);
    let plain = || pod("n", json!({"a": "b"}), json!({}));
    let labels = "node \"n\" cannot update labels through pod status";
    let status = |status: Value| update(pod("n", json!({"a": "b"}), status), plain());
    check(
        vec![
            (status(json!({"phase": "Running"})), "ok"),
            (
                update(pod("m", json!({}), json!({})), pod("m", json!({}), json!({}))),
                "node \"n\" can only update pod status for pods with spec.nodeName set to itself",
            ),
            // The stored pod decides, not what the request says about it.
            (
                update(pod("n", json!({}), json!({})), pod("", json!({}), json!({}))),
                "node \"n\" can only update pod status for pods with spec.nodeName set to itself",
            ),
            (update(pod("n", json!({"a": "c"}), json!({})), plain()), labels),
            (update(pod("n", json!({}), json!({})), plain()), labels),
            (update(pod("n", json!({"a": "b", "c": ""}), json!({})), plain()), labels),
            (update(pod("n", json!(["a"]), json!({})), plain()), labels),
            (update(pod("n", json!({}), json!({})), pod("n", Value::Null, json!({}))), "ok"),
            (
                status(json!({"resourceClaimStatuses": [{"name": "c", "resourceClaimName": "x"}]})),
                "node \"n\" cannot update resource claim statues",
            ),
            (
                status(json!({"extendedResourceClaimStatus": {"resourceClaimName": "x"}})),
                "node \"n\" cannot update extended resource claim status",
            ),
            (
                status(
                    json!({"nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "x"}]}),
                ),
                "node \"n\" cannot update node allocatable resource claim statuses",
            ),
            (status(json!({"resourceClaimStatuses": []})), "ok"),
            (
                Case::new("pods/status", Delete, Value::Null, plain()),
                "unexpected operation \"DELETE\"",
            ),
        ],
        &objects(),
    );
}

/// L13, L14: a create is held to the same rules as an update, and metadata counts.
#[test]
fn a_node_changes_only_harmless_parts_of_its_own_node() {
    let node = |metadata: Value, spec: Value| json!({"metadata": metadata, "spec": spec});
    let create = |metadata, spec| Case::new("nodes", Create, node(metadata, spec), Value::Null);
    let plain = || {
        node(
            json!({"labels": {"node-restriction.kubernetes.io/a": "1", "b": "2"}}),
            json!({"taints": [{"key": "t", "effect": "NoSchedule"}]}),
        )
    };
    let changed = |change: fn(&mut Value)| {
        let mut new = plain();
        change(&mut new);
        new
    };
    let taints = "node \"n\" is not allowed to modify taints";
    let owners = "node \"n\" is not allowed to modify ownerReferences";
    let label = "is not allowed to modify labels: node-restriction.kubernetes.io/a";
    let mut cases = vec![
        (create(json!({}), json!({})), "ok"),
        (create(json!({"labels": {"kubernetes.io/hostname": "n", "own": "1"}}), json!({})), "ok"),
        (create(json!({}), json!({"taints": [{"key": "a"}]})), "ok"),
        (
            create(
                json!({"labels": {"x.k8s.io/b": "", "kubernetes.io/a": "", "c": ""}}),
                json!({}),
            ),
            "node \"n\" is not allowed to set the following labels: kubernetes.io/a, x.k8s.io/b",
        ),
        (
            create(json!({}), json!({"configSource": {}})),
            "node \"n\" is not allowed to create pods with a non-nil configSource",
        ),
        (
            create(json!({"ownerReferences": [owner(json!({}))]}), json!({})),
            "node \"n\" is not allowed to set ownerReferences",
        ),
        (create(json!({}), json!({})).named("m"), "node \"n\" is not allowed to modify node \"m\""),
        (create(json!({}), json!({})).named(""), "node \"n\" is not allowed to modify node \"\""),
        (
            Case::new("nodes", Delete, Value::Null, plain()).named("m"),
            "node \"n\" is not allowed to modify node \"m\"",
        ),
        (Case::new("nodes", Delete, Value::Null, plain()), "ok"),
    ];
    for target in ["nodes", "nodes/status"] {
        let update = |new: Value| Case::new(target, Update, new, plain());
        cases.extend([
            (update(plain()), "ok"),
            (update(plain()).named("m"), "node \"n\" is not allowed to modify node \"m\""),
            (update(changed(|new| new["spec"]["unschedulable"] = json!(true))), "ok"),
            (update(changed(|new| new["metadata"]["labels"]["b"] = json!("3"))), "ok"),
            (update(changed(|new| new["metadata"]["annotations"] = json!({"a": "b"}))), "ok"),
            (update(changed(|new| new["spec"]["taints"] = json!([]))), taints),
            (update(changed(|new| new["spec"] = json!({}))), taints),
            (
                update(changed(|new| new["spec"]["taints"][0]["effect"] = json!("NoExecute"))),
                taints,
            ),
            (
                update(changed(|new| new["metadata"]["ownerReferences"] = json!([{"uid": "u"}]))),
                owners,
            ),
            (update(changed(|new| new["metadata"]["ownerReferences"] = json!([]))), "ok"),
            (
                update(changed(|new| {
                    new["metadata"]["labels"]["node-restriction.kubernetes.io/a"] = json!("2");
                })),
                label,
            ),
            (update(changed(|new| new["metadata"]["labels"] = json!({"b": "2"}))), label),
            (update(changed(|new| new["metadata"] = json!({}))), label),
            (update(changed(|new| new["spec"]["configSource"] = Value::Null)), "ok"),
            (
                update(changed(|new| new["spec"]["configSource"] = json!({"configMap": {}}))),
                "node \"n\" is not allowed to update configSource to a new non-nil configSource",
            ),
        ]);
    }
    check(cases, &objects());
}

#[test]
fn a_node_has_its_own_lease_csi_node_and_slices() {
    let object = || json!({"metadata": {"name": "n"}});
    let slice = |node: &str| json!({"spec": {"nodeName": node}});
    let lease = "can only access node lease with the same name as the requesting node";
    let csi = "can only access CSINode with the same name as the requesting node";
    let mut cases = Vec::new();
    for operation in [Create, Update, Delete] {
        let of = |target| Case::new(target, operation, object(), object());
        let leases = "leases@kube-node-lease.coordination.k8s.io";
        cases.extend([
            (of(leases), "ok"),
            (of(leases).named("m"), lease),
            (
                of("leases.coordination.k8s.io"),
                "can only access leases in the \"kube-node-lease\" system namespace",
            ),
            (of("csinodes.storage.k8s.io"), "ok"),
            (of("csinodes.storage.k8s.io").named("m"), csi),
            // Other resources are the matter of the authorizers.
            (of("configmaps").named("m"), "ok"),
            (of("serviceaccounts").named("m"), "ok"),
        ]);
    }
    let slices = "resourceslices.resource.k8s.io";
    let refused = |verb: &str| match verb {
        "create" => "can only create ResourceSlice with the same NodeName as the requesting node",
        "update" => "can only update ResourceSlice with the same NodeName as the requesting node",
        _ => "can only delete ResourceSlice with the same NodeName as the requesting node",
    };
    cases.extend([
        (Case::new(slices, Create, slice("n"), Value::Null), "ok"),
        (Case::new(slices, Create, slice("m"), Value::Null), refused("create")),
        (
            Case::new(slices, Create, json!({"spec": {"allNodes": true}}), Value::Null),
            refused("create"),
        ),
        (Case::new(slices, Update, slice("n"), slice("n")), "ok"),
        (Case::new(slices, Update, slice("n"), slice("m")), refused("update")),
        (Case::new(slices, Update, slice("m"), slice("n")), refused("update")),
        (Case::new(slices, Delete, Value::Null, slice("n")), "ok"),
        (Case::new(slices, Delete, Value::Null, slice("m")), refused("delete")),
        (Case::new(slices, Delete, Value::Null, json!({})), refused("delete")),
    ]);
    check(cases, &objects());
}

#[test]
fn a_node_reports_the_resize_of_a_claim_and_nothing_else() {
    let claim = |metadata: Value, spec: Value, status: Value| json!({"metadata": metadata, "spec": spec, "status": status});
    let old = || {
        claim(
            json!({"name": "c", "resourceVersion": "1"}),
            json!({"a": 1}),
            json!({"phase": "Bound"}),
        )
    };
    let update = |new: Value| Case::new("persistentvolumeclaims/status", Update, new, old());
    let refused = |what: &str| {
        format!(
            "node \"n\" is not allowed to update fields other than status.quantity and \
             status.conditions: {what} differs"
        )
    };
    let name = || json!({"name": "c", "resourceVersion": "2"});
    let resized = json!({"phase": "Bound", "capacity": {"storage": "2Gi"}, "conditions": [{}],
        "allocatedResources": {}, "allocatedResourceStatuses": {"storage": "x"}});
    for (new, want) in [
        (claim(name(), json!({"a": 1}), resized), "ok".to_owned()),
        (claim(name(), json!({"a": 1}), json!({"phase": "Lost"})), refused("status")),
        (claim(name(), json!({"a": 2}), json!({"phase": "Bound"})), refused("spec")),
        (
            claim(
                json!({"name": "c", "labels": {"a": "b"}}),
                json!({"a": 1}),
                json!({"phase": "Bound"}),
            ),
            refused("metadata"),
        ),
        (
            claim(json!({"name": "c", "finalizers": ["f"]}), json!({"a": 2}), json!({})),
            refused("metadata, spec, status"),
        ),
    ] {
        assert_eq!(update(new.clone()).outcome(&objects()), want, "{new}");
    }
    let only = "may only update PVC status";
    check(
        vec![
            (Case::new("persistentvolumeclaims", Create, old(), Value::Null), only),
            (Case::new("persistentvolumeclaims", Update, old(), old()), only),
            (Case::new("persistentvolumeclaims", Delete, Value::Null, old()), only),
            (
                Case::new("persistentvolumeclaims/status", Delete, Value::Null, old()),
                "unexpected operation \"DELETE\"",
            ),
        ],
        &objects(),
    );
}

#[test]
fn a_token_is_bound_to_a_pod_of_the_node_and_for_its_audiences() {
    let token = |reference: Value, audiences: Value| {
        let spec = json!({"boundObjectRef": reference, "audiences": audiences});
        Case::new("serviceaccounts/token", Create, json!({"spec": spec}), Value::Null).named("sa")
    };
    let pod = |name: &str| json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": "pu"});
    let to = |audience: &str| token(pod("mine"), json!([audience]));
    let unbound = "node requested token not bound to a pod";
    let mut objects = objects();
    let volumes = json!([
        {"name": "t", "projected": {"sources": [
            {"serviceAccountToken": {"path": "t"}},
            {"serviceAccountToken": {"audience": "vault"}},
        ]}},
        {"name": "inline", "csi": {"driver": "inline.csi"}},
        {"name": "claim", "persistentVolumeClaim": {"claimName": "c"}},
        {"name": "made", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        {"name": "old", "awsElasticBlockStore": {"volumeID": "x"}},
    ]);
    objects.objects.get_mut("pods/ns/mine").unwrap()["spec"]["volumes"] = volumes;
    let driver = |audience: &str| json!({"spec": {"tokenRequests": [{"audience": audience}]}});
    for (key, object) in [
        ("csidrivers//inline.csi", driver("inline")),
        ("csidrivers//claimed.csi", driver("claimed")),
        ("csidrivers//made.csi", driver("made")),
        ("csidrivers//ebs.csi.aws.com", driver("ebs")),
        ("persistentvolumeclaims/ns/c", json!({"spec": {"volumeName": "v"}})),
        ("persistentvolumes//v", json!({"spec": {"csi": {"driver": "claimed.csi"}}})),
        ("persistentvolumeclaims/ns/mine-made", json!({"spec": {"volumeName": "w"}})),
        ("persistentvolumes//w", json!({"spec": {"csi": {"driver": "made.csi"}}})),
    ] {
        objects.objects.insert(key.to_owned(), object);
    }
    objects.allowed = vec![("request-serviceaccounts-token-audience", "granted", "sa")];
    check(
        vec![
            (token(Value::Null, json!(["x"])), unbound),
            (
                token(
                    json!({"kind": "Secret", "apiVersion": "v1", "name": "q", "uid": "w"}),
                    json!([]),
                ),
                unbound,
            ),
            (
                token(
                    json!({"kind": "Node", "apiVersion": "v1", "name": "n", "uid": "u"}),
                    json!([]),
                ),
                unbound,
            ),
            (
                token(
                    json!({"kind": "Pod", "apiVersion": "v2", "name": "mine", "uid": "pu"}),
                    json!([]),
                ),
                unbound,
            ),
            (
                token(json!({"kind": "Pod", "apiVersion": "v1", "name": "mine"}), json!([])),
                "node requested token with a pod binding without a uid",
            ),
            (
                token(
                    json!({"kind": "Pod", "apiVersion": "v1", "name": "mine", "uid": "w"}),
                    json!([]),
                ),
                "the UID in the bound object reference (w) does not match the UID in record. The \
                 object might have been deleted and then recreated",
            ),
            (token(pod("gone"), json!([])), "404 pods \"gone\" not found"),
            (
                token(pod("other"), json!([])),
                "node requested token bound to a pod scheduled on a different node",
            ),
            (
                token(pod("unbound"), json!([])),
                "node requested token bound to a pod scheduled on a different node",
            ),
            (token(pod("mine"), json!([])), "ok"),
            (token(pod("mine"), Value::Null), "ok"),
            (to(""), "ok"),
            (to("vault"), "ok"),
            (to("inline"), "ok"),
            (to("claimed"), "ok"),
            (to("made"), "ok"),
            (to("ebs"), "ok"),
            (to("granted"), "ok"),
            (to("else"), "system:node:n is not authorized to request tokens for audience \"else\""),
            (
                token(pod("mine"), json!(["vault", "inline"])),
                "node may only request 0 or 1 audiences",
            ),
            (token(pod("mine"), json!("vault")), "node may only request 0 or 1 audiences"),
        ],
        &objects,
    );
    objects.objects.remove("persistentvolumes//v");
    check(
        vec![
            (to("inline"), "ok"),
            (to("else"), "error validating audience \"else\": persistentvolumes \"v\" not found"),
        ],
        &objects,
    );
}

#[test]
fn a_certificate_is_for_a_pod_of_the_node() {
    let request = |changes: Value| {
        let mut spec = json!({
            "nodeName": "n", "nodeUID": "u", "podName": "mine", "podUID": "pu",
            "serviceAccountName": "sa", "serviceAccountUID": "su", "signerName": "example.com/s",
        });
        spec.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        let target = "podcertificaterequests.certificates.k8s.io";
        Case::new(target, Create, json!({"spec": spec}), Value::Null)
    };
    let mut objects = objects();
    let about = "PodCertificateRequest for pod \"ns/mine\"";
    let unmounted = "pod \"ns/mine\" does not mount a podCertificate projected volume for signer \
                     \"example.com/s\"";
    check(vec![(request(json!({})), unmounted)], &objects);
    objects.allowed =
        vec![("request-serviceaccounts-podcertificate-signer", "example.com:s", "sa")];
    check(vec![(request(json!({})), "ok")], &objects);
    objects.allowed.clear();
    let source = json!({"podCertificate": {"signerName": "example.com/s"}});
    objects.objects.get_mut("pods/ns/mine").unwrap()["spec"]["volumes"] =
        json!([{"projected": {"sources": [source]}}]);
    let cases = [
        (json!({}), "ok".to_owned()),
        (
            json!({"nodeName": "m"}),
            "PodCertificateRequest.Spec.NodeName=\"m\", which is not the requesting node \"n\"".to_owned(),
        ),
        (
            json!({"nodeUID": "w"}),
            format!("500 {about} names node UID \"w\", inconsistent with the running node (\"u\")"),
        ),
        (
            json!({"podUID": "w"}),
            format!("500 {about} contains pod UID (\"w\") which differs from running pod \"pu\""),
        ),
        (
            json!({"podName": "gone"}),
            "500 while retrieving pod \"ns/gone\" named in the PodCertificateRequest: pods \"gone\" \
             not found"
                .to_owned(),
        ),
        (
            json!({"podName": "other"}),
            "pod \"ns/other\" is not running on node \"n\" named in the PodCertificateRequest".to_owned(),
        ),
        (
            json!({"serviceAccountName": "admin"}),
            format!("{about} contains serviceAccountName (\"admin\") that differs from running pod (\"sa\")"),
        ),
        (
            json!({"serviceAccountUID": "w"}),
            format!("500 {about} names service account UID \"w\", which differs from the running service \
                     account (\"su\")"),
        ),
        (json!({"signerName": "example.com/t"}), unmounted.replace("/s", "/t")),
    ];
    for (changes, want) in cases {
        assert_eq!(request(changes.clone()).outcome(&objects), want, "{changes}");
    }
    let of = |target, operation| Case { target, operation, ..request(json!({})) };
    check(
        vec![
            (
                of("podcertificaterequests.certificates.k8s.io", Update),
                "unexpected operation UPDATE",
            ),
            (
                of("podcertificaterequests.certificates.k8s.io", Delete),
                "unexpected operation DELETE",
            ),
        ],
        &objects,
    );
    objects.objects.get_mut("pods/ns/mine").unwrap()["metadata"]["annotations"] =
        json!({MIRROR: ""});
    check(vec![(request(json!({})), "pod \"ns/mine\" is a mirror pod")], &objects);
}
