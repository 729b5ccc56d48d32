//! Objects that Kubernetes enforces and this server only stores: their authors are told, or refused.

use http::Method;
use serde_json::{Value, json};

use crate::admission_hooks::warnings;
use crate::client::{Answer, Client};
use crate::cluster::Cluster;

const PREFIX: &str = "not enforced by this server: ";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1";
const CORE: &str = "/api/v1/namespaces/default";

/// The path of a collection, an object in it, and a change of its unenforced field.
fn samples() -> Vec<(String, Value, Value)> {
    let policy = json!({"validations": [{"expression": "false"}]});
    let binding = json!({"policyName": "p", "validationActions": ["Deny"]});
    let of_policies = [
        ("validatingadmissionpolicies", policy.clone()),
        ("validatingadmissionpolicybindings", binding.clone()),
        ("mutatingadmissionpolicies", policy),
        ("mutatingadmissionpolicybindings", binding),
    ];
    let mut samples: Vec<(String, Value, Value)> = Vec::new();
    for (plural, spec) in of_policies {
        let change = json!({"spec": {"policyName": "q", "failurePolicy": "Ignore"}});
        let own = json!({"metadata": {"name": "own"}, "spec": spec});
        samples.push((format!("{POLICIES}/{plural}"), own, change));
    }
    let own = json!({"metadata": {"name": "own"}, "spec": {"hard": {"pods": "1"}}});
    let change = json!({"spec": {"hard": {"pods": "2"}}});
    samples.push((format!("{CORE}/resourcequotas"), own, change));
    let limit = |max: &str| json!({"limits": [{"type": "Pod", "max": {"cpu": max}}]});
    let own = json!({"metadata": {"name": "own"}, "spec": limit("1")});
    samples.push((format!("{CORE}/limitranges"), own, json!({"spec": limit("2")})));
    let labels = |level: &str| json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}});
    let mut own = labels("restricted");
    own["metadata"]["name"] = "own".into();
    samples.push(("/api/v1/namespaces".to_owned(), own, labels("baseline")));
    samples
}

#[track_caller]
fn expect_warning(answer: &Answer, what: &str) {
    let told = warnings(answer);
    assert!(told.iter().any(|own| own.starts_with(PREFIX)), "{what}: {told:?}");
    assert!(matches!(answer.code, 200 | 201), "{what}: {}", answer.text());
}

async fn merge(client: &Client, path: &str, patch: &Value) -> Answer {
    client.patch(path, "merge-patch", patch).await
}

#[tokio::test(flavor = "multi_thread")]
async fn authors_are_warned() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    for (path, own, change) in samples() {
        let object = format!("{path}/own");
        expect_warning(&admin.post(&format!("{path}?dryRun=All"), &own).await, &path);
        expect_warning(&admin.post(&path, &own).await, &path);
        expect_warning(&merge(&admin, &object, &change).await, &path);
        let next = admin.get(&object).await.expect(200);
        expect_warning(&admin.put(&object, &next).await, &path);
        for read in [&path, &object] {
            assert_eq!(warnings(&admin.get(read).await), Vec::<String>::new(), "{path}");
        }
        assert_eq!(warnings(&admin.delete(&object).await), Vec::<String>::new(), "{path}");
    }
    // There is no warning for features that other components enforce, nor for a namespace without labels.
    for (path, own) in [
        (
            "/api/v1/namespaces".to_owned(),
            json!({"metadata": {"name": "plain", "labels": {"a": "b"}}}),
        ),
        (format!("{CORE}/configmaps"), json!({"metadata": {"name": "plain"}})),
        (
            "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies".to_owned(),
            json!({"metadata": {"name": "plain"}, "spec": {"podSelector": {}}}),
        ),
    ] {
        let answer = admin.post(&path, &own).await;
        assert_eq!(warnings(&answer), Vec::<String>::new(), "{path}");
        answer.expect(201);
    }
}

/// A custom resource of the same kind in another group has a controller of its own.
#[tokio::test(flavor = "multi_thread")]
async fn custom_resources_are_not_warned_about() {
    let cluster =
        Cluster::start_with(|options, _| options.api_settings.refuses_unenforced_features = true)
            .await;
    let admin = cluster.admin();
    let definition = json!({
        "metadata": {"name": "resourcequotas.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "resourcequotas", "kind": "ResourceQuota"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema":
                {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    admin.post(definitions, &definition).await.expect(201);
    let path = "/apis/example.com/v1/namespaces/default/resourcequotas";
    while admin.get(path).await.code != 200 {
        tokio::task::yield_now().await;
    }
    let own = json!({"apiVersion": "example.com/v1", "kind": "ResourceQuota",
        "metadata": {"name": "own"}, "spec": {"hard": {"pods": "1"}}});
    let answer = admin.post(path, &own).await;
    assert_eq!(warnings(&answer), Vec::<String>::new());
    answer.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn authors_are_refused_if_the_operator_wants_that() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    for (path, own, _) in samples() {
        assert_eq!(admin.post(&path, &own).await.code, 201, "{path}");
    }
    let folder = cluster.stop(std::time::Duration::ZERO).await;
    // The default objects of the server are there nevertheless.
    let change: crate::cluster::Change =
        |options, _| options.api_settings.refuses_unenforced_features = true;
    let cluster = Cluster::start_in(folder, change).await;
    let admin = cluster.admin();
    for (path, mut own, change) in samples() {
        let object = format!("{path}/own");
        own["metadata"]["name"] = "other".into();
        for path in [format!("{path}?dryRun=All"), path.clone()] {
            let status = admin.post(&path, &own).await.expect(422);
            let message = status["message"].as_str().unwrap();
            assert!(message.contains(PREFIX), "{path}: {message}");
            assert_eq!(status["details"]["causes"][0]["reason"], "FieldValueForbidden", "{path}");
        }
        let refused = merge(&admin, &object, &change).await;
        assert_eq!(refused.code, 422, "{path}: {}", refused.text());
        // Existing objects can be labelled and deleted.
        let label = json!({"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}});
        expect_warning(&merge(&admin, &object, &label).await, &path);
        assert_eq!(admin.delete(&object).await.code, 200, "{path}");
    }
    let plain = json!({"metadata": {"name": "plain"}});
    admin.post("/api/v1/namespaces", &plain).await.expect(201);
    let label = json!({"metadata": {"labels": {"pod-security.kubernetes.io/warn": "baseline"}}});
    let status = merge(&admin, "/api/v1/namespaces/plain", &label).await.expect(422);
    let want = "metadata.labels[pod-security.kubernetes.io/warn]";
    assert_eq!(status["details"]["causes"][0]["field"], want);
    let headers = [("content-type", "application/json-patch+json")];
    let add =
        r#"[{"op":"add","path":"/metadata/labels/pod-security.kubernetes.io~1audit","value":"x"}]"#;
    let refused = admin.send(Method::PATCH, "/api/v1/namespaces/plain", &headers, add).await;
    refused.expect(422);
}

/// Labels of a namespace can be written by way of its status, too.
#[tokio::test(flavor = "multi_thread")]
async fn the_status_of_a_namespace_is_no_way_around() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    admin.post("/api/v1/namespaces", &json!({"metadata": {"name": "own"}})).await.expect(201);
    let labels =
        json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}});
    let answer = merge(&admin, "/api/v1/namespaces/own/status", &labels).await;
    expect_warning(&answer, "status");
}
