//! Requests whose clients hang up: the server records each request that it received to its end.

mod senders;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use self::senders::{Aborted, send_over_http1, send_over_http2};
use crate::cluster::{Cluster, write_audit_log};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

/// All requests, without their bodies.
const POLICY: &str = r#"{
    "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]
}"#;

/// How many requests are aborted; `cargo xtask abort` aborts many more.
fn n_requests() -> usize {
    std::env::var("PORTCULLIS_ABORTED_REQUESTS")
        .map_or(1_200, |text| text.parse().expect("a number"))
}

async fn audited() -> Cluster {
    Cluster::start_with(|options, folder| write_audit_log(options, folder, POLICY)).await
}

/// Returns every kind of request by turns. The number makes each name and audit id unique.
fn request(n: usize) -> Aborted {
    let name = format!("x{n}");
    let old = format!("old{}", n % 40);
    let map = |name: &str| json!({"metadata": {"name": name}, "data": {"k": name}});
    let binding = json!({"metadata": {"name": name},
        "subjects": [{"kind": "User", "name": "mallory"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "cluster-admin"}});
    let review = json!({"spec": {"user": "alice",
        "resourceAttributes": {"verb": "get", "resource": "pods"}}});
    let reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let own = |method: &'static str, path: String, body: Value| {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let id = format!("abort-{n}");
        Aborted { id, method, path, body, delay: Duration::from_micros((n * 613 % 3_000) as u64) }
    };
    match n % 12 {
        0 => own("POST", MAPS.to_owned(), map(&name)),
        1 => own("PUT", format!("{MAPS}/{old}"), map(&old)),
        2 => own("PATCH", format!("{MAPS}/{old}"), json!({"data": {"n": name}})),
        3 => own("DELETE", format!("{MAPS}/old{}", n % 400), Value::Null),
        4 => own("DELETE", "/api/v1/namespaces/kube-public/configmaps".to_owned(), Value::Null),
        5 => own("GET", MAPS.to_owned(), Value::Null),
        6 => own("GET", format!("{MAPS}/{old}"), Value::Null),
        7 => own("GET", format!("{MAPS}?watch=1&timeoutSeconds=60"), Value::Null),
        8 => own("POST", reviews.to_owned(), review),
        9 => {
            own("POST", "/api/v1/namespaces/default/serviceaccounts/sa/token".to_owned(), json!({}))
        }
        10 => own("POST", BINDINGS.to_owned(), binding),
        _ => own("POST", "/api/v1/namespaces".to_owned(), json!({"metadata": {"name": name}})),
    }
}

fn events(cluster: &Cluster) -> Vec<Value> {
    let text = std::fs::read_to_string(cluster.folder().join("audit.log")).expect("a log");
    // The last line may be on its way.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let lines = whole.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    // Requests of the server to itself are not counted.
    lines.filter(|event: &Value| event["user"]["username"] != "system:apiserver").collect()
}

/// How often each request has an event of a stage.
fn counted(events: &[Value], stage: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for event in events.iter().filter(|event| event["stage"] == stage) {
        let id = event["auditID"].as_str().expect("an id").to_owned();
        *counts.entry(id).or_default() += 1;
    }
    counts
}

/// Waits until each request that was received is recorded to its end.
async fn settled(cluster: &Cluster) -> Vec<Value> {
    let begun = std::time::Instant::now();
    loop {
        let events = events(cluster);
        let received = counted(&events, "RequestReceived");
        let complete = counted(&events, "ResponseComplete");
        if received.keys().eq(complete.keys()) {
            return events;
        }
        if begun.elapsed() > Duration::from_secs(20) {
            let open: BTreeSet<_> =
                received.keys().filter(|id| !complete.contains_key(*id)).collect();
            panic!("{} of {} requests have no last event: {open:?}", open.len(), received.len());
        }
        crate::polling::pause().await;
    }
}

/// The sum of `apiserver_request_total`.
async fn n_counted(cluster: &Cluster) -> usize {
    let text = cluster.admin().get("/metrics").await.text();
    let lines = text.lines().filter(|line| line.starts_with("apiserver_request_total{"));
    let counts = lines.map(|line| line.rsplit(' ').next().unwrap().parse::<usize>().unwrap());
    counts.sum()
}

