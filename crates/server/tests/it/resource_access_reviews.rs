//! ResourceAccessReview: the form of the first proposal as its author posts it, and names as people write them.

use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};

use crate::client::Client;
use crate::cluster::Cluster;

const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CLUSTER_REVIEWS: &str = "/apis/authorization.portcullis.io/v1alpha1/resourceaccessreviews";

async fn cluster_with_viewer() -> Cluster {
    let cluster = Cluster::start().await;
    let binding = json!({
        "metadata": {"name": "viewer"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "clark"}],
    });
    cluster.admin().post(BINDINGS, &binding).await.expect(201);
    cluster
}

fn lists_clark(answer: &Value) -> bool {
    answer["status"]["users"].as_array().expect("a list").contains(&json!("clark"))
}

fn body(spec: &Value) -> String {
    json!({
        "kind": "ResourceAccessReview", "apiVersion": "v1beta3",
        "metadata": {"name": "check", "namespace": "default"}, "spec": spec,
    })
    .to_string()
}

/// `curl -X POST /api/v1beta3/ns/default/resourceAccessReviews -d @file` declares a form.
#[tokio::test(flavor = "multi_thread")]
async fn the_proposals_own_curl_line_is_answered() {
    let cluster = cluster_with_viewer().await;
    let spec = json!({"verb": "list", "resourceKind": "replicationControllers"});
    let form = ("content-type", "application/x-www-form-urlencoded");
    for (path, headers) in [
        ("/api/v1beta3/ns/default/resourceAccessReviews", &[form][..]),
        ("/api/v1beta3/ns/default/resourceAccessReview", &[form]),
        ("/api/v1beta3/namespaces/default/resourceaccessreview", &[form]),
        ("/api/v1beta3/namespaces/default/resourceaccessreviews", &[]),
        ("/api/v1beta3/ns/default/resourceAccessReviews", &[("content-type", "application/json")]),
    ] {
        let answer = cluster.admin().send(Method::POST, path, headers, body(&spec)).await;
        let answer = answer.expect(201);
        assert_eq!((&answer["metadata"]["name"], &answer["spec"]), (&json!("check"), &spec));
        assert!(lists_clark(&answer), "{path}: {answer}");
    }
    // A proxy that matches paths by their beginning would not recognize this one.
    let path = "//api/v1beta3/ns/default/resourceAccessReviews";
    let refused = cluster.admin().send(Method::POST, path, &[form], body(&spec)).await;
    assert_eq!(refused.code, 404);
    // No other resource takes a form.
    let path = "/api/v1/namespaces/default/configmaps";
    cluster.admin().send(Method::POST, path, &[form], "{}".to_owned()).await.expect(415);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_kind_is_resolved_or_an_error() {
    let cluster = cluster_with_viewer().await;
    let path = "/api/v1beta3/ns/default/resourceAccessReviews";
    let ask = async |kind: &str, more: Value| {
        let mut spec = json!({"verb": "list", "resourceKind": kind});
        spec.as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        cluster.admin().send(Method::POST, path, &[], body(&spec)).await
    };
    for kind in ["deployments", "Deployment", "deploy", "deployments.apps", "Deploy.apps", "po/log"]
    {
        let answer = ask(kind, json!({"verb": "get"})).await.expect(201);
        assert!(lists_clark(&answer), "{kind}: {answer}");
    }
    // The role `view` in one namespace grants nothing about resources of the cluster.
    let nodes = ask("nodes", json!({})).await.expect(201);
    assert!(!lists_clark(&nodes), "{nodes}");
    for (kind, more, want) in [
        (
            "deploymnets",
            json!({}),
            "no resource is named `deploymnets`, did you mean `deployments`?",
        ),
        ("pods/logs", json!({}), "pods have no subresource `logs`, did you mean `pods/log`?"),
        ("pods", json!({"content": {"a": 1}}), "spec.content: Forbidden"),
        ("pods", json!({"verb": "create", "resourceName": "x"}), "spec.resourceName: Forbidden"),
    ] {
        let refused = ask(kind, more).await.expect(422);
        let message = refused["message"].as_str().unwrap_or_default();
        assert!(message.contains(want), "{kind}: {message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_of_today_resolves_names_too() {
    let cluster = cluster_with_viewer().await;
    let ask = async |attributes: Value| {
        let review = json!({"spec": {"resourceAttributes": attributes}});
        cluster.admin().post(CLUSTER_REVIEWS, &review).await
    };
    for (group, resource) in [("", "deployments"), ("apps", "deployment"), ("", "deploy")] {
        let attributes =
            json!({"verb": "get", "group": group, "resource": resource, "namespace": "default"});
        let answer = ask(attributes).await.expect(201);
        assert!(lists_clark(&answer), "{group} {resource}: {answer}");
    }
    // Resources that only policies name, wildcards, and those of aggregated servers.
    for (verb, group, resource) in
        [("impersonate", "", "users"), ("get", "*", "*"), ("get", "metrics.k8s.io", "pods")]
    {
        ask(json!({"verb": verb, "group": group, "resource": resource})).await.expect(201);
    }
    let refused = ask(json!({"verb": "get", "resource": "secretz"})).await.expect(422);
    let message = refused["message"].as_str().unwrap_or_default();
    assert!(message.contains("did you mean `secrets`?"), "{message}");
}

/// Everyone who may define a resource chooses its names and its group. Reviews then still answer about the resource that
/// was asked about.
#[tokio::test(flavor = "multi_thread")]
async fn a_custom_resource_takes_no_name_of_kubernetes() {
    const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let asked = [
        ("", "users"),
        ("", "groups"),
        ("authentication.k8s.io", "uids"),
        ("authentication.k8s.io", "userextras"),
        ("certificates.k8s.io", "signers"),
        ("apiregistration.k8s.io", "apiservices"),
        ("custom.metrics.k8s.io", "pods"),
        ("aggregated.example", "widgets"),
    ];
    let rules: Vec<Value> = asked
        .iter()
        .map(|(group, resource)| {
            json!({"verbs": ["impersonate"], "apiGroups": [group], "resources": [resource]})
        })
        .collect();
    let role = json!({"metadata": {"name": "asked"}, "rules": rules});
    admin.post(&format!("{RBAC}/clusterroles"), &role).await.expect(201);
    let binding = json!({
        "metadata": {"name": "asked"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "asked"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "clark"}],
    });
    admin.post(&format!("{RBAC}/clusterrolebindings"), &binding).await.expect(201);

    define(&admin, "tenants", "tenants.example", &["users", "uids", "signers", "apiservices"])
        .await;
    for (group, resource) in asked {
        let prefix = if group.is_empty() { "core" } else { group };
        define(&admin, resource, &format!("{prefix}.evil.example"), &[]).await;
    }
    // The nearest questions, which are about the custom resources.
    let others = [("core.evil.example", "users"), ("", "tenants"), ("tenants.example", "users")];
    let rows = asked.map(|own| (own, true)).into_iter().chain(others.map(|own| (own, false)));
    for ((group, resource), is_listed) in rows {
        let attributes = json!({"verb": "impersonate", "group": group, "resource": resource});
        let review = json!({"spec": {"resourceAttributes": attributes}});
        let answer = admin.post(CLUSTER_REVIEWS, &review).await.expect(201);
        assert_eq!(lists_clark(&answer), is_listed, "{group} {resource}: {answer}");
        // The first proposal has no field for the group, and is posted to a namespace.
        let kind =
            if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
        let path = "/api/v1beta3/ns/default/resourceAccessReviews";
        let spec = json!({"verb": "impersonate", "resourceKind": kind});
        let answer = admin.send(Method::POST, path, &[], body(&spec)).await.expect(201);
        assert_eq!(lists_clark(&answer), is_listed, "{kind}: {answer}");
    }
}

async fn define(admin: &Client, plural: &str, group: &str, short_names: &[&str]) {
    let name = format!("{plural}.{group}");
    let kind = format!("{}{}", plural[..1].to_uppercase(), &plural[1..]);
    let definition = json!({
        "metadata": {"name": name},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, "shortNames": short_names},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    });
    admin.post(DEFINITIONS, &definition).await.expect(201);
    let list = format!("/apis/{group}/v1/{plural}");
    let patience = Instant::now() + Duration::from_secs(20);
    while admin.get(&list).await.code != 200 {
        assert!(Instant::now() < patience, "{name} is not served");
        crate::polling::pause().await;
    }
}
