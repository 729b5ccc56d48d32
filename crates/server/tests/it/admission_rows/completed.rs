//! Hooks select and see the object that will be stored: with its defaults, with the members that the
//! server sets, and without what a request may not decide.

use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};

use super::{DEPLOYMENTS, NAMESPACES, PODS, RBAC, Scene, pod, told, told_once};
use crate::admission_hooks::{MUTATING, VALIDATING, allow, patching, rule};
use crate::client::Answer;

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const NAME_LABEL: &str = "kubernetes.io/metadata.name";
const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// A request that hooks are asked about.
struct Row {
    title: &'static str,
    /// Where objects are created.
    collection: String,
    /// The object that exists before, if there is one; its name is `o`.
    stored: Option<Value>,
    method: Method,
    /// The subresource; empty for the object itself.
    subresource: &'static str,
    body: Value,
    /// The group and the resource of the rules, and the other fields of each hook's entry.
    asks: (&'static str, &'static str, Value),
    /// The members of the object that each hook must see.
    sees: Vec<(&'static str, Value)>,
}

impl Row {
    fn update(title: &'static str, collection: &str, stored: &Value, body: Value) -> Self {
        Self {
            title,
            collection: collection.to_owned(),
            stored: Some(stored.clone()),
            method: Method::PATCH,
            subresource: "",
            body,
            asks: ("", "configmaps", json!({})),
            sees: Vec::new(),
        }
    }

    fn create(title: &'static str, collection: &str, body: Value) -> Self {
        let row = Self::update(title, collection, &Value::Null, body);
        Self { stored: None, method: Method::POST, ..row }
    }

    fn put(self) -> Self {
        Self { method: Method::PUT, ..self }
    }

    fn at(self, subresource: &'static str) -> Self {
        Self { subresource, ..self }
    }

    fn asks(self, group: &'static str, resource: &'static str, changes: Value) -> Self {
        Self { asks: (group, resource, changes), ..self }
    }

    fn sees(mut self, pointer: &'static str, value: impl Into<Value>) -> Self {
        self.sees.push((pointer, value.into()));
        self
    }

