//! Attacks with the credential of a node, which must fail.

use authn::TokenFile;
use http::Method;
use serde_json::{Value, json};

use super::RBAC;
use crate::admission_hooks::{HookAuthority, MUTATING, patching, register, rule};
use crate::client::{Answer, Client};
use crate::cluster::Cluster;

const PODS: &str = "/api/v1/namespaces/t1/pods";
const NODES: &str = "/api/v1/nodes";
const ACCOUNTS: &str = "/api/v1/namespaces/t1/serviceaccounts";
const CLAIMS: &str = "/api/v1/namespaces/t1/persistentvolumeclaims";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
const SLICES: &str = "/apis/resource.k8s.io/v1/resourceslices";
const CSI_NODES: &str = "/apis/storage.k8s.io/v1/csinodes";
const CERTIFICATES: &str = "/apis/certificates.k8s.io/v1";
const MIRROR: &str = "kubernetes.io/config.mirror";

/// `/O=system:nodes/CN=system:node:n1`, in base64 as `spec.request` is.
const CERTIFICATE_OF_N1: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIc01JR1NBZ0VBTURBeEZUQVRCZ05WQkFvTURITjVjM1JsYlRwdWIyUmxjekVYTUJVR0ExVUVBd3dPYzNsegpkR1Z0T201dlpHVTZiakV3V1RBVEJnY3Foa2pPUFFJQkJnZ3Foa2pPUFFNQkJ3TkNBQVRGSDRaUTdmemdSWEhZCjRNU2RkaWNZY0d1QS93MGttVUJhb2xVRmorUm4yemVJM3dwVGtnWXpjd1NYZnNITTZSVE1qb2FwODNaR2tzcjMKTjVlLy95M0NvQUF3Q2dZSUtvWkl6ajBFQXdJRFNRQXdSZ0loQU1NQ3h5b0FtV0p0bGE0d3JBdXBPQXpzeENsQQpxUDRuZFFXU2N6cVQvSE80QWlFQWtTbHdhc1p3OU1SVVEzL1hrMlJic0IxOW1KN2VybE9hNWNIT1ozUjFlMDA9Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo=";

const TOKENS: &str = "admin-token,admin,1,system:masters\n\
    node-token,system:node:n1,2,system:nodes\n\
    new-node-token,system:node:n3,3,system:nodes\n\
    nameless-token,system:node:,4,system:nodes\n";

/// A cluster with the nodes n1 and n2, whose pods are `mine` and `other`. The node n3 has not registered.
struct Site {
    cluster: Cluster,
    admin: Client,
    /// The uid of n1.
    node_uid: Value,
    /// The uids of the pods `mine` and `other`.
    pod_uids: [Value; 2],
}

