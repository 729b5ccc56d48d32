//! Objects that are small enough to be read and cost much to look at (attack A16).

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};

use super::grant_alice;
use crate::client::Client;
use crate::cluster::Cluster;

const CORE: &str = "/api/v1/namespaces/default";

/// The longest that one of these requests may take, in a build without optimizations on a busy machine.
/// Those that look at each pair of members, or copy a long key for each of them, take minutes.
const TIME_MAX: Duration = Duration::from_secs(15);

/// The longest answer, far below the size of a request.
const ANSWER_BYTES_MAX: usize = 256 << 10;

const LONG: usize = 1 << 20;

async fn writer(cluster: &Cluster) -> Client {
    let resources = ["configmaps", "pods", "services"];
    let rules = json!([{"verbs": ["*"], "apiGroups": [""], "resources": resources}]);
    grant_alice(cluster, "default", rules).await
}

/// Members `"{prefix}{number}":{value}`, separated by commas.
fn members(prefix: &str, count: usize, value: &str) -> String {
    let mut text = String::new();
    for number in 0..count {
        let comma = if number == 0 { "" } else { "," };
        let _ = write!(text, "{comma}\"{prefix}{number}\":{value}");
    }
    text
}

fn items(count: usize, item: impl Fn(usize) -> String) -> String {
    let items: Vec<String> = (0..count).map(item).collect();
    items.join(",")
}

/// Sends a body and checks the time and the size of the answer.
async fn attack(client: &Client, why: &str, method: Method, path: &str, body: String) -> u16 {
    assert!(body.len() < 3 << 20, "{why}: {} bytes are refused unread", body.len());
    let started = Instant::now();
    let answer = client.send(method, path, &[("content-type", "application/json")], body).await;
    let took = started.elapsed();
    assert!(took < TIME_MAX, "{why}: {took:?}");
    let n_bytes: usize =
        answer.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    assert!(n_bytes < 16 << 10, "{why}: {n_bytes} bytes of headers");
    if answer.code >= 400 {
        let n_bytes = answer.bytes.len();
        assert!(n_bytes < ANSWER_BYTES_MAX, "{why}: {n_bytes} bytes");
        let status = answer.json();
        assert_eq!(status["kind"], "Status", "{why}");
    }
    answer.code
}

/// A16: somebody else is served while a writer sends what costs most.
#[tokio::test(flavor = "multi_thread")]
async fn a16_long_keys_and_many_members_are_answered_shortly() {
    let cluster = Cluster::start().await;
    let alice = writer(&cluster).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let innocent = tokio::spawn({
        let (admin, is_over) = (cluster.admin(), Arc::clone(&is_over));
        async move {
            let mut n_served = 0;
            while !is_over.load(Ordering::Relaxed) {
                admin.get("/api/v1/namespaces/default").await.expect(200);
                n_served += 1;
            }
            n_served
        }
    });
    let long = "k".repeat(LONG);
    let named = |rest: &str| format!("{{\"metadata\":{{\"generateName\":\"x-\"}},{rest}}}");
    let metadata = |rest: &str| format!("{{\"metadata\":{{\"generateName\":\"x-\",{rest}}}}}");
    let twice = items(200_000, |_| "\"a\":1".to_owned());
    let owners = items(20_000, |n| {
        format!(
            "{{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"{n}\",\"uid\":\"{n}\",\"controller\":true}}"
        )
    });
    let containers = items(60_000, |n| format!("{{\"name\":\"c{n}\",\"image\":\"i\"}}"));
    let ports = items(60_000, |n| format!("{{\"name\":\"p{n}\",\"port\":1}}"));
    let (data, binary) = (members("d", 100_000, "\"\""), members("b", 100_000, "\"\""));
    for (why, resource, body, codes) in [
        (
            "a key of data",
            "configmaps",
            named(&format!("\"data\":{{\"{long}\":\"\"}}")),
            &[422][..],
        ),
        ("a label", "configmaps", metadata(&format!("\"labels\":{{\"{long}\":\"\"}}")), &[422]),
        ("a value", "configmaps", metadata(&format!("\"labels\":{{\"a\":\"{long}\"}}")), &[422]),
        (
            "an annotation",
            "configmaps",
            metadata(&format!("\"annotations\":{{\"{long}\":\"\"}}")),
            &[422],
        ),
        ("a finalizer", "configmaps", metadata(&format!("\"finalizers\":[\"{long}\"]")), &[422]),
        ("a name", "configmaps", format!("{{\"metadata\":{{\"name\":\"{long}\"}}}}"), &[422]),
        ("an unknown field", "configmaps", named(&format!("\"{long}\":1")), &[201]),
        (
            "fields that stand twice",
            "configmaps",
            named(&format!("\"{long}\":{{{twice}}}")),
            &[201],
        ),
        ("controllers", "configmaps", metadata(&format!("\"ownerReferences\":[{owners}]")), &[422]),
        (
            "keys of both maps",
            "configmaps",
            named(&format!("\"data\":{{{data}}},\"binaryData\":{{{binary}}}")),
            &[201, 413],
        ),
        (
            "containers",
            "pods",
            named(&format!("\"spec\":{{\"containers\":[{containers}]}}")),
            &[201, 413],
        ),
        ("ports", "services", named(&format!("\"spec\":{{\"ports\":[{ports}]}}")), &[201, 413]),
    ] {
        let path = format!("{CORE}/{resource}");
        let code = attack(&alice, why, Method::POST, &path, body).await;
        assert!(codes.contains(&code), "{why}: {code}");
    }
    is_over.store(true, Ordering::Relaxed);
    assert!(innocent.await.expect("an end") > 0);
}