    async fn send(&self, scene: &Scene) -> Answer {
        let path = match (&self.stored, self.subresource) {
            (None, _) => self.collection.clone(),
            (Some(_), "") => format!("{}/o", self.collection),
            (Some(_), part) => format!("{}/o/{part}", self.collection),
        };
        let headers: &[(&str, &str)] = match self.method {
            Method::PATCH => &[("content-type", "application/merge-patch+json")],
            _ => &[],
        };
        scene.admin.send(self.method.clone(), &path, headers, self.body.to_string()).await
    }
}

fn condition(expression: &str) -> Value {
    json!({"matchConditions": [{"name": "c", "expression": expression}]})
}

fn not_kube_system(selector: &str) -> Value {
    json!({selector: {"matchExpressions":
        [{"key": NAME_LABEL, "operator": "NotIn", "values": ["kube-system"]}]}})
}

fn rows() -> Vec<Row> {
    let labels = json!({NAME_LABEL: "kube-system"});
    let namespace = json!({"metadata": {"name": "o"}});
    let disguised = json!({"metadata": {"name": "o", "labels": labels}});
    let relabel = json!({"metadata": {"labels": labels}});
    let generated = json!({"metadata": {"generateName": "o-", "labels": labels}});
    let by_namespace = || not_kube_system("namespaceSelector");
    let by_object = || not_kube_system("objectSelector");
    let name_label = "/metadata/labels/kubernetes.io~1metadata.name";

    let always = || condition("object.spec.restartPolicy == 'Always'");
    let restart_policy = "/spec/restartPolicy";
    let mut pod = pod("o");
    pod["spec"]["serviceAccountName"] = "default".into();
    let reset = json!({"spec": {"restartPolicy": null}});
    let phase = json!({"status": {"phase": "Running"}});
    let pending = || condition("object.status.phase == 'Pending'");
    let stolen = json!({"spec": {"nodeName": "stolen"}, "status": {"phase": "Running"}});

    let text = json!({"metadata": {"name": "o"}, "stringData": {"a": "b"}});
    let secret = json!({"metadata": {"name": "o"}, "data": {}});
    let texts = || condition("has(object.data) && 'a' in object.data && !has(object.stringData)");

    let deployment = |replicas: i32| {
        json!({"metadata": {"name": "o"}, "spec": {"replicas": replicas,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]}}}})
    };
    let mut forged = deployment(2);
    forged["metadata"]["generation"] = 7.into();
    forged["metadata"]["creationTimestamp"] = "2001-01-01T00:00:00Z".into();
    let mut born_forged = forged.clone();
    born_forged["metadata"]["deletionTimestamp"] = "2001-01-01T00:00:00Z".into();
    born_forged["metadata"]["uid"] = "forged".into();
    let unforged = || {
        condition(
            "!has(object.metadata.deletionTimestamp) && (!has(object.metadata.creationTimestamp) \
             || string(object.metadata.creationTimestamp) != '2001-01-01T00:00:00Z') && \
             (!has(object.metadata.uid) || object.metadata.uid != 'forged')",
        )
    };

    let service = json!({"metadata": {"name": "o"}, "spec": {"ports": [{"port": 80}]}});
    let inside = || condition("object.spec.type == 'ClusterIP'");
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    let binding = json!({"metadata": {"name": "o"},
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "User", "name": "eve"}]});
    let users =
        || condition("object.subjects.exists(s, s.apiGroup == 'rbac.authorization.k8s.io')");

    vec![
        Row::update("the label of a namespace, patched", NAMESPACES, &namespace, relabel.clone())
            .asks("", "namespaces", by_namespace())
            .sees(name_label, "o"),
        Row::update("the label of a namespace, put", NAMESPACES, &namespace, disguised.clone())
            .put()
            .asks("", "namespaces", by_namespace())
            .sees(name_label, "o"),
        Row::update(
            "the label of a namespace as an object",
            NAMESPACES,
            &namespace,
            relabel.clone(),
        )
        .asks("", "namespaces", by_object())
        .sees(name_label, "o"),
        Row::update("the label by way of the status", NAMESPACES, &namespace, relabel)
            .at("status")
            .asks("", "namespaces/status", by_object())
            .sees(name_label, "o"),
        Row::create("the label of a new namespace", NAMESPACES, disguised)
            .asks("", "namespaces", by_namespace())
            .sees(name_label, "o"),
        Row::create("the label of a namespace without a name", NAMESPACES, generated).asks(
            "",
            "namespaces",
            by_namespace(),
        ),
        Row::create("restartPolicy left out", PODS, pod.clone())
            .asks("", "pods", always())
            .sees(restart_policy, "Always"),
        Row::update("restartPolicy left out of a put", PODS, &pod, pod.clone())
            .put()
            .asks("", "pods", always())
            .sees(restart_policy, "Always"),
        Row::update("restartPolicy removed", PODS, &pod, reset)
            .asks("", "pods", always())
            .sees(restart_policy, "Always"),
        Row::update("the status by way of the object", PODS, &pod, phase.clone())
            .asks("", "pods", pending())
            .sees("/status/phase", "Pending"),
        Row::update("the spec by way of the status", PODS, &pod, stolen)
            .at("status")
            .asks("", "pods/status", condition("!has(object.spec.nodeName)"))
            .sees("/status/phase", "Running"),
        Row::create("stringData of a new secret", SECRETS, text.clone())
            .asks("", "secrets", texts())
            .sees("/data/a", "Yg=="),
        Row::update("stringData put", SECRETS, &secret, text.clone())
            .put()
            .asks("", "secrets", texts())
            .sees("/data/a", "Yg=="),
        Row::update("stringData patched", SECRETS, &secret, json!({"stringData": {"a": "b"}}))
            .asks("", "secrets", texts())
            .sees("/data/a", "Yg=="),
        Row::create("metadata that only the server sets", DEPLOYMENTS, born_forged).asks(
            "apps",
            "deployments",
            unforged(),
        ),
        Row::update("metadata that no update changes", DEPLOYMENTS, &deployment(1), forged)
            .put()
            .asks("apps", "deployments", unforged())
            .sees("/metadata/generation", 2),
        Row::create("the type of a service left out", SERVICES, service.clone())
            .asks("", "services", inside())
            .sees("/spec/type", "ClusterIP"),
        Row::update("the type of a service removed", SERVICES, &service, service.clone())
            .put()
            .asks("", "services", inside())
            .sees("/spec/type", "ClusterIP"),
        Row::update("the group of a subject left out", &bindings, &binding, binding.clone())
            .put()
            .asks(RBAC_GROUP, "rolebindings", users())
            .sees("/subjects/0/apiGroup", RBAC_GROUP),
    ]
}

