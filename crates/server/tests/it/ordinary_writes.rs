//! Writes that every controller and `kubectl` make.

use http::Method;
use serde_json::{Value, json};

use crate::client::Answer;
use crate::cluster::Cluster;
use crate::undecodable::wait_gone;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const NODES: &str = "/api/v1/nodes";

fn warnings(answer: &Answer) -> Vec<String> {
    let values = answer.headers.get_all("warning").iter();
    values.map(|value| value.to_str().unwrap().to_owned()).collect()
}

/// The prefix of a generated name ends with a dash, which no name does.
#[tokio::test]
async fn objects_with_a_generated_name_are_updated_and_patched() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    for (path, body) in [
        (MAPS, json!({"metadata": {"generateName": "g-"}, "data": {"k": "1"}})),
        (
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
            json!({"metadata": {"generateName": "hooks-"}, "webhooks": []}),
        ),
    ] {
        let mut object = admin.post(path, &body).await.expect(201);
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let own_path = format!("{path}/{name}");
        object["metadata"]["labels"] = json!({"put": "yes"});
        let object = admin.put(&own_path, &object).await.expect(200);
        assert_eq!(object["metadata"]["generateName"], body["metadata"]["generateName"]);
        let patch = json!({"metadata": {"labels": {"patch": "yes"}}});
        let patched = admin.patch(&own_path, "merge-patch", &patch).await.expect(200);
        assert_eq!(patched["metadata"]["labels"], json!({"put": "yes", "patch": "yes"}));
    }
}

/// Jobs and ReplicationControllers keep their pods, unless the options of the delete say otherwise.
#[tokio::test]
async fn deletes_of_jobs_and_replication_controllers_orphan_pods_by_default() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let controllers = "/api/v1/namespaces/default/replicationcontrollers";
    let template = json!({"spec": {"containers": [{"name": "a", "image": "b"}]}});
    for (path, name, query, is_orphaned, n_warnings) in [
        (jobs, "j1", "", true, 1),
        (jobs, "j2", "?propagationPolicy=Orphan", true, 0),
        (jobs, "j3", "?propagationPolicy=Background", false, 0),
        (controllers, "r1", "", true, 0),
        (controllers, "r2", "?propagationPolicy=Background", false, 0),
        (MAPS, "m1", "", false, 0),
    ] {
        let owner = json!({"metadata": {"name": name}, "spec": {"template": template}});
        let owner = admin.post(path, &owner).await.expect(201);
        let reference = json!({
            "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": name,
            "uid": owner["metadata"]["uid"],
        });
        let pod = json!({
            "metadata": {"name": format!("pod-{name}"), "ownerReferences": [reference]},
            "spec": template["spec"],
        });
        admin.post(PODS, &pod).await.expect(201);
        let answer = admin.delete(&format!("{path}/{name}{query}")).await;
        let warnings = warnings(&answer);
        assert_eq!(warnings.len(), n_warnings, "{name} {warnings:?}");
        assert!(warnings.iter().all(|text| text.contains("child pods are preserved by default")));
        answer.expect(200);
        wait_gone(&admin, &format!("{path}/{name}")).await;
        let pod_path = format!("{PODS}/pod-{name}");
        match is_orphaned {
            true => {
                let pod = admin.get(&pod_path).await.expect(200);
                assert_eq!(pod["metadata"].get("ownerReferences"), None, "{name}");
            }
            false => wait_gone(&admin, &pod_path).await,
        }
    }
}

/// A kubelet registers its node with addresses and capacity.
#[tokio::test]
async fn a_node_keeps_the_status_it_is_created_with() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let status =
        json!({"capacity": {"cpu": "4"}, "addresses": [{"type": "Hostname", "address": "a"}]});
    let node = json!({"metadata": {"name": "n1"}, "status": status});
    let created = admin.post(NODES, &node).await.expect(201);
    assert_eq!(created["status"], status);
    let changed = json!({"metadata": {"name": "n1"}, "status": {"capacity": {"cpu": "8"}}});
    let updated = admin.put(&format!("{NODES}/n1"), &changed).await.expect(200);
    assert_eq!(updated["status"], status, "an update of the main path keeps the status");
    let pod = json!({
        "metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "b"}]},
        "status": {"phase": "Running"},
    });
    let pod = admin.post(PODS, &pod).await.expect(201);
    assert_ne!(pod["status"]["phase"], "Running", "other kinds drop the status");
}