/// A16: an object with 100,000 labels is an object: it is stored, found, changed and deleted.
#[tokio::test(flavor = "multi_thread")]
async fn a16_many_labels_are_labels() {
    let cluster = Cluster::start().await;
    let alice = writer(&cluster).await;
    let maps = format!("{CORE}/configmaps");
    let labels = members("l", 100_000, "\"\"");
    let body = format!("{{\"metadata\":{{\"name\":\"many\",\"labels\":{{{labels}}}}}}}");
    assert_eq!(attack(&alice, "labels", Method::POST, &maps, body).await, 201);
    let found = alice.get(&format!("{maps}?labelSelector=l99999")).await.expect(200);
    assert_eq!(found["items"].as_array().map(Vec::len), Some(1));
    let change = json!({"metadata": {"labels": {"l0": null}}});
    let changed = alice.patch(&format!("{maps}/many"), "merge-patch", &change).await.expect(200);
    assert_eq!(changed["metadata"]["labels"].as_object().map(serde_json::Map::len), Some(99_999));
    alice.delete(&format!("{maps}/many")).await.expect(200);
}

/// A16: finalizers of an object that is being deleted are compared with those that it had.
#[tokio::test(flavor = "multi_thread")]
async fn a16_many_finalizers_are_compared_once() {
    let cluster = Cluster::start().await;
    let alice = writer(&cluster).await;
    let maps = format!("{CORE}/configmaps");
    let finalizers = |letter: &str| -> Vec<Value> {
        (0..50_000).map(|number| json!(format!("a.io/{letter}{number}"))).collect()
    };
    let object = |letter: &str| {
        json!({"metadata": {"name": "held", "finalizers": finalizers(letter)}}).to_string()
    };
    assert_eq!(attack(&alice, "create", Method::POST, &maps, object("a")).await, 201);
    let held = format!("{maps}/held");
    alice.delete(&held).await.expect(200);
    assert_eq!(attack(&alice, "update", Method::PUT, &held, object("b")).await, 422);
}

/// A16: tolerations and scheduling gates of a pod are compared with those that it had.
#[tokio::test(flavor = "multi_thread")]
async fn a16_many_tolerations_and_gates_are_compared_once() {
    let cluster = Cluster::start().await;
    let alice = writer(&cluster).await;
    let named = |key: &str| -> Vec<Value> {
        (0..20_000).map(|number| json!({key: format!("a.io/{number}")})).collect()
    };
    let spec = json!({
        "containers": [{"name": "c", "image": "a"}],
        "tolerations": named("key"),
        "schedulingGates": named("name"),
    });
    let pod = json!({"metadata": {"name": "p"}, "spec": spec}).to_string();
    let pods = format!("{CORE}/pods");
    assert_eq!(attack(&alice, "create", Method::POST, &pods, pod).await, 201);
    let own = format!("{pods}/p");
    let mut stored = alice.get(&own).await.expect(200);
    stored["spec"]["containers"][0]["image"] = "b".into();
    let code = attack(&alice, "update", Method::PUT, &own, stored.to_string()).await;
    assert_eq!(code, 200);
}