impl Site {
    /// `is_trusted` gives nodes every permission, so that nothing but NodeRestriction is in the way.
    async fn start(is_trusted: bool) -> Self {
        let cluster = Cluster::start_with(|options, _| {
            options.authentication_options.token_file =
                Some(TokenFile::parse("tokens", TOKENS).unwrap());
        })
        .await;
        let admin = cluster.admin();
        let namespaces = "/api/v1/namespaces";
        for name in ["t1", "kube-node-lease"] {
            let made = admin.post(namespaces, &json!({"metadata": {"name": name}})).await.code;
            assert!(matches!(made, 201 | 409), "{made}");
        }
        for name in ["default", "powerful"] {
            let made = admin.post(ACCOUNTS, &json!({"metadata": {"name": name}})).await.code;
            assert!(matches!(made, 201 | 409), "{made}");
        }
        let secret = json!({"metadata": {"name": "s"}, "stringData": {"k": "v"}});
        admin.post("/api/v1/namespaces/t1/secrets", &secret).await.expect(201);
        let node = |name: &str| {
            json!({"metadata": {"name": name, "labels": {"node-restriction.kubernetes.io/a": "1"}},
                "spec": {"taints": [{"key": "t", "effect": "NoSchedule"}]}})
        };
        let node_uid = admin.post(NODES, &node("n1")).await.expect(201)["metadata"]["uid"].clone();
        admin.post(NODES, &node("n2")).await.expect(201);
        let pod = |name: &str, node: &str, account: &str| {
            json!({"metadata": {"name": name, "labels": {"app": "a"}}, "spec": {"nodeName": node,
                "serviceAccountName": account, "containers": [{"name": "c", "image": "i:1"}]}})
        };
        let mut pod_uids = [Value::Null, Value::Null];
        for (uid, pod) in
            pod_uids.iter_mut().zip([pod("mine", "n1", "default"), pod("other", "n2", "powerful")])
        {
            *uid = admin.post(PODS, &pod).await.expect(201)["metadata"]["uid"].clone();
        }
        admin.post(PODS, &pod("unbound", "", "default")).await.expect(201);
        let lease = json!({"metadata": {"name": "n2"}, "spec": {"holderIdentity": "n2"}});
        admin.post(LEASES, &lease).await.expect(201);
        let slice = json!({"metadata": {"name": "of-n2"}, "spec": {"driver": "d.example",
            "nodeName": "n2", "pool": {"name": "p"}}});
        admin.post(SLICES, &slice).await.expect(201);
        let csi = json!({"metadata": {"name": "n2"}, "spec": {"drivers": []}});
        admin.post(CSI_NODES, &csi).await.expect(201);
        let claim = json!({"metadata": {"name": "c"}, "spec": {"volumeName": "v"}});
        admin.post(CLAIMS, &claim).await.expect(201);
        if is_trusted {
            let binding = json!({"metadata": {"name": "nodes"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                            "name": "cluster-admin"},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group",
                              "name": "system:nodes"}]});
            admin.post(&format!("{RBAC}/clusterrolebindings"), &binding).await.expect(201);
        }
        Self { cluster, admin, node_uid, pod_uids }
    }

    fn client(&self, token: &str) -> Client {
        self.cluster.anonymous().with_token(token)
    }

    /// A mirror pod of n1, with changes of its metadata and its spec.
    fn mirror_pod(&self, name: &str, metadata: Value, spec: Value) -> Value {
        let owner = json!({"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": self.node_uid,
            "controller": true});
        let mut pod = json!({
            "metadata": {"name": name, "annotations": {MIRROR: "hash"}, "ownerReferences": [owner]},
            "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i:1"}]},
        });
        for (part, changes) in [("metadata", metadata), ("spec", spec)] {
            let own = pod[part].as_object_mut().unwrap();
            own.extend(changes.as_object().unwrap().clone());
        }
        pod
    }

    /// Everything that an attempt may change. Times and revisions included.
    async fn state(&self) -> Vec<Value> {
        let mut state = Vec::new();
        for path in [PODS, NODES, LEASES, SLICES, CSI_NODES, CLAIMS] {
            state.push(self.admin.get(path).await.expect(200)["items"].clone());
        }
        for path in ["certificatesigningrequests", "namespaces/t1/podcertificaterequests"] {
            let path = format!("{CERTIFICATES}/{path}");
            state.push(self.admin.get(&path).await.expect(200)["items"].clone());
        }
        state
    }
}

/// The same change of an object, by a PUT and by patches of every type.
async fn change_in_every_way(
    client: &Client,
    path: &str,
    stored: &Value,
    part: &str,
    member: &str,
    value: &Value,
) -> Vec<(String, Answer)> {
    let mut replaced = stored.clone();
    replaced[part][member] = value.clone();
    let merge = json!({part: {member: value}});
    let operations = json!([{"op": "add", "path": format!("/{part}/{member}"), "value": value}]);
    let mut answers = vec![("PUT".to_owned(), client.put(path, &replaced).await)];
    for (kind, body) in
        [("merge-patch", &merge), ("strategic-merge-patch", &merge), ("json-patch", &operations)]
    {
        answers.push((kind.to_owned(), client.patch(path, kind, body).await));
    }
    answers
}

#[track_caller]
fn assert_refused(what: &str, answer: &Answer) {
    let (code, text) = (answer.code, answer.text());
    assert!(matches!(code, 400 | 403 | 404 | 405 | 409 | 422), "{what}: {code} {text}");
}

