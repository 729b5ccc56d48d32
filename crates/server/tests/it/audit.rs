//! The audit events of requests.

use http::Method;
use serde_json::{Value, json};

use crate::cluster::{Cluster, write_audit_log};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// An audit policy that records requests for ConfigMaps with their bodies, and no other requests.
const POLICY: &str = r#"{
    "apiVersion": "audit.k8s.io/v1", "kind": "Policy",
    "rules": [{"level": "RequestResponse", "resources": [{"resources": ["configmaps"]}]}]
}"#;

async fn audited() -> Cluster {
    Cluster::start_with(|options, folder| write_audit_log(options, folder, POLICY)).await
}

/// The events of one request, once the last of them is written: the answer may be there earlier.
async fn events(cluster: &Cluster, audit_id: &str) -> Vec<Value> {
    for _ in 0..500 {
        let text = std::fs::read_to_string(cluster.folder().join("audit.log")).expect("a log");
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let own: Vec<Value> = lines.filter(|event| event["auditID"] == audit_id).collect();
        if own.last().is_some_and(|event| event["stage"] == "ResponseComplete") {
            return own;
        }
        crate::polling::pause().await;
    }
    panic!("the request {audit_id} was not recorded to its end");
}

fn stages(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["stage"].as_str().expect("a stage")).collect()
}

/// The server uses the audit id of the client in its response and in the events.
#[tokio::test(flavor = "multi_thread")]
async fn the_audit_id_of_a_client_is_kept() {
    let cluster = audited().await;
    let headers = [("audit-id", "x")];
    let answer = cluster.admin().send(Method::GET, MAPS, &headers, "").await;
    assert_eq!(answer.headers["audit-id"], "x");
    let events = events(&cluster, "x").await;
    assert_eq!(stages(&events), ["RequestReceived", "ResponseComplete"]);
    assert_eq!(events[0]["kind"], "Event");
    assert_eq!(events[0]["apiVersion"], "audit.k8s.io/v1");
    let answer = cluster.admin().get(MAPS).await;
    assert_ne!(answer.headers["audit-id"], "x");
}

/// At the level RequestResponse the last event contains the bodies of the request and the response.
#[tokio::test(flavor = "multi_thread")]
async fn a_creation_is_recorded_with_its_objects() {
    let cluster = audited().await;
    let headers = [("audit-id", "x"), ("content-type", "application/json")];
    let body = json!({"metadata": {"name": "a"}, "data": {"k": "v"}});
    let answer = cluster.admin().send(Method::POST, MAPS, &headers, body.to_string()).await;
    let made = answer.expect(201);
    let events = events(&cluster, "x").await;
    assert_eq!(stages(&events), ["RequestReceived", "ResponseComplete"]);
    let last = &events[1];
    assert_eq!(last["level"], "RequestResponse");
    assert_eq!(last["verb"], "create");
    assert_eq!(last["requestURI"], MAPS);
    assert_eq!(last["user"]["username"], "admin");
    assert_eq!(last["requestObject"]["data"], json!({"k": "v"}));
    assert_eq!(last["responseObject"], made);
    assert_eq!(last["responseStatus"], json!({"metadata": {}, "code": 201}));
    assert_eq!(last["annotations"]["authorization.k8s.io/decision"], "allow");
    let reference = &last["objectRef"];
    assert_eq!(
        (&reference["resource"], &reference["namespace"], &reference["name"]),
        (&json!("configmaps"), &json!("default"), &json!("a"))
    );
    assert_eq!(events[0]["requestObject"], Value::Null);
}

/// A watch is recorded when it begins to answer and when it ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_watch_is_recorded_in_three_stages() {
    let cluster = audited().await;
    let headers = [("audit-id", "x")];
    let path = format!("{MAPS}?watch=1&timeoutSeconds=1");
    let mut events_told = cluster.admin().watch_with(&path, &headers).await;
    assert_eq!(events_told.next().await, None);
    let events = events(&cluster, "x").await;
    assert_eq!(stages(&events), ["RequestReceived", "ResponseStarted", "ResponseComplete"]);
    assert_eq!(events[2]["verb"], "watch");
    assert_eq!(events[2]["responseStatus"]["code"], 200);
}

/// A refusal is recorded with its decision.
#[tokio::test(flavor = "multi_thread")]
async fn a_denied_request_is_recorded_as_forbidden() {
    let cluster = audited().await;
    let headers = [("audit-id", "x")];
    let status = cluster.alice().send(Method::GET, MAPS, &headers, "").await.expect(403);
    let events = events(&cluster, "x").await;
    let last = events.last().unwrap();
    assert_eq!(last["annotations"]["authorization.k8s.io/decision"], "forbid");
    assert_eq!(last["responseStatus"]["code"], 403);
    assert_eq!(last["responseStatus"]["message"], status["message"]);
    assert_eq!(last["responseStatus"]["reason"], "Forbidden");
    assert_eq!(last["responseStatus"]["kind"], Value::Null);
    assert_eq!(last["user"]["username"], "alice");
}