/// A14: of 300 creates whose connection was closed within 2 ms, 213 had no event, no line and no metric.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_request_that_was_received_is_recorded_once_though_its_client_hangs_up() {
    let cluster = audited().await;
    let admin = cluster.admin();
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    admin.post(accounts, &json!({"metadata": {"name": "sa"}})).await.expect(201);
    for n in 0..400 {
        let old = json!({"metadata": {"name": format!("old{n}")}});
        if n < 40 || n % 12 == 3 {
            admin.post(MAPS, &old).await.expect(201);
        }
    }
    let n_before = settled(&cluster).await.len();
    let (ones, twos): (Vec<_>, Vec<_>) = (0..n_requests()).partition(|n| n / 12 % 2 == 0);
    let begun = std::time::Instant::now();
    let n_sent = ones.len() + twos.len();
    tokio::join!(
        send_over_http1(&admin, ones.into_iter().map(request).collect()),
        send_over_http2(&admin, twos.into_iter().map(request).collect()),
    );
    let took = begun.elapsed();
    let events = settled(&cluster).await;

    let complete: Vec<&Value> =
        events.iter().filter(|event| event["stage"] == "ResponseComplete").collect();
    for event in &complete {
        assert!(event["responseStatus"]["code"].as_u64().is_some(), "{event}");
        assert_eq!(event["user"]["username"], "admin", "{event}");
    }
    let counts = counted(&events, "ResponseComplete");
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
    let n_received = counts.keys().filter(|id| id.starts_with("abort-")).count();
    // If this fails, the server received no request before its client hung up, and the test proves
    // nothing.
    assert!(n_received * 10 > n_sent * 6, "{n_received} of {n_sent} were received");
    assert!(events.len() > n_before);

    // Each stored object was recorded as stored, under the id of its request.
    let mut stored = BTreeSet::new();
    for path in [MAPS, BINDINGS, "/api/v1/namespaces"] {
        let list = admin.get(path).await.expect(200);
        let names = list["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["name"]);
        let numbers = names.filter_map(|name| name.as_str().unwrap().strip_prefix('x'));
        stored.extend(numbers.map(|number| format!("abort-{number}")));
    }
    let made = complete.iter().filter(|event| {
        let is_kept = ["configmaps", "clusterrolebindings", "namespaces"]
            .iter()
            .any(|resource| event["objectRef"]["resource"] == *resource);
        is_kept && event["verb"] == "create" && event["responseStatus"]["code"] == 201
    });
    let made = made.map(|event| event["auditID"].as_str().unwrap().to_owned());
    let made: BTreeSet<String> = made.filter(|id| id.starts_with("abort-")).collect();
    let unseen: Vec<_> = stored.difference(&made).collect();
    assert!(unseen.is_empty(), "stored unseen: {unseen:?}");
    let lost: Vec<_> = made.difference(&stored).collect();
    assert!(lost.is_empty(), "recorded and not stored: {lost:?}");
    assert!(!stored.is_empty());

    // And each of them was counted.
    for _ in 0..100 {
        let n_complete = counted(&self::events(&cluster), "ResponseComplete").len();
        if n_counted(&cluster).await == n_complete {
            println!("{n_received} of {n_sent} received, {} stored, in {took:?}", stored.len());
            return;
        }
    }
    panic!("events and metrics count different requests");
}

/// The request of a creator who waits for initializers and hangs up is recorded at its deadline.
#[tokio::test(flavor = "multi_thread")]
async fn a_creator_who_does_not_wait_for_initializers_is_recorded() {
    let cluster = audited().await;
    let admin = cluster.admin();
    let rules = json!([{"apiGroups": [""], "apiVersions": ["*"], "resources": ["configmaps"]}]);
    let configuration =
        json!({"metadata": {"name": "a"}, "initializers": [{"name": "a.x.y", "rules": rules}]});
    let path = "/apis/admissionregistration.k8s.io/v1alpha1/initializerconfigurations";
    admin.post(path, &configuration).await.expect(201);
    let creation = Aborted {
        id: "creator".to_owned(),
        method: "POST",
        path: format!("{MAPS}?timeout=2s"),
        body: json!({"metadata": {"name": "m"}}).to_string(),
        delay: Duration::from_millis(500),
    };
    let first = request(5);
    let sending = send_over_http1(&admin, vec![first, creation]);
    let receiving = async {
        while !counted(&events(&cluster), "RequestReceived").contains_key("creator") {
            crate::polling::pause().await;
        }
    };
    tokio::join!(sending, tokio::time::timeout(Duration::from_secs(20), receiving)).1.unwrap();
    let events = settled(&cluster).await;
    let own: Vec<_> = events.iter().filter(|event| event["auditID"] == "creator").collect();
    assert_eq!(own.len(), 2, "{own:?}");
    assert_eq!(own[1]["responseStatus"]["code"], 504);
    assert_eq!(own[1]["objectRef"]["name"], "m");
    let path = format!("{MAPS}/m?includeUninitialized=true");
    admin.get(&path).await.expect(200);
}

/// A server that stops at once cancels its tasks; the outcome of their requests is recorded as
/// unknown.
#[test]
fn a_request_that_is_cancelled_is_recorded_as_unknown() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    // A read of a state that does not exist yet is kept waiting for it.
    let slow = format!("{MAPS}?resourceVersion=99999999");
    let cluster = runtime.block_on(async {
        let cluster = audited().await;
        let admin = cluster.admin();
        tokio::spawn(async move {
            admin.send(http::Method::GET, &slow, &[("audit-id", "slow")], "").await
        });
        while !counted(&events(&cluster), "RequestReceived").contains_key("slow") {
            crate::polling::pause().await;
        }
        cluster
    });
    runtime.shutdown_timeout(Duration::from_secs(10));
    let events = events(&cluster);
    let own: Vec<_> = events.iter().filter(|event| event["auditID"] == "slow").collect();
    assert_eq!(own.len(), 2, "{own:?}");
    assert_eq!(own[1]["stage"], "ResponseComplete");
    assert_eq!(own[1]["responseStatus"]["code"], 504);
    assert_eq!(own[1]["responseStatus"]["reason"], "Timeout");
}
