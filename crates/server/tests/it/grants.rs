//! Privilege escalation checks, and roles that are too large for them.

use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::cluster::Cluster;

const GROUP: &str = "/apis/rbac.authorization.k8s.io/v1";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";

/// A response takes much less time than this, even while other tests run.
const TIME_MAX: Duration = Duration::from_secs(15);

fn entries(prefix: &str, n: usize) -> Vec<String> {
    (0..n).map(|number| format!("{prefix}{number}")).collect()
}

fn rule(n_verbs: usize, n_groups: usize, n_resources: usize) -> Value {
    json!({"verbs": entries("v", n_verbs), "apiGroups": entries("g", n_groups),
        "resources": entries("r", n_resources)})
}

fn role(name: &str, rules: Value) -> Value {
    json!({"metadata": {"name": name}, "rules": rules})
}

fn binding(name: &str, (kind, role): (&str, &str), user: &str) -> Value {
    json!({"metadata": {"name": name}, "roleRef": {"kind": kind, "name": role},
        "subjects": [{"kind": "User", "name": user}]})
}

fn message(answer: Answer, code: u16) -> String {
    answer.expect(code)["message"].as_str().expect("a message").to_owned()
}

/// Alice writes roles and bindings of a namespace, and may do more.
async fn empower(admin: &Client, mut rules: Vec<Value>) {
    rules.push(json!({"verbs": ["get", "create", "update", "patch"],
        "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"]}));
    admin.post(ROLES, &role("writer", rules.into())).await.expect(201);
    let bound = binding("writer", ("Role", "writer"), "alice");
    admin.post(BINDINGS, &bound).await.expect(201);
}

