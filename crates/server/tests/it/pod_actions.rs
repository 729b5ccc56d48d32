//! Bindings and evictions of pods.

use serde_json::{Value, json};

use crate::admission_hooks::{
    HookAuthority, MUTATING, VALIDATING, allow, asked, deny, patching, register, rule,
};
use crate::client::{Answer, Client};
use crate::cluster::Cluster;

const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

fn pod(name: &str, spec: Value) -> Value {
    let mut pod = json!({"metadata": {"name": name, "labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "i:1"}]}});
    pod["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    pod
}

fn binding(name: &str, node: &str, metadata: Value) -> Value {
    let mut binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node}});
    let own = binding["metadata"].as_object_mut().unwrap();
    own.extend(metadata.as_object().unwrap().clone());
    binding
}

fn eviction(name: &str, options: Value) -> Value {
    json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name},
        "deleteOptions": options})
}

fn message(answer: Answer, code: u16) -> String {
    answer.expect(code)["message"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_binding_assigns_a_pod_once() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    for (name, path) in [
        ("a", format!("{PODS}/a/binding")),
        ("b", "/api/v1/namespaces/default/bindings".to_owned()),
    ] {
        let made = admin.post(PODS, &pod(name, json!({}))).await.expect(201);
        let dry = format!("{path}?dryRun=All");
        admin.post(&dry, &binding(name, "n1", json!({}))).await.expect(201);
        assert_eq!(admin.get(&format!("{PODS}/{name}")).await.expect(200), made);
        let other = json!({"uid": "another"});
        let refused = message(admin.post(&path, &binding(name, "n1", other)).await, 409);
        assert!(refused.contains("UID in precondition: another"), "{refused}");
        let added = json!({"annotations": {"x": "y"}, "labels": {"zone": "z"},
            "uid": made["metadata"]["uid"], "resourceVersion": made["metadata"]["resourceVersion"]});
        let bound = admin.post(&path, &binding(name, "n1", added)).await.expect(201);
        let want = json!({"kind": "Status", "apiVersion": "v1", "metadata": {},
            "status": "Success", "code": 201});
        assert_eq!(bound, want);
        let stored = admin.get(&format!("{PODS}/{name}")).await.expect(200);
        assert_eq!(stored["spec"]["nodeName"], "n1");
        assert_eq!(stored["metadata"]["labels"], json!({"app": "a", "zone": "z"}));
        assert_eq!(stored["metadata"]["annotations"], json!({"x": "y"}));
        assert_eq!(stored["status"]["conditions"][0]["type"], "PodScheduled");
        let again = message(admin.post(&path, &binding(name, "n2", json!({}))).await, 409);
        assert_eq!(
            again,
            format!(
                "Operation cannot be fulfilled on pods/binding \"{name}\": pod {name} is already \
                 assigned to node \"n1\""
            )
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bindings_that_are_refused() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let gates = json!({"schedulingGates": [{"name": "a.example/b"}]});
    admin.post(PODS, &pod("gated", gates)).await.expect(201);
    let made = admin.post(PODS, &pod("p", json!({}))).await.expect(201);
    let no_target = json!({"metadata": {"name": "p"}, "target": {"kind": "Node"}});
    let service = json!({"metadata": {"name": "p"}, "target": {"kind": "Service", "name": "s"}});
    let mirror = json!({"annotations": {"kubernetes.io/config.mirror": "x"}});
    for (path, body, code, want) in [
        ("gone/binding", binding("gone", "n", json!({})), 404, "pods \"gone\" not found"),
        ("p/binding", binding("q", "n", json!({})), 400, "name in URL does not match"),
        ("p/binding", no_target, 500, "target.name: Required value"),
        ("p/binding", service, 500, "target.kind: Unsupported value: \"Service\""),
        ("p/binding", binding("p", "N", json!({})), 500, "target.name: Invalid value: \"N\""),
        ("gated/binding", binding("gated", "n", json!({})), 409, "non-empty .spec.schedulingGates"),
        // The annotation decides what a node may read, and stays as it was created.
        ("p/binding", binding("p", "n", mirror), 422, "may not add mirror pod annotation"),
        ("p/binding", binding("p", "n", json!({"labels": {"a b": ""}})), 422, "metadata.labels"),
        ("p/binding", eviction("p", json!({})), 400, "Eviction"),
    ] {
        let found = message(admin.post(&format!("{PODS}/{path}"), &body).await, code);
        assert!(found.contains(want), "{found}");
    }
    assert_eq!(admin.get(&format!("{PODS}/p")).await.expect(200), made);
    cluster
        .alice()
        .post(&format!("{PODS}/p/binding"), &binding("p", "n", json!({})))
        .await
        .expect(403);
}

/// Hooks review the Binding, may change it, and their refusal holds.
#[tokio::test(flavor = "multi_thread")]
async fn hooks_review_bindings_and_evictions() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let authority = HookAuthority::new();
    let moved = json!([{"op": "replace", "path": "/target/name", "value": "n2"}]);
    let (mutating, validating) = (authority.hook(patching(&moved)), authority.hook(allow()));
    let denying = authority.hook(deny("not this pod"));
    let bindings = json!({"rules": [rule(&["CREATE"], "", "pods/binding")]});
    let evictions = json!({"rules": [rule(&["CREATE"], "", "pods/eviction")]});
    let webhook = authority.webhook("m.x.y", &mutating, bindings.clone());
    register(&cluster, MUTATING, "m", &[webhook]).await;
    let webhook = authority.webhook("v.x.y", &validating, bindings);
    register(&cluster, VALIDATING, "v", &[webhook]).await;
    let webhook = authority.webhook("d.x.y", &denying, evictions);
    register(&cluster, VALIDATING, "d", &[webhook]).await;
    admin.post(PODS, &pod("p", json!({}))).await.expect(201);
    admin.post(&format!("{PODS}/p/binding"), &binding("p", "n1", json!({}))).await.expect(201);
    let stored = admin.get(&format!("{PODS}/p")).await.expect(200);
    assert_eq!(stored["spec"]["nodeName"], "n2");
    let told = validating.take_requests();
    assert_eq!(told.len(), 1);
    let told = asked(&told[0]);
    assert_eq!(told["subResource"], "binding");
    assert_eq!(told["kind"], json!({"group": "", "version": "v1", "kind": "Binding"}));
    assert_eq!(told["name"], "p");
    assert_eq!(told["object"]["target"]["name"], "n2");
    let refused = admin.post(&format!("{PODS}/p/eviction"), &eviction("p", json!({}))).await;
    assert!(message(refused, 403).contains("not this pod"));
    let told = asked(&denying.take_requests()[0]);
    assert_eq!(told["kind"], json!({"group": "policy", "version": "v1", "kind": "Eviction"}));
    admin.get(&format!("{PODS}/p")).await.expect(200);
}

async fn evict(admin: &Client, name: &str, options: Value) -> Answer {
    admin.post(&format!("{PODS}/{name}/eviction"), &eviction(name, options)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_eviction_deletes_the_pod_as_its_options_say() {
    let cluster =
        Cluster::start_with(|options, _| options.api_settings.has_pod_grace_periods = true).await;
    let admin = cluster.admin();
    let on_node = json!({"nodeName": "n1"});
    let made = admin.post(PODS, &pod("p", on_node)).await.expect(201);
    evict(&admin, "gone", json!({})).await.expect(404);
    let body = eviction("q", json!({}));
    let refused = message(admin.post(&format!("{PODS}/p/eviction"), &body).await, 400);
    assert_eq!(refused, "name in URL does not match name in Eviction object");
    for options in [
        json!({"preconditions": {"uid": "another"}}),
        json!({"preconditions": {"resourceVersion": "1"}}),
    ] {
        evict(&admin, "p", options).await.expect(409);
    }
    evict(&admin, "p", json!({"propagationPolicy": "Never"})).await.expect(422);
    evict(&admin, "p", json!("now")).await.expect(400);
    evict(&admin, "p", json!({"dryRun": ["All"]})).await.expect(201);
    let path = format!("{PODS}/p/eviction?dryRun=All");
    admin.post(&path, &eviction("p", Value::Null)).await.expect(201);
    assert_eq!(admin.get(&format!("{PODS}/p")).await.expect(200), made);
    let uid = json!({"preconditions": {"uid": made["metadata"]["uid"]}, "gracePeriodSeconds": 5});
    evict(&admin, "p", uid).await.expect(201);
    let evicted = admin.get(&format!("{PODS}/p")).await.expect(200);
    assert_eq!(evicted["metadata"]["deletionGracePeriodSeconds"], 5);
    let condition = &evicted["status"]["conditions"][0];
    assert_eq!(
        (&condition["type"], &condition["status"]),
        (&json!("DisruptionTarget"), &json!("True"))
    );
    let mut older = eviction("p", json!({"gracePeriodSeconds": 0}));
    older["apiVersion"] = json!("policy/v1beta1");
    admin.post(&format!("{PODS}/p/eviction"), &older).await.expect(201);
    admin.get(&format!("{PODS}/p")).await.expect(404);
    cluster.alice().post(&format!("{PODS}/p/eviction"), &older).await.expect(403);
}

/// A budget whose controller says how many pods may be disrupted.
async fn set_budget(admin: &Client, name: &str, status: Value) {
    let path = format!("{BUDGETS}/{name}");
    let budget =
        json!({"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": "a"}}}});
    if admin.get(&path).await.code == 404 {
        admin.post(BUDGETS, &budget).await.expect(201);
    }
    let patch = json!({"status": status});
    admin.patch(&format!("{path}/status"), "merge-patch", &patch).await.expect(200);
}

async fn run(admin: &Client, name: &str, is_ready: bool) {
    admin.post(PODS, &pod(name, json!({"nodeName": "n1"}))).await.expect(201);
    let ready = if is_ready { "True" } else { "False" };
    let status = json!({"status": {"phase": "Running",
        "conditions": [{"type": "Ready", "status": ready}]}});
    admin.patch(&format!("{PODS}/{name}/status"), "merge-patch", &status).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn budgets_limit_evictions() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    for name in ["a", "b"] {
        run(&admin, name, true).await;
    }
    run(&admin, "sick", false).await;
    set_budget(&admin, "pdb", json!({"observedGeneration": 0})).await;
    let refused = evict(&admin, "a", json!({})).await;
    assert_eq!(refused.headers["retry-after"], "10");
    let status = refused.expect(429);
    assert_eq!(
        status["message"],
        "Cannot evict pod as it would violate the pod's disruption budget."
    );
    assert_eq!(
        status["details"]["causes"],
        json!([{"reason": "DisruptionBudget",
            "message": "The disruption budget pdb is still being processed by the server."}])
    );
    let one = json!({"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2,
        "desiredHealthy": 1, "expectedPods": 2});
    set_budget(&admin, "pdb", one).await;
    evict(&admin, "a", json!({"dryRun": ["All"]})).await.expect(201);
    evict(&admin, "a", json!({})).await.expect(201);
    admin.get(&format!("{PODS}/a")).await.expect(404);
    let budget = admin.get(&format!("{BUDGETS}/pdb")).await.expect(200);
    assert_eq!(budget["status"]["disruptionsAllowed"], 0);
    assert!(budget["status"]["disruptedPods"]["a"].is_string(), "{budget}");
    assert_eq!(budget["status"]["conditions"][0]["status"], "False");
    set_budget(&admin, "pdb", json!({"currentHealthy": 1})).await;
    let status = evict(&admin, "b", json!({})).await.expect(429);
    assert_eq!(
        status["details"]["causes"][0]["message"],
        "The disruption budget pdb needs 1 healthy pods and has 1 currently"
    );
    // A pod that is not ready does not count while enough others are.
    evict(&admin, "sick", json!({})).await.expect(201);
    set_budget(&admin, "pdb", json!({"disruptionsAllowed": -1})).await;
    let status = evict(&admin, "b", json!({})).await.expect(403);
    assert!(status["message"].as_str().unwrap().ends_with("pdb disruptions allowed is negative"));
    set_budget(&admin, "second", json!({})).await;
    let status = evict(&admin, "b", json!({})).await.expect(500);
    assert!(status["message"].as_str().unwrap().contains("more than one PodDisruptionBudget"));
    admin.get(&format!("{PODS}/b")).await.expect(200);
    // A pod that has not begun is not protected.
    admin.post(PODS, &pod("new", json!({}))).await.expect(201);
    evict(&admin, "new", json!({})).await.expect(201);
}
