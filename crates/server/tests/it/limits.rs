//! Limits of bodies, annotations, patches and seats.

use http::Method;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::cluster::Cluster;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const BODY_BYTES_MAX: usize = 3_145_728;
const ANNOTATION_BYTES_MAX: usize = 262_144;
const OPERATIONS_MAX: usize = 10_000;

fn message(answer: Answer, code: u16) -> String {
    answer.expect(code)["message"].as_str().expect("a message").to_owned()
}

/// Long responses are compressed for clients that accept gzip, short ones are not.
#[tokio::test(flavor = "multi_thread")]
async fn long_answers_are_compressed() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let long = json!({"metadata": {"name": "long"}, "data": {"k": "x".repeat(200 * 1024)}});
    admin.post(MAPS, &long).await.expect(201);
    admin.post(MAPS, &json!({"metadata": {"name": "short"}})).await.expect(201);
    let get = async |name: &str, headers: &[(&str, &str)]| {
        admin.send(Method::GET, &format!("{MAPS}/{name}"), headers, "").await
    };
    let gzip = [("accept-encoding", "gzip")];
    let answer = get("long", &gzip).await;
    assert_eq!(answer.headers["content-encoding"], "gzip");
    assert_eq!(answer.headers["vary"], "Accept-Encoding");
    assert_eq!(&answer.bytes[..2], [0x1f, 0x8b]);
    assert!(answer.bytes.len() < 20 * 1024);
    let plain = get("long", &[]).await;
    assert!(!plain.headers.contains_key("content-encoding"));
    assert!(plain.expect(200)["data"]["k"].as_str().is_some_and(|own| own.len() == 200 * 1024));
    assert!(!get("short", &gzip).await.headers.contains_key("content-encoding"));
}

/// A body at the limit is read, one byte more is refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_may_have_three_mebibytes() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let body = |length: usize| {
        let mut text = "{\"metadata\":{\"name\":\"A\"}}".to_owned();
        text.extend(std::iter::repeat_n(' ', length - text.len()));
        text
    };
    let send = async |length| admin.send(Method::POST, MAPS, &[], body(length)).await;
    assert_eq!(
        message(send(BODY_BYTES_MAX + 1).await, 413),
        "Request entity too large: limit is 3145728"
    );
    // It is read and refused for its name.
    assert!(message(send(BODY_BYTES_MAX).await, 422).contains("metadata.name"));
}

/// Annotations at the limit are kept, one byte more is refused.
#[tokio::test(flavor = "multi_thread")]
async fn annotations_may_have_256_kibibytes() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let object = |name: &str, length: usize| json!({"metadata": {"name": name, "annotations": {"k": "x".repeat(length - 1)}}});
    let refused = admin.post(MAPS, &object("a", ANNOTATION_BYTES_MAX + 1)).await;
    assert_eq!(
        message(refused, 422),
        "ConfigMap \"a\" is invalid: metadata.annotations: Too long: may not be more than 262144 \
         bytes"
    );
    admin.post(MAPS, &object("a", ANNOTATION_BYTES_MAX)).await.expect(201);
}

/// A JSON patch at the limit is applied, one operation more is refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_json_patch_may_have_ten_thousand_operations() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let object = json!({"metadata": {"name": "a"}, "data": {"k": "v"}});
    admin.post(MAPS, &object).await.expect(201);
    let path = format!("{MAPS}/a");
    let patch = |length: usize| -> Value {
        let test = json!({"op": "test", "path": "/data/k", "value": "v"});
        std::iter::repeat_n(test, length).collect()
    };
    let refused = admin.patch(&path, "json-patch", &patch(OPERATIONS_MAX + 1)).await;
    assert_eq!(
        message(refused, 413),
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got \
         10001"
    );
    admin.patch(&path, "json-patch", &patch(OPERATIONS_MAX)).await.expect(200);
}

/// A request that gets no seat of its priority level in time is refused. Each level has one seat here. Other levels and
/// members of `system:masters` are not affected.
#[tokio::test(flavor = "multi_thread")]
async fn seats_of_a_level_are_limited() {
    let cluster = Cluster::start_with(|options, _| options.request_limits.seats_max = 1).await;
    let (admin, alice) = (cluster.admin(), cluster.alice());
    // A read of a state that does not exist yet waits three seconds for it.
    let slow = "/api/v1/namespaces?resourceVersion=99999999";
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    let binding = json!({"metadata": {"name": "alice"},
        "subjects": [{"kind": "User", "name": "alice"}],
        "roleRef": {"kind": "ClusterRole", "name": "cluster-admin"}});
    admin.post(bindings, &binding).await.expect(201);
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let alice = alice.clone();
        waiting.spawn(async move { alice.get(slow).await });
    }
    wait_for_metric(
        &admin,
        "apiserver_flowcontrol_current_executing_requests{flow_schema=\"global-default\",\
         priority_level=\"global-default\"} 1",
    )
    .await;
    // The wait for a seat takes at most a quarter of the time of the request.
    let refused = alice.get("/api/v1/namespaces?timeout=200ms").await;
    assert_eq!(refused.code, 429);
    assert_eq!(refused.text(), "Too many requests, please try again later.\n");
    assert_eq!(refused.headers["retry-after"], "1");
    assert!(refused.headers["content-type"].to_str().unwrap().starts_with("text/plain"));
    assert!(refused.headers.contains_key("x-kubernetes-pf-flowschema-uid"));
    // A watch needs a seat until it is initialized.
    let watch = "/api/v1/namespaces?watch=1";
    let (parts, body) = alice.begin(Method::GET, watch, &[], "").await;
    assert_eq!(parts.status, 200);
    admin.get("/api/v1/namespaces").await.expect(200);
    alice.get(&format!("{bindings}?timeout=10s")).await.expect(200);
    while let Some(answer) = waiting.join_next().await {
        assert_eq!(answer.unwrap().code, 504);
    }
    alice.get("/api/v1/namespaces").await.expect(200);
    drop(body.into_data_stream());
    wait_for_metric(
        &admin,
        "apiserver_flowcontrol_rejected_requests_total{flow_schema=\"global-default\",\
         priority_level=\"global-default\",reason=\"time-out\"} 1",
    )
    .await;
}

/// Waits until the metrics have a line.
async fn wait_for_metric(admin: &Client, line: &str) {
    for _ in 0..1_000 {
        let metrics = admin.get("/metrics").await.text();
        if metrics.lines().any(|own| own == line) {
            return;
        }
    }
    panic!("the metrics never have {line}");
}