/// Attack A2: the product of a rule is counted before anything is done, whoever writes it.
#[tokio::test(flavor = "multi_thread")]
async fn a2_a_rule_with_too_many_combinations_is_refused_for_everybody() {
    let cluster = Cluster::start().await;
    let (admin, alice) = (cluster.admin(), cluster.alice());
    empower(&admin, vec![]).await;
    admin.post(ROLES, &role("old", json!([]))).await.expect(201);
    let cluster_roles = format!("{GROUP}/clusterroles");
    let rules = json!([rule(1, 1, 1), rule(150, 150, 150)]);
    let urls = json!([{"verbs": entries("v", 400), "nonResourceURLs": entries("/", 400)}]);
    let mut aggregated = role("big", rules.clone());
    aggregated["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]});
    let (post, put, patch) = (Method::POST, Method::PUT, Method::PATCH);
    let old = format!("{ROLES}/old");
    let new = format!("{ROLES}/big");
    let begun = Instant::now();
    for (client, method, path, body) in [
        (&alice, &post, ROLES, role("big", rules.clone())),
        (&alice, &put, old.as_str(), role("old", rules.clone())),
        (&alice, &put, new.as_str(), role("big", rules.clone())),
        (&alice, &patch, old.as_str(), json!({"rules": rules})),
        (&admin, &post, ROLES, role("big", rules.clone())),
        (&admin, &put, old.as_str(), role("old", rules.clone())),
        (&admin, &patch, old.as_str(), json!({"rules": rules})),
        (&admin, &post, cluster_roles.as_str(), role("big", rules.clone())),
        (&admin, &post, cluster_roles.as_str(), aggregated),
        (&admin, &post, cluster_roles.as_str(), role("big", urls)),
    ] {
        let merge = [("content-type", "application/merge-patch+json")];
        let headers: &[_] = if method == Method::PATCH { &merge } else { &[] };
        let answer = client.send(method.clone(), path, headers, body.to_string()).await;
        let text = message(answer, 422);
        let is_urls = text.contains("rules[0]: Invalid value: 160000: ");
        assert!(is_urls || text.contains("rules[1]: Invalid value: 3375000: "), "{text}");
        assert!(text.ends_with("split the rule into several, or use fewer entries"), "{text}");
    }
    assert!(begun.elapsed() < TIME_MAX, "{:?}", begun.elapsed());
}

/// Attack A2: a check at the limit is answered with a message that can be read, and does not keep
/// others waiting; a user who sends many is told to come back, or answered.
#[tokio::test(flavor = "multi_thread")]
async fn a2_checks_at_the_limit_leave_room_for_others() {
    let cluster = Cluster::start().await;
    let (admin, alice) = (cluster.admin(), cluster.alice());
    // All verbs but `v0`, on one of the resources and on something else.
    let held = |at: usize| {
        let resources = [format!("r{}", at % 46), format!("x{at}")];
        json!({"verbs": entries("v", 46).split_off(1), "apiGroups": ["*"], "resources": resources})
    };
    empower(&admin, (0..300).map(held).collect()).await;
    let large = role("large", json!([rule(46, 46, 46)]));
    let text = message(alice.post(ROLES, &large).await, 403);
    assert_eq!(text.lines().count(), 102, "{text}");
    let first = r#"{APIGroups:["g0"], Resources:["r0"], Verbs:["v0"]}"#;
    assert_eq!(text.lines().nth(1), Some(first));
    assert_eq!(text.lines().last(), Some("and 2016 more"));
    let begun = Instant::now();
    let storm: Vec<_> = (0..16)
        .map(|_| {
            let (alice, large) = (alice.clone(), large.clone());
            tokio::spawn(async move { alice.post(ROLES, &large).await })
        })
        .collect();
    for number in 0..10 {
        let own = role(&format!("own-{number}"), json!([rule(1, 1, 1)]));
        admin.post(ROLES, &own).await.expect(201);
        // A fast check is never rejected.
        let held = json!([{"verbs": ["v40"], "apiGroups": ["g1"], "resources": ["r45"]}]);
        alice.post(ROLES, &role(&format!("small-{number}"), held)).await.expect(201);
    }
    for answer in storm {
        let answer = answer.await.expect("it ends");
        match answer.code {
            403 => {}
            429 => assert_eq!(answer.headers["retry-after"], "1"),
            other => panic!("{other}"),
        }
    }
    assert!(begun.elapsed() < TIME_MAX, "{:?}", begun.elapsed());
    // A user may grant a role of any size whose permissions the user holds.
    let held = json!({"verbs": entries("v", 46).split_off(40), "apiGroups": entries("g", 46),
        "resources": entries("r", 46)});
    alice.post(ROLES, &role("held", json!([held]))).await.expect(201);
}

/// A request that creates names no object, so `escalate` on some names is not for it. `bind` is asked
/// with the name of the role.
#[tokio::test(flavor = "multi_thread")]
async fn escalate_on_a_name_counts_for_requests_that_name_it() {
    let cluster = Cluster::start().await;
    let (admin, alice) = (cluster.admin(), cluster.alice());
    let rbac = "rbac.authorization.k8s.io";
    empower(
        &admin,
        vec![
            json!({"verbs": ["escalate"], "apiGroups": [rbac], "resources": ["roles"],
                "resourceNames": ["mine"]}),
            json!({"verbs": ["bind"], "apiGroups": [rbac], "resources": ["clusterroles"],
                "resourceNames": ["view"]}),
        ],
    )
    .await;
    let more = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]);
    let (mine, other) = (format!("{ROLES}/mine"), format!("{ROLES}/other"));
    let text = message(alice.post(ROLES, &role("mine", more.clone())).await, 403);
    assert!(text.contains("is attempting to grant RBAC permissions not currently held"), "{text}");
    let generated = json!({"metadata": {"generateName": "mine"}, "rules": more});
    alice.post(ROLES, &generated).await.expect(403);
    // A PUT names what it creates.
    alice.put(&mine, &role("mine", more.clone())).await.expect(201);
    alice.put(&mine, &role("mine", json!([]))).await.expect(200);
    alice.patch(&mine, "merge-patch", &json!({"rules": more})).await.expect(200);
    alice.put(&other, &role("other", more.clone())).await.expect(403);
    admin.post(ROLES, &role("other", json!([]))).await.expect(201);
    alice.put(&other, &role("other", more.clone())).await.expect(403);
    alice.patch(&other, "merge-patch", &json!({"rules": more})).await.expect(403);
    for (name, code) in [("view", 201), ("edit", 403)] {
        let bound = binding(name, ("ClusterRole", name), "bob");
        alice.post(BINDINGS, &bound).await.expect(code);
    }
}