/// Deletes an object and waits until it is gone.
async fn remove(scene: &Scene, path: &str) {
    scene.admin.delete(&format!("{path}?gracePeriodSeconds=0")).await.expect(200);
    let patience = Instant::now() + Duration::from_secs(20);
    while scene.admin.get(path).await.code != 404 {
        assert!(Instant::now() < patience, "{path} does not go");
        crate::polling::pause().await;
    }
}

/// Removes the members that the server sets when it stores the object.
fn without_stamps(mut object: Value, is_new: bool) -> Value {
    let metadata = object["metadata"].as_object_mut().expect("metadata");
    metadata.shift_remove("resourceVersion");
    if is_new {
        for member in ["uid", "creationTimestamp", "generation"] {
            metadata.shift_remove(member);
        }
    }
    object
}

/// L10: hooks of both phases see the object that will be stored, and the stored one as the old one.
#[tokio::test(flavor = "multi_thread")]
async fn hooks_see_the_object_that_will_be_stored() {
    let scene = Scene::start().await;
    for row in rows() {
        let title = row.title;
        if let Some(stored) = &row.stored {
            scene.admin.post(&row.collection, stored).await.expect(201);
        }
        let (mutating, validating) = (scene.hook(allow()), scene.hook(allow()));
        let (group, resource, mut changes) = row.asks.clone();
        changes["rules"] = json!([rule(&["CREATE", "UPDATE"], group, resource)]);
        scene.ask(MUTATING, &mutating, changes.clone()).await;
        scene.ask(VALIDATING, &validating, changes).await;
        let answer = row.send(&scene).await;
        assert!(matches!(answer.code, 200 | 201), "{title}: {}", answer.text());
        let stored = answer.json();
        let is_generated = row.body["metadata"].get("generateName").is_some();
        for (phase, hook) in [("mutating", &mutating), ("validating", &validating)] {
            let mut told = told(hook);
            assert_eq!(told.len(), 1, "{title}: the {phase} hook was not asked once: {told:?}");
            let object = told.remove(0)["object"].take();
            for (pointer, want) in &row.sees {
                assert_eq!(object.pointer(pointer), Some(want), "{title}, {phase}: {pointer}");
            }
            // An object without a name has no label that says it.
            if !(is_generated && phase == "mutating") {
                let is_new = row.stored.is_none();
                let seen = without_stamps(object, is_new);
                assert_eq!(seen, without_stamps(stored.clone(), is_new), "{title}, {phase}");
            }
        }
        for kind in [MUTATING, VALIDATING] {
            scene.admin.delete(&format!("{kind}/c")).await.expect(200);
        }
        let name = stored["metadata"]["name"].as_str().expect("a name");
        remove(&scene, &format!("{}/{name}", row.collection)).await;
    }
}