/// A23: pods for itself with secrets of others, in every field that refers to one, and mirror pods that are none.
/// L13: what a node may not do by an update, it may not do by a create.
#[tokio::test(flavor = "multi_thread")]
async fn a23_a_node_makes_no_pod_that_refers_to_objects_of_others() {
    for is_trusted in [false, true] {
        let site = Site::start(is_trusted).await;
        let node = site.client("node-token");
        let before = site.state().await;
        let volume = |source: Value| {
            let mut volume = json!({"name": "v"});
            volume.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
            json!({"volumes": [volume]})
        };
        let env_from =
            json!([{"name": "c", "image": "i:1", "envFrom": [{"secretRef": {"name": "s"}}]}]);
        let mut attempts: Vec<Value> = [
            volume(json!({"secret": {"secretName": "s"}})),
            volume(json!({"emptyDir": {}, "secret": {"secretName": "s"}})),
            volume(json!({"projected": {"sources": [{"secret": {"name": "s"}}]}})),
            volume(json!({"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}})),
            volume(json!({"persistentVolumeClaim": {"claimName": "c"}})),
            volume(json!({"csi": {"driver": "d", "nodePublishSecretRef": {"name": "s"}}})),
            json!({"imagePullSecrets": [{"name": "s"}]}),
            json!({"serviceAccountName": "powerful"}),
            json!({"serviceAccount": "powerful"}),
            json!({"containers": env_from}),
            json!({"initContainers": env_from}),
            json!({"ephemeralContainers": env_from}),
            json!({"resourceClaims": [{"name": "c", "resourceClaimName": "c"}]}),
            json!({"nodeName": "n2"}),
            json!({"nodeName": ""}),
        ]
        .into_iter()
        .map(|spec| site.mirror_pod("p", json!({}), spec))
        .collect();
        let owner = |uid: &Value, changes: Value| {
            let mut owner = json!({"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": uid,
                "controller": true});
            owner.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
            owner
        };
        for metadata in [
            json!({"annotations": {}}),
            json!({"annotations": {"kubernetes.io/config.Mirror": "hash"}}),
            json!({"ownerReferences": []}),
            json!({"ownerReferences": [owner(&json!("another"), json!({}))]}),
            json!({"ownerReferences": [owner(&site.node_uid, json!({"name": "n2"}))]}),
            json!({"ownerReferences": [owner(&site.node_uid, json!({"blockOwnerDeletion": true}))]}),
            json!({"ownerReferences": [owner(&site.node_uid, json!({})),
                owner(&site.pod_uids[1], json!({"kind": "Pod", "controller": false}))]}),
        ] {
            attempts.push(site.mirror_pod("p", metadata, json!({})));
        }
        for body in &attempts {
            assert_refused(&body.to_string(), &node.post(PODS, body).await);
            // A PUT that would create the pod is no way around.
            assert_refused(&body.to_string(), &node.put(&format!("{PODS}/p"), body).await);
            let mut nameless = body.clone();
            nameless["metadata"]["name"] = Value::Null;
            nameless["metadata"]["generateName"] = json!("p-");
            assert_refused(&nameless.to_string(), &node.post(PODS, &nameless).await);
        }
        assert_eq!(site.state().await, before, "trusted: {is_trusted}");

        // A mirror pod as kubelets make it is accepted, gets no service account, and stays a mirror pod.
        let made = node.post(PODS, &site.mirror_pod("m", json!({}), json!({}))).await.expect(201);
        assert_eq!(made["spec"].get("serviceAccountName"), None);
        let path = format!("{PODS}/m");
        for (path, part, member, value) in [
            (path.clone(), "metadata", "annotations", json!(null)),
            (path.clone(), "spec", "imagePullSecrets", json!([{"name": "s"}])),
            (path.clone(), "spec", "nodeName", json!("n2")),
            (format!("{path}/status"), "metadata", "annotations", json!({"a": "b"})),
            (format!("{path}/status"), "metadata", "labels", json!({"app": "a"})),
        ] {
            for (way, answer) in
                change_in_every_way(&node, &path, &made, part, member, &value).await
            {
                let stored = site.admin.get(&format!("{PODS}/m")).await.expect(200);
                // A merge patch adds an annotation beside the others, which is harmless.
                let is_added =
                    way.contains("merge") && path.ends_with("status") && member == "annotations";
                assert!(is_added || answer.code != 200, "{way} {path} {value}: {}", answer.text());
                assert_eq!(stored["metadata"]["annotations"][MIRROR], "hash", "{way} {path}");
                assert_eq!(stored["spec"], made["spec"], "{way} {path}");
                assert_eq!(stored["metadata"].get("labels"), None, "{way} {path}");
            }
        }
        node.delete(&path).await.expect(200);
    }
}

/// A23: pods of other nodes are not evicted, deleted, bound, relabelled or reported.
#[tokio::test(flavor = "multi_thread")]
async fn a23_a_node_acts_on_no_pod_of_another_node() {
    for is_trusted in [false, true] {
        let site = Site::start(is_trusted).await;
        let node = site.client("node-token");
        let before = site.state().await;
        let eviction = |name: &str| json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
        let binding = |name: &str| {
            json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                "target": {"kind": "Node", "name": "n1"}})
        };
        for (path, body) in [
            (format!("{PODS}/other/eviction"), eviction("other")),
            // The path counts, whatever the body says.
            (format!("{PODS}/other/eviction"), eviction("mine")),
            (format!("{PODS}/mine/eviction"), eviction("other")),
            (format!("{PODS}/unbound/eviction"), eviction("unbound")),
            (format!("{PODS}/gone/eviction"), eviction("gone")),
            (format!("{PODS}/unbound/binding"), binding("unbound")),
            (format!("{PODS}/other/binding"), binding("other")),
            ("/api/v1/namespaces/t1/bindings".to_owned(), binding("unbound")),
        ] {
            assert_refused(&path, &node.post(&path, &body).await);
            let mut older = body.clone();
            older["apiVersion"] = json!("policy/v1beta1");
            assert_refused(&path, &node.post(&path, &older).await);
        }
        for name in ["other", "unbound"] {
            let path = format!("{PODS}/{name}");
            assert_refused(&path, &node.delete(&path).await);
            let forced = json!({"gracePeriodSeconds": 0}).to_string();
            assert_refused(&path, &node.send(Method::DELETE, &path, &[], forced).await);
            let stored = site.admin.get(&path).await.expect(200);
            for (path, part, member, value) in [
                (path.clone(), "metadata", "labels", json!({"app": "b"})),
                (path.clone(), "spec", "nodeName", json!("n1")),
                (format!("{path}/status"), "status", "phase", json!("Failed")),
                (format!("{path}/status"), "metadata", "labels", json!({"app": "b"})),
                (format!("{path}/status"), "spec", "nodeName", json!("n1")),
            ] {
                for (way, answer) in
                    change_in_every_way(&node, &path, &stored, part, member, &value).await
                {
                    assert_refused(&format!("{way} {path}"), &answer);
                }
            }
        }
        // The node reports the status of its own pod, without relabelling it or naming claims.
        let path = format!("{PODS}/mine/status");
        let stored = site.admin.get(&format!("{PODS}/mine")).await.expect(200);
        let claims = json!([{"name": "c", "resourceClaimName": "c"}]);
        for (part, member, value) in [
            ("metadata", "labels", json!({"app": "b"})),
            ("status", "resourceClaimStatuses", claims),
            ("status", "extendedResourceClaimStatus", json!({"resourceClaimName": "c"})),
        ] {
            for (way, answer) in
                change_in_every_way(&node, &path, &stored, part, member, &value).await
            {
                assert_refused(&format!("{way} {path} {member}"), &answer);
            }
        }
        assert_eq!(site.state().await, before, "trusted: {is_trusted}");
        let running = json!({"status": {"phase": "Running"}});
        node.patch(&path, "strategic-merge-patch", &running).await.expect(200);
        // A collection ends at the first pod that is not its own.
        assert_refused("collection", &node.delete(PODS).await);
        let left = site.admin.get(PODS).await.expect(200);
        let names: Vec<&str> = left["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|own| own["metadata"]["name"].as_str().unwrap())
            .collect();
        assert!(names.contains(&"other") && names.contains(&"unbound"), "{names:?}");
    }
}

/// A23, L13, L14: labels, taints and owner references of nodes, by every verb and every type of patch.
#[tokio::test(flavor = "multi_thread")]
async fn a23_a_node_gives_itself_no_labels_taints_or_owners() {
    for is_trusted in [false, true] {
        let site = Site::start(is_trusted).await;
        let (node, new_node) = (site.client("node-token"), site.client("new-node-token"));
        let before = site.state().await;
        let owner = json!([{"apiVersion": "v1", "kind": "Namespace", "name": "t1", "uid": "gone"}]);
        for name in ["n1", "n2"] {
            let stored = site.admin.get(&format!("{NODES}/{name}")).await.expect(200);
            for path in [format!("{NODES}/{name}"), format!("{NODES}/{name}/status")] {
                for (part, member, value) in [
                    ("metadata", "labels", json!({"node-restriction.kubernetes.io/a": "2"})),
                    ("metadata", "labels", json!({"node-role.kubernetes.io/control-plane": ""})),
                    ("metadata", "ownerReferences", owner.clone()),
                    ("spec", "taints", json!([])),
                    ("spec", "taints", Value::Null),
                    ("spec", "taints", json!([{"key": "other", "effect": "NoSchedule"}])),
                    ("spec", "configSource", json!({"configMap": {"name": "c"}})),
                ] {
                    let sent = change_in_every_way(&node, &path, &stored, part, member, &value);
                    for (way, answer) in sent.await {
                        // A strategic merge patch with an empty list changes nothing.
                        let is_nothing = way == "strategic-merge-patch" && value == json!([]);
                        if !(is_nothing && name == "n1") {
                            assert_refused(&format!("{way} {path} {value}"), &answer);
                        }
                    }
                }
            }
        }
        for metadata in [
            json!({"name": "n3", "labels": {"node-restriction.kubernetes.io/a": "2"}}),
            json!({"name": "n3", "labels": {"kubernetes.io/whatever": "2"}}),
            json!({"name": "n3", "ownerReferences": owner}),
            json!({"name": "n4"}),
            json!({"generateName": "n3"}),
        ] {
            let body = json!({"metadata": metadata});
            assert_refused(&body.to_string(), &new_node.post(NODES, &body).await);
            assert_refused(&body.to_string(), &new_node.put(&format!("{NODES}/n3"), &body).await);
        }
        let sourced = json!({"metadata": {"name": "n3"}, "spec": {"configSource": {}}});
        assert_refused("configSource", &new_node.post(NODES, &sourced).await);
        let nameless = site.client("nameless-token");
        assert_refused("nameless", &nameless.post(NODES, &json!({"metadata": {"name": ""}})).await);
        let label = json!({"metadata": {"labels": {"a": "b"}}});
        let path = format!("{NODES}/n1");
        assert_refused("nameless", &nameless.patch(&path, "merge-patch", &label).await);
        assert_refused("another node", &node.delete(&format!("{NODES}/n2")).await);
        assert_refused(
            "all nodes",
            &node.delete(&format!("{NODES}?fieldSelector=metadata.name%3Dn2")).await,
        );
        assert_eq!(site.state().await, before, "trusted: {is_trusted}");

        // What kubelets do is possible.
        let labels =
            json!({"kubernetes.io/hostname": "n3", "kubelet.kubernetes.io/a": "b", "own": "c"});
        let body = json!({"metadata": {"name": "n3", "labels": labels},
            "spec": {"taints": [{"key": "own", "effect": "NoSchedule"}]}});
        let made = new_node.post(NODES, &body).await.expect(201);
        let taints = made["spec"]["taints"].as_array().unwrap();
        assert_eq!(taints[1]["key"], "node.kubernetes.io/not-ready");
        node.patch(&path, "merge-patch", &label).await.expect(200);
        let status = json!({"status": {"capacity": {"cpu": "4"}}});
        node.patch(&format!("{path}/status"), "merge-patch", &status).await.expect(200);
    }
}

/// A23: tokens of other service accounts, and certificates of other nodes and pods.
#[tokio::test(flavor = "multi_thread")]
async fn a23_a_node_gets_no_credentials_of_others() {
    for is_trusted in [false, true] {
        let site = Site::start(is_trusted).await;
        let node = site.client("node-token");
        let before = site.state().await;
        let [mine, other] = &site.pod_uids;
        let token = |reference: Value, audiences: Value| {
            json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                "spec": {"boundObjectRef": reference, "audiences": audiences}})
        };
        let pod = |name: &str, uid: &Value| json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid});
        let node_ref =
            json!({"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": site.node_uid});
        for (account, body) in [
            ("powerful", token(Value::Null, json!([]))),
            ("powerful", token(pod("other", other), json!([]))),
            ("powerful", token(pod("other", mine), json!([]))),
            ("powerful", token(pod("mine", mine), json!([]))),
            ("powerful", token(node_ref, json!([]))),
            ("default", token(Value::Null, json!([]))),
            ("default", token(pod("mine", &json!("")), json!([]))),
            ("default", token(pod("mine", other), json!([]))),
            ("default", token(pod("mine", mine), json!(["a", "b"]))),
        ] {
            let path = format!("{ACCOUNTS}/{account}/token");
            assert_refused(&body.to_string(), &node.post(&path, &body).await);
        }
        if !is_trusted {
            let body = token(pod("mine", mine), json!(["https://elsewhere.example"]));
            let path = format!("{ACCOUNTS}/default/token");
            let answer = node.post(&path, &body).await.expect(403);
            let message = answer["message"].as_str().unwrap().to_owned();
            assert!(
                message.contains("is not authorized to request tokens for audience"),
                "{message}"
            );
        }
        // `/CN=ann`, which is not the name of the node.
        for signer in
            ["kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet"]
        {
            let request = json!({"metadata": {"name": "r"}, "spec": {"signerName": signer,
                "request": crate::certificate_requests::ANN, "usages": ["client auth"]}});
            let path = format!("{CERTIFICATES}/certificatesigningrequests");
            let answer = node.post(&path, &request).await.expect(403);
            let message = answer["message"].as_str().unwrap();
            let why = "can only create a node CSR with CN=system:node:n1";
            assert!(!is_trusted || message.ends_with(why), "{message}");
        }
        let path = format!("{CERTIFICATES}/namespaces/t1/podcertificaterequests");
        for (node_name, pod_name, uid) in
            [("n2", "other", other), ("n1", "other", other), ("n1", "mine", other)]
        {
            let spec = json!({"nodeName": node_name, "nodeUID": site.node_uid, "podName": pod_name,
                "podUID": uid, "serviceAccountName": "powerful", "signerName": "example.com/s"});
            let answer = node.post(&path, &json!({"metadata": {"name": "r"}, "spec": spec})).await;
            assert!(matches!(answer.code, 403 | 500), "{}", answer.text());
        }
        assert_eq!(site.state().await, before, "trusted: {is_trusted}");
        let request = json!({"metadata": {"name": "r"}, "spec": {
            "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
            "request": CERTIFICATE_OF_N1, "usages": ["client auth"]}});
        let path = format!("{CERTIFICATES}/certificatesigningrequests");
        let code = node.post(&path, &request).await.code;
        assert_eq!(code, if is_trusted { 201 } else { 403 });
    }
}

