//! Custom objects belong to one definition, and are deleted with it.

use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};
use store::{ExpectedKeyState, Key, Put, Store};

use crate::client::Client;
use crate::cluster::Cluster;
use crate::three_servers::Station;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
const HOOKS: &str =
    "/apis/admissionregistration.k8s.io/v1alpha1/externaladmissionhookconfigurations";

fn definition(group: &str, plural: &str, version: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{group}"),
            "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": "Widget"},
            "versions": [{
                "name": version, "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    })
}

/// Repeats a request until the response matches.
async fn until(client: &Client, path: &str, is_wanted: impl Fn(u16, &Value) -> bool) -> Value {
    let patience = Instant::now() + Duration::from_secs(20);
    loop {
        let answer = client.get(path).await;
        let value = serde_json::from_slice(&answer.bytes).unwrap_or_default();
        if is_wanted(answer.code, &value) {
            return value;
        }
        assert!(Instant::now() < patience, "{path}: {value}");
        crate::polling::pause().await;
    }
}

fn has_condition(definition: &Value, r#type: &str, status: &str) -> bool {
    let conditions = definition["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().any(|own| own["type"] == r#type && own["status"] == status)
}

async fn define(client: &Client, definition: &Value) {
    client.post(DEFINITIONS, definition).await.expect(201);
    let name = definition["metadata"]["name"].as_str().expect("a name");
    let path = format!("{DEFINITIONS}/{name}");
    until(client, &path, |_, own| has_condition(own, "Established", "True")).await;
}

async fn undefine(client: &Client, name: &str) {
    let path = format!("{DEFINITIONS}/{name}");
    client.delete(&path).await.expect(200);
    until(client, &path, |code, _| code == 404).await;
}

fn widget(name: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}})
}

/// A user who may write definitions and their status, and objects of the resource `innocents`.
async fn author(cluster: &Cluster) -> Client {
    let admin = cluster.admin();
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({"metadata": {"name": "author"}, "rules": [
        {"apiGroups": ["apiextensions.k8s.io"], "verbs": ["*"],
         "resources": ["customresourcedefinitions", "customresourcedefinitions/status",
                       "customresourcedefinitionsx"]},
        {"apiGroups": ["admissionregistration.k8s.io"], "verbs": ["*"], "resources": ["innocents"]},
    ]});
    admin.post(&format!("{rbac}/clusterroles"), &role).await.expect(201);
    let binding = json!({"metadata": {"name": "author"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "author"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]});
    admin.post(&format!("{rbac}/clusterrolebindings"), &binding).await.expect(201);
    cluster.alice()
}

/// A definition at the place of a built-in resource neither writes there nor, when it goes, empties it.
#[tokio::test(flavor = "multi_thread")]
async fn a_definition_has_no_hold_of_built_in_objects() {
    let cluster = Cluster::start().await;
    let (admin, alice) = (cluster.admin(), author(&cluster).await);
    define(&admin, &definition("example.com", "widgets", "v1")).await;
    let hooks = admin.get(HOOKS).await.expect(200);
    assert_eq!(hooks["items"], json!([]));
    for (group, plural) in [
        ("admissionregistration.k8s.io", "externaladmissionhookconfigurations"),
        ("apiextensions.k8s.io", "customresourcedefinitions"),
        ("rbac.authorization.k8s.io", "clusterroles"),
    ] {
        let mut evil = definition(group, plural, "v9");
        evil["spec"]["scope"] = json!("Cluster");
        alice.post(DEFINITIONS, &evil).await.expect(201);
        let path = format!("{DEFINITIONS}/{plural}.{group}");
        // The author writes a status with accepted names.
        loop {
            let mut own = alice.get(&path).await.expect(200);
            own["status"] = json!({
                "acceptedNames": {"plural": "innocents", "kind": "Widget", "listKind": "WidgetList"},
                "conditions": [
                    {"type": "NamesAccepted", "status": "True"},
                    {"type": "Established", "status": "True"},
                ],
                "storedVersions": ["v9"],
            });
            match alice.put(&format!("{path}/status"), &own).await.code {
                200 => break,
                code => assert_eq!(code, 409),
            }
        }
        let innocents = format!("/apis/{group}/v9/innocents");
        let object = json!({"apiVersion": format!("{group}/v9"), "kind": "Widget",
            "metadata": {"name": "w"}, "externalAdmissionHooks": []});
        let made = admin.post(&innocents, &object).await;
        assert_eq!(made.code, 404, "{}", made.text());
        let made = alice.post(&innocents, &object).await;
        assert!(matches!(made.code, 403 | 404), "{}", made.text());
        assert_eq!(admin.get(&format!("/apis/{group}/v9/{plural}")).await.code, 404);
        until(&alice, &path, |_, own| has_condition(own, "NamesAccepted", "False")).await;
        undefine(&alice, &format!("{plural}.{group}")).await;
    }
    assert_eq!(admin.get(HOOKS).await.expect(200)["items"], json!([]));
    admin.get(&format!("{DEFINITIONS}/widgets.example.com")).await.expect(200);
    admin.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/author").await.expect(200);
    admin.post(WIDGETS, &widget("w")).await.expect(201);
}