/// The next hook sees what the server makes of the patch of the one before.
#[tokio::test(flavor = "multi_thread")]
async fn the_next_hook_sees_the_completed_patch() {
    let scene = Scene::start().await;
    let add = |path: &str, value: Value| json!([{"op": "add", "path": path, "value": value}]);
    let name_label = "/metadata/labels/kubernetes.io~1metadata.name";
    let excludes = || not_kube_system("namespaceSelector");
    let secret = json!({"metadata": {"name": "o"}, "data": {}});
    let labels = json!({NAME_LABEL: "kube-system"});
    for (resource, collection, stored, patch, changes, sees) in [
        (
            "namespaces",
            NAMESPACES,
            json!({"metadata": {"name": "o"}}),
            add("/metadata/labels", labels),
            excludes(),
            (name_label, json!("o")),
        ),
        (
            "pods",
            PODS,
            pod("o"),
            json!([{"op": "remove", "path": "/spec/restartPolicy"}]),
            condition("object.spec.restartPolicy == 'Always'"),
            ("/spec/restartPolicy", json!("Always")),
        ),
        (
            "pods",
            PODS,
            pod("o"),
            add("/status", json!({"phase": "Running"})),
            condition("object.status.phase == 'Pending'"),
            ("/status/phase", json!("Pending")),
        ),
        (
            "secrets",
            SECRETS,
            secret,
            add("/stringData", json!({"a": "b"})),
            condition("!has(object.stringData)"),
            ("/data/a", json!("Yg==")),
        ),
    ] {
        for is_create in [true, false] {
            let (first, second) = (scene.hook(patching(&patch)), scene.hook(allow()));
            let rules = json!([rule(&["CREATE", "UPDATE"], "", resource)]);
            let mut changes = changes.clone();
            changes["rules"] = rules.clone();
            let webhooks = [
                scene.webhook("a.x.y", &first, json!({"rules": rules})),
                scene.webhook("b.x.y", &second, changes),
            ];
            let path = format!("{collection}/o");
            let stored = match is_create {
                true => {
                    scene.configure(MUTATING, &webhooks).await;
                    scene.admin.post(collection, &stored).await.expect(201)
                }
                false => {
                    scene.admin.post(collection, &stored).await.expect(201);
                    scene.configure(MUTATING, &webhooks).await;
                    let label = json!({"metadata": {"labels": {"x": "y"}}});
                    scene.admin.patch(&path, "merge-patch", &label).await.expect(200)
                }
            };
            let (pointer, want) = &sees;
            assert_eq!(told_once(&second)["object"].pointer(pointer), Some(want), "{patch}");
            assert_eq!(stored.pointer(pointer), Some(want), "{patch}");
            scene.admin.delete(&format!("{MUTATING}/c")).await.expect(200);
            remove(&scene, &path).await;
        }
    }
}

/// A request for a certificate names the user who asks before the first hook sees it.
#[tokio::test(flavor = "multi_thread")]
async fn hooks_see_who_asks_for_a_certificate() {
    let scene = Scene::start().await;
    let hook = scene.hook(allow());
    let group = "certificates.k8s.io";
    let requests = format!("/apis/{group}/v1/certificatesigningrequests");
    let rules = json!([rule(&["CREATE"], group, "certificatesigningrequests")]);
    scene.ask(MUTATING, &hook, json!({"rules": rules})).await;
    let body = json!({"metadata": {"name": "o"}, "spec": {
        "username": "system:kube-controller-manager", "groups": ["system:masters"],
        "request": "eA==", "signerName": "example.com/x", "usages": ["client auth"]}});
    // Whether the request itself is well-formed is checked after the hooks.
    scene.admin.post(&requests, &body).await;
    let told = told_once(&hook);
    assert_eq!(told["object"]["spec"]["username"], told["userInfo"]["username"]);
    assert_eq!(told["object"]["spec"]["groups"], told["userInfo"]["groups"]);
}

/// The resourceVersion of a client holds for a subresource, too, though its metadata is not stored.
#[tokio::test(flavor = "multi_thread")]
async fn a_completed_object_keeps_the_version_that_the_client_saw() {
    let scene = Scene::start().await;
    let made = scene.admin.post(NAMESPACES, &json!({"metadata": {"name": "o"}})).await.expect(201);
    let label = json!({"metadata": {"labels": {"x": "y"}}});
    scene.admin.patch(&format!("{NAMESPACES}/o"), "merge-patch", &label).await.expect(200);
    for part in ["finalize", "status"] {
        scene.admin.put(&format!("{NAMESPACES}/o/{part}"), &made).await.expect(409);
    }
}
