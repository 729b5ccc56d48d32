//! The permissions of a node follow from the current objects, not from earlier versions.

use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};
use store::{At, ExpectedKeyState, Key, Put, Store};

use crate::client::{Answer, Client};
use crate::cluster::Cluster;

const PODS: &str = "/api/v1/namespaces/t1/pods";
const SECRET: &str = "/api/v1/namespaces/t1/secrets/s";
const TOKEN: &str = "/api/v1/namespaces/t1/serviceaccounts/default/token";

/// A user who may do anything in their namespace with pods and other objects that refer to nodes.
async fn cluster() -> Cluster {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    admin.post("/api/v1/namespaces", &json!({"metadata": {"name": "t1"}})).await.expect(201);
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"k": "v"}});
    admin.post("/api/v1/namespaces/t1/secrets", &secret).await.expect(201);
    let accounts = "/api/v1/namespaces/t1/serviceaccounts";
    let account = json!({"metadata": {"name": "default"}});
    let made = admin.post(accounts, &account).await.code;
    assert!(matches!(made, 201 | 409), "{made}");
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({"metadata": {"name": "bound-to-nodes"}, "rules": [
        {"apiGroups": ["", "resource.k8s.io", "certificates.k8s.io", "storage.k8s.io"],
         "resources": ["pods", "pods/status", "resourceslices", "podcertificaterequests",
                       "volumeattachments"],
         "verbs": ["*"]}]});
    admin.post(&format!("{rbac}/clusterroles"), &role).await.expect(201);
    let driver = json!({"metadata": {"name": "d"}, "spec": {}});
    admin.post("/apis/storage.k8s.io/v1/csidrivers", &driver).await.expect(201);
    // NodeRestriction asks for this permission, because no volume of the pods is for the audience.
    let audience = json!({"metadata": {"name": "audience"}, "rules": [
        {"apiGroups": [""], "resources": ["a"],
         "verbs": ["request-serviceaccounts-token-audience"]}]});
    admin.post(&format!("{rbac}/clusterroles"), &audience).await.expect(201);
    let binding = json!({"metadata": {"name": "audience"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                    "name": "audience"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group",
                      "name": "system:nodes"}]});
    admin.post(&format!("{rbac}/clusterrolebindings"), &binding).await.expect(201);
    let binding = json!({"metadata": {"name": "alice"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                    "name": "bound-to-nodes"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]});
    admin.post(&format!("{rbac}/clusterrolebindings"), &binding).await.expect(201);
    cluster
}