/// Objects of a resource whose name only begins like that of definitions are none.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_begins_like_another_is_another() {
    let cluster = Cluster::start().await;
    let (admin, alice) = (cluster.admin(), author(&cluster).await);
    let mut alike = definition("apiextensions.k8s.io", "customresourcedefinitionsx", "v9");
    alike["spec"]["scope"] = json!("Cluster");
    define(&alice, &alike).await;
    let mut smuggled = definition("example.com", "widgets", "v1");
    smuggled["apiVersion"] = json!("apiextensions.k8s.io/v9");
    smuggled["kind"] = json!("Widget");
    smuggled["status"] = json!({
        "acceptedNames": {"plural": "widgets", "kind": "Widget", "listKind": "WidgetList"},
        "conditions": [{"type": "Established", "status": "True"}],
    });
    let path = "/apis/apiextensions.k8s.io/v9/customresourcedefinitionsx";
    alice.post(path, &smuggled).await.expect(201);
    assert_eq!(admin.get(WIDGETS).await.code, 404);
    assert_eq!(admin.get(&format!("{DEFINITIONS}/widgets.example.com")).await.code, 404);
    alice.delete(&format!("{path}/widgets.example.com")).await.expect(200);
    undefine(&alice, "customresourcedefinitionsx.apiextensions.k8s.io").await;
}

/// A later definition of the same name may belong to another user.
#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_serves_nothing_takes_its_objects_with_it() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let widgets = definition("example.com", "widgets", "v1");
    let name = "widgets.example.com";
    define(&admin, &widgets).await;
    admin.post(WIDGETS, &widget("plain")).await.expect(201);
    let mut held = widget("held");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    admin.post(WIDGETS, &held).await.expect(201);
    let served = |is_served: bool| json!([{"op": "replace", "path": "/spec/versions/0/served", "value": is_served}]);
    let path = format!("{DEFINITIONS}/{name}");
    admin.patch(&path, "json-patch", &served(false)).await.expect(200);
    assert_eq!(admin.get(WIDGETS).await.code, 404);
    admin.delete(&path).await.expect(200);
    // An object that somebody wants to finalize keeps the definition until it is served again.
    let held = "/registry/example.com/widgets/default/held";
    let plain = "/registry/example.com/widgets/default/plain";
    let stored = async |key: &str| {
        let got = cluster.store.get(&Key::new(key).unwrap(), store::At::Newest).await.unwrap();
        got.entry.map(|entry| serde_json::from_slice::<Value>(&entry.value).unwrap())
    };
    let patience = Instant::now() + Duration::from_secs(20);
    while stored(plain).await.is_some()
        || stored(held).await.is_some_and(|own| own["metadata"]["deletionTimestamp"].is_null())
    {
        assert!(Instant::now() < patience, "the objects stay");
        crate::polling::pause().await;
    }
    admin.get(&path).await.expect(200);
    admin.patch(&path, "json-patch", &served(true)).await.expect(200);
    let unheld = json!({"metadata": {"finalizers": null}});
    admin.patch(&format!("{WIDGETS}/held"), "merge-patch", &unheld).await.expect(200);
    until(&admin, &path, |code, _| code == 404).await;
    assert_eq!(stored(held).await, None);
    define(&admin, &widgets).await;
    assert_eq!(admin.get(WIDGETS).await.expect(200)["items"], json!([]));
}

/// An object of a server that did not know of the deletion and stopped before it could delete the object.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_definition_begins_without_objects() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let widgets = definition("example.com", "widgets", "v1");
    define(&admin, &widgets).await;
    undefine(&admin, "widgets.example.com").await;
    for key in ["default/ghost", "ghost-of-a-cluster-scope"] {
        let key = Key::new(&format!("/registry/example.com/widgets/{key}")).unwrap();
        let mut ghost = widget("ghost");
        ghost["metadata"]["namespace"] = json!("default");
        ghost["metadata"]["finalizers"] = json!(["example.com/hold"]);
        let value = ghost.to_string().into();
        let put = Put {
            key,
            value,
            expected_state: ExpectedKeyState::Absent,
            ttl: None,
            key_group_revision_action: None,
        };
        cluster.store.put(put).await.unwrap();
    }
    define(&admin, &widgets).await;
    assert_eq!(admin.get(WIDGETS).await.expect(200)["items"], json!([]));
    // The server ignores the status when it deletes objects: a definition whose status is reset
    // keeps its objects.
    admin.post(WIDGETS, &widget("own")).await.expect(201);
    let path = format!("{DEFINITIONS}/widgets.example.com");
    let mut lost = admin.get(&path).await.expect(200);
    lost["status"] = json!({"storedVersions": ["v1"]});
    admin.put(&format!("{path}/status"), &lost).await.expect(200);
    until(&admin, &path, |_, own| has_condition(own, "Established", "True")).await;
    admin.get(&format!("{WIDGETS}/own")).await.expect(200);
}

/// How long the watch of a server lags.
const LAG: Duration = Duration::from_secs(2);

/// A server that lags creates an object of a definition that was deleted and made anew meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_lags_takes_back_what_it_created_too_late() {
    let members = [etcd_testing::Member::alone()];
    members.iter().for_each(etcd_testing::Member::wait_until_healthy);
    let near = Station::start(&members, |_| {}).await;
    let far = Station::start(&members, |_| {}).await;
    let (near_admin, far_admin) = (near.admin(), far.admin());
    let widgets = definition("example.com", "widgets", "v1");
    define(&near_admin, &widgets).await;
    until(&far_admin, WIDGETS, |code, _| code == 200).await;
    let create = far_admin.send_head(Method::POST, WIDGETS, &widget("ghost")).await;
    far.lag(LAG);
    undefine(&near_admin, "widgets.example.com").await;
    define(&near_admin, &widgets).await;
    create.send_body().await.expect(403);
    far.lag(Duration::ZERO);
    assert_eq!(near_admin.get(WIDGETS).await.expect(200)["items"], json!([]));
    far.stop().await;
    near.stop().await;
}
