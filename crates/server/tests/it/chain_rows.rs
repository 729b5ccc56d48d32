//! The requests that an authorization webhook receives.

use http::Method;
use serde_json::{Value, json};

use crate::hooks::{Hooks, abstain, rbac};

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_see_what_is_asked() {
    let hooks = Hooks::new();
    let peer = hooks.peer("w", vec![abstain()]);
    let plan = hooks.plan(&[hooks.webhook("w", json!({"unauthorizedTTL": "1ms"})), rbac()]);
    let cluster = hooks.cluster(&plan, |_, _| {}).await;

    // No webhook is asked about a user who is not authenticated.
    cluster.anonymous().with_token("wrong").get("/api/v1/pods").await.expect(401);
    assert!(peer.requests().is_empty());

    let jobs = "/apis/batch/v1/namespaces/myns/jobs";
    let of_jobs = |verb: &str, selector: Value| {
        let mut attributes = json!({
            "namespace": "myns", "verb": verb, "group": "batch", "version": "v1",
            "resource": "jobs",
        });
        if !selector.is_null() {
            attributes["fieldSelector"] = selector;
        }
        json!({"resourceAttributes": attributes})
    };
    let equals = json!({"requirements": [{"key": "foo", "operator": "In", "values": ["bar"]}]});
    let rows = [
        (
            "non-resource path",
            Method::POST,
            "/".to_owned(),
            json!({"nonResourceAttributes": {"path": "/", "verb": "post"}}),
        ),
        (
            "resource",
            Method::POST,
            "/api/v1/nodes/mynode".to_owned(),
            json!({"resourceAttributes": {
                "verb": "create", "version": "v1", "resource": "nodes", "name": "mynode",
            }}),
        ),
        (
            "field selector",
            Method::GET,
            format!("{jobs}?fieldSelector=foo%3D%3Dbar"),
            of_jobs("list", equals),
        ),
        (
            "malformed selector value",
            Method::GET,
            format!("{jobs}?fieldSelector=%2Abar"),
            of_jobs("list", Value::Null),
        ),
        (
            "malformed parameter name",
            Method::GET,
            format!("{jobs}?fieldSelector%=foo%3Dbar"),
            of_jobs("list", Value::Null),
        ),
    ];
    for (id, method, path, mut want) in rows {
        // The test waits for a real process: the cached decision expires after 1 ms.
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        let code = cluster.alice().send(method, &path, &[], "").await.code;
        assert_eq!(code, 403, "{id} {path}");
        let asked = peer.take_requests();
        assert_eq!(asked.len(), 1, "{id} {path}");
        let body: Value = serde_json::from_slice(&asked[0].body).expect("a review");
        want["user"] = json!("alice");
        want["uid"] = json!("2");
        want["groups"] = json!(["system:authenticated"]);
        assert_eq!(body["spec"], want, "{id} {path}");
    }
}
