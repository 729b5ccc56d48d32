//! Requests are classified by the flow schemas in force.

use http::Method;
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::cluster::Cluster;

const SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
const LEVELS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations";

fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().expect("a uid").to_owned()
}

/// The uids of the schema and the level that a response names.
fn classification(answer: &Answer) -> [String; 2] {
    ["x-kubernetes-pf-flowschema-uid", "x-kubernetes-pf-prioritylevel-uid"]
        .map(|name| answer.headers[name].to_str().expect("text").to_owned())
}

async fn uids_of(admin: &Client, schema: &str, level: &str) -> [String; 2] {
    let schema = admin.get(&format!("{SCHEMAS}/{schema}")).await.expect(200);
    let level = admin.get(&format!("{LEVELS}/{level}")).await.expect(200);
    [uid(&schema), uid(&level)]
}

/// The end-to-end specification of Kubernetes: "should ensure that requests can be classified by adding FlowSchema and
/// PriorityLevelConfiguration".
#[tokio::test(flavor = "multi_thread")]
async fn requests_are_classified_by_a_new_flow_schema() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let request = async |user: &str, path: &str| {
        admin.send(Method::GET, path, &[("impersonate-user", user)], "").await
    };
    let default = uids_of(&admin, "global-default", "global-default").await;
    assert_eq!(classification(&request("e2e-user", "/version").await), default);
    let level = json!({"metadata": {"name": "e2e-level"}, "spec": {"type": "Limited", "limited": {
        "nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}}}});
    let level = uid(&admin.post(LEVELS, &level).await.expect(201));
    let rule = json!({"verbs": ["*"], "nonResourceURLs": ["*"]});
    let resources = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"],
        "namespaces": ["*"], "clusterScope": true});
    let schema = json!({"metadata": {"name": "e2e-schema"}, "spec": {
        "matchingPrecedence": 1000,
        "priorityLevelConfiguration": {"name": "e2e-level"},
        "distinguisherMethod": {"type": "ByUser"},
        "rules": [{"subjects": [{"kind": "User", "user": {"name": "e2e-user"}}],
            "nonResourceRules": [rule], "resourceRules": [resources]}]}});
    let schema = uid(&admin.post(SCHEMAS, &schema).await.expect(201));
    let own = [schema, level];
    for (user, path, code, want) in [
        ("e2e-user", "/version", 200, &own),
        ("e2e-user", "/api/v1/pods", 403, &own),
        ("somebody", "/version", 200, &default),
    ] {
        let answer = request(user, path).await;
        assert_eq!((answer.code, &classification(&answer)), (code, want), "{user} {path}");
    }
    let exempt = uids_of(&admin, "exempt", "exempt").await;
    assert_eq!(classification(&admin.get("/api/v1/pods").await), exempt);
    let series = "apiserver_flowcontrol_dispatched_requests_total{flow_schema=\"e2e-schema\",\
                  priority_level=\"e2e-level\"} 1";
    assert!(admin.get("/metrics").await.text().lines().any(|line| line == series));
    admin.delete(&format!("{SCHEMAS}/e2e-schema")).await.expect(200);
    assert_eq!(classification(&request("e2e-user", "/version").await), default);
    assert!(!admin.get("/metrics").await.text().contains("e2e-schema"));
}

/// The end-to-end specification of Kubernetes: "should ensure that requests can't be drowned out (fairness)": a user with
/// many requests and a user with few share a level with one seat.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_with_few_requests_is_not_drowned_out() {
    let cluster = Cluster::start_with(|options, _| options.request_limits.seats_max = 1).await;
    let (admin, alice, bob) = (cluster.admin(), cluster.alice(), cluster.bob());
    let group = "rbac.authorization.k8s.io";
    let subjects =
        ["alice", "bob"].map(|name| json!({"apiGroup": group, "kind": "User", "name": name}));
    let binding = json!({"metadata": {"name": "viewers"}, "subjects": subjects,
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "view"}});
    admin.post(&format!("/apis/{group}/v1/clusterrolebindings"), &binding).await.expect(201);
    // Each of these reads waits three seconds for a state that does not exist yet.
    let mut elephant = tokio::task::JoinSet::new();
    for n in 0..40 {
        let alice = alice.clone();
        let path = format!("/api/v1/namespaces?resourceVersion={}", 99_999_999 + n);
        elephant.spawn(async move { alice.begin(Method::GET, &path, &[], "").await });
    }
    let waiting = "apiserver_flowcontrol_current_inqueue_requests{flow_schema=\"global-default\",\
                   priority_level=\"global-default\"} ";
    let n_waiting = async || {
        let metrics = admin.get("/metrics").await.text();
        let line = metrics.lines().find_map(|line| line.strip_prefix(waiting));
        line.and_then(|n| n.parse::<u32>().ok()).unwrap_or_default()
    };
    while n_waiting().await < 30 {
        tokio::task::yield_now().await;
    }
    // In the order of arrival bob would wait for more than a minute and be refused.
    for _ in 0..2 {
        bob.get("/api/v1/namespaces").await.expect(200);
    }
    elephant.abort_all();
}