/// A23: leases, CSINodes, slices and claims of others, by every verb.
#[tokio::test(flavor = "multi_thread")]
async fn a23_a_node_writes_no_objects_of_other_nodes() {
    for is_trusted in [false, true] {
        let site = Site::start(is_trusted).await;
        let node = site.client("node-token");
        let before = site.state().await;
        let elsewhere = "/apis/coordination.k8s.io/v1/namespaces/t1/leases";
        let slice = json!({"driver": "d.example", "nodeName": "n2", "pool": {"name": "p"}});
        for (collection, name, spec) in [
            (LEASES, "n2", json!({"holderIdentity": "n1"})),
            (LEASES, "n9", json!({"holderIdentity": "n1"})),
            (elsewhere, "n1", json!({"holderIdentity": "n1"})),
            (CSI_NODES, "n2", json!({"drivers": []})),
            (SLICES, "of-n2", slice.clone()),
            (SLICES, "new", slice),
            (CLAIMS, "c", json!({"volumeName": "w"})),
        ] {
            let path = format!("{collection}/{name}");
            let body = json!({"metadata": {"name": name}, "spec": spec});
            let patch = json!({"metadata": {"labels": {"a": "b"}}});
            assert_refused(&path, &node.post(collection, &body).await);
            assert_refused(&path, &node.put(&path, &body).await);
            for kind in ["merge-patch", "strategic-merge-patch"] {
                assert_refused(&path, &node.patch(&path, kind, &patch).await);
            }
            let operations =
                json!([{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]);
            assert_refused(&path, &node.patch(&path, "json-patch", &operations).await);
            assert_refused(&path, &node.delete(&path).await);
        }
        let claim = site.admin.get(&format!("{CLAIMS}/c")).await.expect(200);
        let path = format!("{CLAIMS}/c/status");
        for (part, member, value) in [
            ("status", "phase", json!("Lost")),
            ("metadata", "labels", json!({"a": "b"})),
            ("metadata", "finalizers", json!(["a.example/b"])),
            ("spec", "volumeName", json!("w")),
        ] {
            for (way, answer) in
                change_in_every_way(&node, &path, &claim, part, member, &value).await
            {
                assert_refused(&format!("{way} {member}"), &answer);
            }
        }
        assert_eq!(site.state().await, before, "trusted: {is_trusted}");
        // Its own lease is created by a PUT too.
        let lease = json!({"metadata": {"name": "n1"}, "spec": {"holderIdentity": "n1"}});
        node.put(&format!("{LEASES}/n1"), &lease).await.expect(201);
    }
}

/// A23: a mutating hook turns no request of a node into one that it may not make.
#[tokio::test(flavor = "multi_thread")]
async fn a23_hooks_do_not_widen_what_a_node_may_write() {
    let site = Site::start(true).await;
    let node = site.client("node-token");
    let authority = HookAuthority::new();
    let [mine, other] = &site.pod_uids;
    let label = json!([{"op": "add", "path": "/metadata/labels", "value":
        {"node-restriction.kubernetes.io/b": "1"}}]);
    let secret = json!([{"op": "add", "path": "/spec/volumes", "value":
        [{"name": "v", "secret": {"secretName": "s"}}]}]);
    let rebind = json!([
        {"op": "replace", "path": "/spec/boundObjectRef/name", "value": "other"},
        {"op": "replace", "path": "/spec/boundObjectRef/uid", "value": other},
    ]);
    let peers = [
        (authority.hook(patching(&label)), rule(&["*"], "", "nodes")),
        (authority.hook(patching(&secret)), rule(&["CREATE"], "", "pods")),
        (authority.hook(patching(&rebind)), rule(&["CREATE"], "", "serviceaccounts/token")),
    ];
    for (at, (peer, rule)) in peers.iter().enumerate() {
        let name = format!("h{at}.x.y");
        let webhook = authority.webhook(&name, peer, json!({"rules": [rule]}));
        register(&site.cluster, MUTATING, &name, &[webhook]).await;
    }
    let before = site.state().await;
    let harmless = json!({"metadata": {"annotations": {"a": "b"}}});
    let patched = node.patch(&format!("{NODES}/n1"), "merge-patch", &harmless).await;
    let message = patched.expect(403)["message"].as_str().unwrap().to_owned();
    assert!(message.contains("is not allowed to modify labels"), "{message}");
    let new_node = site.client("new-node-token");
    new_node.post(NODES, &json!({"metadata": {"name": "n3"}})).await.expect(403);
    let made = node.post(PODS, &site.mirror_pod("m", json!({}), json!({}))).await;
    let message = made.expect(403)["message"].as_str().unwrap().to_owned();
    assert!(message.contains("cannot create pods that reference secrets"), "{message}");
    let token = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec":
        {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "mine", "uid": mine}}});
    let issued = node.post(&format!("{ACCOUNTS}/default/token"), &token).await;
    let message = issued.expect(403)["message"].as_str().unwrap().to_owned();
    assert!(message.ends_with("bound to a pod scheduled on a different node"), "{message}");
    for (peer, rule) in &peers {
        assert!(!peer.take_requests().is_empty(), "{rule}: no hook was called");
    }
    assert_eq!(site.state().await, before);
}