/// An HTTP/2 peer resets a stream whose response to a HEAD has a body.
#[tokio::test]
async fn head_is_answered_without_a_body_over_both_protocols() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    for (path, code) in [("/healthz", 200), ("/apis", 200), ("/version", 405), (NODES, 405)] {
        let over_http1 = admin.send(Method::HEAD, path, &[], "").await;
        let over_http2 = admin.send_http2(Method::HEAD, path, &[], "").await;
        for answer in [&over_http1, &over_http2] {
            assert_eq!((answer.code, answer.bytes.len()), (code, 0), "{path}");
        }
        let header = |answer: &Answer, name: &str| answer.headers.get(name).cloned();
        for name in ["content-type", "content-length"] {
            assert_eq!(header(&over_http1, name), header(&over_http2, name), "{path} {name}");
        }
        assert!(header(&over_http2, "content-length").is_some_and(|own| own != "0"), "{path}");
    }
    // The connection serves further requests.
    admin.send_http2(Method::GET, "/version", &[], "").await.expect(200);
}

/// A field of bytes, whose length is less than 128.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat()
}

/// The body of an object, as clients send it.
fn envelope(api_version: &str, kind: &str, object: &[u8]) -> Vec<u8> {
    let type_meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &type_meta), field(2, object)].concat()
}

/// `kubectl create deployment` and clients of controller-runtime send protobuf, and take JSON.
#[tokio::test]
async fn objects_of_built_in_kinds_are_read_from_protobuf() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let accept = "application/vnd.kubernetes.protobuf,application/json";
    let headers = [("content-type", PROTOBUF), ("accept", accept)];
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let metadata = field(1, &field(1, b"web"));
    let labels = [field(1, b"app"), field(2, b"web")].concat();
    let container = [field(1, b"c"), field(2, b"nginx")].concat();
    let template = [field(1, &field(11, &labels)), field(2, &field(2, &container))].concat();
    let spec = [vec![0x08, 0x02], field(2, &field(1, &labels)), field(3, &template)].concat();
    let object = [metadata, field(2, &spec), field(3, &[])].concat();
    let body = envelope("apps/v1", "Deployment", &object);
    let created = admin.send(Method::POST, deployments, &headers, body.clone()).await;
    assert_eq!(created.headers["content-type"], "application/json");
    let created = created.expect(201);
    assert_eq!(created["spec"]["replicas"], 2);
    assert_eq!(created["spec"]["template"]["spec"]["containers"][0]["image"], "nginx");
    let path = format!("{deployments}/web");
    admin.send(Method::PUT, &path, &headers, body.clone()).await.expect(200);

    let options = envelope("apps/v1", "DeleteOptions", &field(4, b"Foreground"));
    let deleted = admin.send(Method::DELETE, &path, &headers, options).await.expect(200);
    assert_eq!(deleted["metadata"]["finalizers"], json!(["foregroundDeletion"]));

    // A subresource has a kind of its own.
    let token = "/api/v1/namespaces/default/serviceaccounts/robot/token";
    let robot = json!({"metadata": {"name": "robot"}});
    admin.post("/api/v1/namespaces/default/serviceaccounts", &robot).await.expect(201);
    let spec = [0x20, 0x90, 0x1c];
    let request = envelope("authentication.k8s.io/v1", "TokenRequest", &field(2, &spec));
    let answer = admin.send(Method::POST, token, &headers, request).await.expect(201);
    assert_eq!(answer["spec"]["expirationSeconds"], 3600);

    // Bodies that are not what the path or the header says.
    let message = |answer: &Value| answer["message"].as_str().unwrap().to_owned();
    let wrong_kind = admin.send(Method::POST, MAPS, &headers, body).await.expect(400);
    let start = "Deployment in version \"v1\" cannot be handled as a ConfigMap";
    assert!(message(&wrong_kind).starts_with(start), "{wrong_kind}");
    for (body, why) in [
        (&b""[..], "empty data"),
        (b"{}", "provided data does not appear to be a protobuf message, expected prefix"),
        (b"k8s\0", "empty body"),
        (b"k8s\0\x12\x02\x0a", "unexpected EOF"),
    ] {
        let answer = admin.send(Method::POST, MAPS, &headers, body.to_vec()).await.expect(400);
        assert!(message(&answer).contains(why), "{answer}");
    }
}

/// Protobuf has numbers in place of names, and a custom resource has no numbers.
#[tokio::test]
async fn custom_resources_are_not_read_from_protobuf() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let schema = json!({"openAPIV3Schema": {
        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
    }});
    let definition = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    admin.post(definitions, &definition).await.expect(201);
    let path = "/apis/example.com/v1/widgets";
    for _ in 0..1_000 {
        if admin.get(path).await.code == 200 {
            break;
        }
        crate::polling::pause().await;
    }
    let body = envelope("example.com/v1", "Widget", &field(1, &field(1, b"a")));
    let headers = [("content-type", PROTOBUF)];
    let answer = admin.send(Method::POST, path, &headers, body).await.expect(415);
    assert_eq!(
        answer["message"],
        "the body of the request was in an unknown format - accepted media types include: \
         application/json, application/yaml"
    );
}