fn pod(spec: Value) -> Value {
    let mut pod = json!({"metadata": {"name": "p"},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i:1"}]}});
    for (key, value) in spec.as_object().expect("members") {
        pod["spec"][key] = value.clone();
    }
    pod
}

/// The ways in which a pod can name a secret.
fn references() -> Vec<Value> {
    let container = |from: Value| {
        let mut container = json!({"name": "c", "image": "i:1"});
        container
            .as_object_mut()
            .expect("members")
            .extend(from.as_object().expect("members").clone());
        json!([container])
    };
    let whole = json!({"envFrom": [{"secretRef": {"name": "s"}}]});
    let single = json!({"env": [{"name": "A",
        "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]});
    let volume = |source: Value| {
        let mut volume = json!({"name": "v"});
        volume
            .as_object_mut()
            .expect("members")
            .extend(source.as_object().expect("members").clone());
        json!({"volumes": [volume]})
    };
    let mut init_containers = container(whole.clone());
    init_containers[0]["name"] = json!("i");
    vec![
        volume(json!({"secret": {"secretName": "s"}})),
        volume(json!({"projected": {"sources": [{"secret": {"name": "s"}}]}})),
        volume(json!({"csi": {"driver": "d", "nodePublishSecretRef": {"name": "s"}}})),
        json!({"imagePullSecrets": [{"name": "s"}]}),
        json!({"containers": container(whole)}),
        json!({"containers": container(single)}),
        // No request adds ephemeral containers.
        json!({"initContainers": init_containers}),
    ]
}

async fn as_node(admin: &Client, method: Method, path: &str, body: &Value) -> Answer {
    let headers = [("impersonate-user", "system:node:n1"), ("impersonate-group", "system:nodes")];
    admin.send(method, path, &headers, body.to_string()).await
}

async fn node_reads(admin: &Client) -> u16 {
    as_node(admin, Method::GET, SECRET, &Value::Null).await.code
}

async fn node_gets_a_token(admin: &Client) -> u16 {
    let uid = admin.get(&format!("{PODS}/p")).await.json()["metadata"]["uid"].clone();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid});
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"audiences": ["a"], "boundObjectRef": pod}});
    as_node(admin, Method::POST, TOKEN, &review).await.code
}

#[track_caller]
fn refused(answer: Answer, why: &str) {
    let status = answer.expect(422);
    let message = status["message"].as_str().expect("a message");
    assert!(message.contains(why), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_can_not_drop_what_its_node_may_read() {
    let cluster = cluster().await;
    let (admin, alice) = (cluster.admin(), cluster.alice());
    let path = format!("{PODS}/p");
    for spec in references() {
        alice.post(PODS, &pod(spec.clone())).await.expect(201);
        assert_eq!(node_reads(&admin).await, 200, "{spec}");
        assert_eq!(node_gets_a_token(&admin).await, 201, "{spec}");
        let fixed = "pod updates may not ";
        for (key, value) in spec.as_object().expect("members") {
            let emptied = match key.as_str() {
                "containers" => json!([{"name": "c", "image": "i:1"}]),
                _ => json!([]),
            };
            assert_ne!(&emptied, value);
            refused(alice.put(&path, &pod(json!({key: emptied}))).await, fixed);
            let patch = json!({"spec": {key: emptied}});
            refused(alice.patch(&path, "merge-patch", &patch).await, fixed);
        }
        for node in [json!(""), Value::Null, json!("n2")] {
            let mut unbound = spec.clone();
            unbound["nodeName"] = node;
            refused(alice.put(&path, &pod(unbound)).await, fixed);
        }
        // Another image is fine, and the status leaves the spec alone.
        let mut stored = alice.get(&path).await.expect(200);
        stored["spec"]["containers"][0]["image"] = json!("i:2");
        alice.put(&path, &stored).await.expect(200);
        let status = pod(json!({"nodeName": ""}));
        alice.put(&format!("{path}/status"), &status).await.expect(200);
        assert_eq!(node_reads(&admin).await, 200, "{spec}");
        alice.delete(&path).await.expect(200);
        assert_eq!(node_reads(&admin).await, 403, "{spec}");
        assert_eq!(node_gets_a_token(&admin).await, 403, "{spec}");
    }
}

/// The references of an earlier version of an object do not stay in the graph.
#[tokio::test(flavor = "multi_thread")]
async fn the_graph_follows_whatever_is_stored() {
    let cluster = cluster().await;
    let admin = cluster.admin();
    let key = Key::new("/registry/pods/t1/p").unwrap();
    for change in [
        (|pod: &mut Value| pod["spec"]["volumes"] = json!([])) as fn(&mut Value),
        |pod| pod["spec"]["nodeName"] = json!(""),
        |pod| pod["spec"]["nodeName"] = json!("n2"),
        |pod| pod["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": ""}),
        |pod| *pod = json!("no object"),
    ] {
        let volumes = json!({"volumes": [{"name": "v", "secret": {"secretName": "s"}}]});
        admin.post(PODS, &pod(volumes)).await.expect(201);
        assert_eq!(node_reads(&admin).await, 200);
        let entry = cluster.store.get(&key, At::Newest).await.unwrap().entry.unwrap();
        let mut stored: Value = serde_json::from_slice(&entry.value).unwrap();
        change(&mut stored);
        let value = stored.to_string().into();
        let expected_state = ExpectedKeyState::At(entry.mod_rev);
        let put = Put {
            key: key.clone(),
            value,
            expected_state,
            ttl: None,
            key_group_revision_action: None,
        };
        let written = cluster.store.put(put).await.unwrap();
        let patience = Instant::now() + Duration::from_secs(10);
        while node_reads(&admin).await != 403 {
            assert!(Instant::now() < patience, "the node still reads the secret: {stored}");
            tokio::task::yield_now().await;
        }
        let expected_state = ExpectedKeyState::At(written);
        cluster
            .store
            .delete(store::Delete {
                key: key.clone(),
                expected_state,
                key_group_revision_action: None,
            })
            .await
            .unwrap();
        while admin.get(&format!("{PODS}/p")).await.code != 404 {}
        assert_eq!(node_reads(&admin).await, 403, "{stored}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_names_its_node_keeps_it() {
    let cluster = cluster().await;
    let alice = cluster.alice();
    for (path, spec) in [
        (
            "/apis/resource.k8s.io/v1/resourceslices",
            json!({"driver": "d.example", "pool": {"name": "p"}, "nodeName": "n1"}),
        ),
        (
            "/apis/certificates.k8s.io/v1/namespaces/t1/podcertificaterequests",
            json!({"podName": "p", "nodeName": "n1"}),
        ),
        (
            "/apis/storage.k8s.io/v1/volumeattachments",
            json!({"attacher": "a.example", "nodeName": "n1", "source": {}}),
        ),
    ] {
        let object = json!({"metadata": {"name": "x"}, "spec": spec});
        let made = alice.post(path, &object).await.expect(201);
        let path = format!("{path}/x");
        for node in ["n2", ""] {
            let mut moved = made.clone();
            moved["spec"]["nodeName"] = json!(node);
            refused(alice.put(&path, &moved).await, "field is immutable");
            let patch = json!({"spec": {"nodeName": node}});
            refused(alice.patch(&path, "merge-patch", &patch).await, "field is immutable");
        }
        alice.delete(&path).await.expect(200);
    }
}