/// The plugin is what refuses: without it the same request of a trusted node succeeds.
#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_is_disabled_refuses_nothing() {
    for is_enabled in [true, false] {
        let cluster = Cluster::start_by(
            tempfile::tempdir().unwrap(),
            |_, _| {},
            |options| {
                let disabled: &[&str] = match is_enabled {
                    true => &[],
                    false => &["NodeRestriction", "TaintNodesByCondition"],
                };
                let disabled: Vec<String> = disabled.iter().map(|&own| own.to_owned()).collect();
                options.admission_options.admission_plugins =
                    server::AdmissionPlugins::from_plugin_flags(&[], &disabled).unwrap();
            },
        )
        .await;
        let admin = cluster.admin();
        let made = admin.post(NODES, &json!({"metadata": {"name": "n1"}})).await.expect(201);
        assert_eq!(made["spec"]["taints"].is_array(), is_enabled);
        let headers = [
            ("impersonate-user", "system:node:n1"),
            ("impersonate-group", "system:nodes"),
            ("content-type", "application/merge-patch+json"),
        ];
        let label = json!({"metadata": {"labels": {"node-restriction.kubernetes.io/a": "b"}}});
        let path = format!("{NODES}/n1");
        let answer = admin.send(Method::PATCH, &path, &headers, label.to_string()).await;
        assert_eq!(answer.code, if is_enabled { 403 } else { 200 }, "{}", answer.text());
    }
}

/// A23: the answers to an invalid patch, to a failed `test` and to a wrong precondition show parts of the stored object. A
/// node gets them only for objects that it may write.
#[tokio::test(flavor = "multi_thread")]
async fn a23_a_node_learns_nothing_from_a_refused_write() {
    let site = Site::start(true).await;
    let node = site.client("node-token");
    let foreign = [
        (format!("{PODS}/other/status"), format!("{PODS}/other")),
        (format!("{NODES}/n2"), format!("{NODES}/n2")),
        (format!("{NODES}/n2/status"), format!("{NODES}/n2")),
        (format!("{SLICES}/of-n2"), format!("{SLICES}/of-n2")),
        (format!("{CSI_NODES}/n2"), format!("{CSI_NODES}/n2")),
        (format!("{LEASES}/n2"), format!("{LEASES}/n2")),
    ];
    let wrong_type = json!({"metadata": {"labels": {"a": 5}}});
    let test = json!([{"op": "test", "path": "/metadata/uid", "value": "guess"}]);
    let bad_operation = json!([{"op": "add", "path": "/metadata/labels", "value": 5}]);
    for (path, object) in &foreign {
        let stored = site.admin.get(object).await.expect(200);
        let mut guessed = stored.clone();
        guessed["metadata"]["uid"] = json!("guess");
        let precondition = json!({"preconditions": {"uid": "guess"}}).to_string();
        for (what, answer) in [
            ("merge", node.patch(path, "merge-patch", &wrong_type).await),
            ("json", node.patch(path, "json-patch", &bad_operation).await),
            ("test", node.patch(path, "json-patch", &test).await),
            ("put", node.put(path, &guessed).await),
            ("delete", node.send(Method::DELETE, object, &[], precondition).await),
        ] {
            assert_eq!(answer.code, 403, "{what} {path}: {}", answer.text());
            let uid = stored["metadata"]["uid"].as_str().unwrap();
            assert!(!answer.text().contains(uid), "{what} {path}: {}", answer.text());
        }
    }
    // The own object still answers in detail.
    let own = node.patch(&format!("{PODS}/mine/status"), "merge-patch", &wrong_type).await;
    assert_eq!(own.code, 422, "{}", own.text());
}

/// A node that lists the ResourceSlices of its devices needs the field selector that the Node authorizer demands.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_lists_its_own_resource_slices() {
    let site = Site::start(false).await;
    let node = site.client("node-token");
    let slice = json!({"metadata": {"name": "of-n1"}, "spec": {"driver": "d.example",
        "nodeName": "n1", "pool": {"name": "p"}}});
    node.post(SLICES, &slice).await.expect(201);
    let own = node.get(&format!("{SLICES}?fieldSelector=spec.nodeName%3Dn1")).await.expect(200);
    let names: Vec<&Value> =
        own["items"].as_array().unwrap().iter().map(|own| &own["metadata"]["name"]).collect();
    assert_eq!(names, ["of-n1"]);
    for other in ["", "?fieldSelector=spec.nodeName%3Dn2", "?fieldSelector=spec.driver%3Dd.example"]
    {
        assert_eq!(node.get(&format!("{SLICES}{other}")).await.code, 403, "{other}");
    }
}

/// A23: routes and disks follow the addresses and the provider of a Node, so a node cannot move them to itself.
#[tokio::test(flavor = "multi_thread")]
async fn a23_a_node_keeps_its_pod_addresses_and_its_provider() {
    let site = Site::start(false).await;
    let node = site.client("node-token");
    let path = format!("{NODES}/n1");
    let first = json!({"spec": {"podCIDR": "10.0.1.0/24", "podCIDRs": ["10.0.1.0/24"],
        "providerID": "cloud://n1"}});
    site.admin.patch(&path, "merge-patch", &first).await.expect(200);
    for spec in [
        json!({"podCIDR": "10.0.2.0/24", "podCIDRs": ["10.0.2.0/24"]}),
        json!({"podCIDR": null, "podCIDRs": null}),
        json!({"providerID": "cloud://n2"}),
        json!({"providerID": null}),
    ] {
        let patch = json!({"spec": spec});
        let refused = node.patch(&path, "merge-patch", &patch).await;
        assert_eq!(refused.code, 422, "{patch}: {}", refused.text());
    }
}
