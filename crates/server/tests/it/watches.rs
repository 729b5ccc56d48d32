//! The events of watches, their order, and the end of the stream.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::Events;
use crate::cluster::Cluster;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Type, name and version of an event.
fn seen(event: &Value) -> (&str, &str, u64) {
    let metadata = &event["object"]["metadata"];
    let version = metadata["resourceVersion"].as_str().expect("a version");
    (
        event["type"].as_str().expect("a type"),
        metadata["name"].as_str().unwrap_or_default(),
        version.parse().expect("a number"),
    )
}

fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

async fn expect_end(mut events: Events) {
    assert_eq!(events.next().await, None);
}

/// A watch sends the creation, the change and the deletion of an object; the deletion has a
/// revision of its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_watch_tells_what_happens_after_its_revision() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    admin.post(MAPS, &json!({"metadata": {"name": "before"}})).await.expect(201);
    let start = version(&admin.get(MAPS).await.expect(200));
    let mut events = admin.watch(&format!("{MAPS}?watch=1&resourceVersion={start}")).await;
    let path = format!("{MAPS}/a");
    let made = admin.post(MAPS, &json!({"metadata": {"name": "a"}})).await.expect(201);
    let event = events.next().await.unwrap();
    assert_eq!(event["object"], made);
    assert_eq!(seen(&event), ("ADDED", "a", version(&made)));
    let body = json!({"metadata": {"name": "a"}, "data": {"k": "v"}});
    let changed = admin.put(&path, &body).await.expect(200);
    let event = events.next().await.unwrap();
    assert_eq!(event["object"], changed);
    assert_eq!(seen(&event), ("MODIFIED", "a", version(&changed)));
    admin.delete(&path).await.expect(200);
    let event = events.next().await.unwrap();
    let (kind, name, deleted) = seen(&event);
    assert_eq!((kind, name), ("DELETED", "a"));
    assert_eq!(event["object"]["data"], json!({"k": "v"}));
    assert!(deleted > version(&changed));
    assert!(deleted <= version(&admin.get(MAPS).await.expect(200)));
}

/// A watch with a label selector shows an object that loses the label as deleted, and one that
/// gains it as added.
#[tokio::test(flavor = "multi_thread")]
async fn a_label_that_leaves_and_returns() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let labelled = json!({"metadata": {"name": "a", "labels": {"l": "1"}}});
    let made = admin.post(MAPS, &labelled).await.expect(201);
    let start = version(&made);
    let path = format!("{MAPS}?watch=1&resourceVersion={start}&labelSelector=l%3D1");
    let mut events = admin.watch(&path).await;
    admin.post(MAPS, &json!({"metadata": {"name": "other"}})).await.expect(201);
    let object = format!("{MAPS}/a");
    let left = admin.put(&object, &json!({"metadata": {"name": "a"}})).await.expect(200);
    let event = events.next().await.unwrap();
    assert_eq!(seen(&event), ("DELETED", "a", version(&left)));
    assert_eq!(event["object"]["metadata"]["labels"], json!({"l": "1"}));
    let returned = admin.put(&object, &labelled).await.expect(200);
    let event = events.next().await.unwrap();
    assert_eq!(seen(&event), ("ADDED", "a", version(&returned)));
}

/// A watch without a revision first sends the existing objects; it ends at its timeout.
#[tokio::test(flavor = "multi_thread")]
async fn a_watch_without_revision_begins_with_what_exists() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    for name in ["a", "b"] {
        admin.post(MAPS, &json!({"metadata": {"name": name}})).await.expect(201);
    }
    let mut events = admin.watch(&format!("{MAPS}?watch=1&timeoutSeconds=1")).await;
    for name in ["a", "b"] {
        let event = events.next().await.unwrap();
        assert_eq!((seen(&event).0, seen(&event).1), ("ADDED", name));
        assert_eq!(event["object"]["kind"], "ConfigMap");
        assert_eq!(event["object"]["apiVersion"], "v1");
    }
    expect_end(events).await;
}

/// A watch with sendInitialEvents marks the end of the existing objects by a bookmark.
#[tokio::test(flavor = "multi_thread")]
async fn initial_events_end_in_a_marked_bookmark() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    admin.post(MAPS, &json!({"metadata": {"name": "a"}})).await.expect(201);
    let newest = version(&admin.get(MAPS).await.expect(200));
    let path = format!(
        "{MAPS}?watch=1&sendInitialEvents=true&allowWatchBookmarks=true\
         &resourceVersionMatch=NotOlderThan&resourceVersion={newest}"
    );
    let mut events = admin.watch(&path).await;
    assert_eq!(seen(&events.next().await.unwrap()).0, "ADDED");
    let bookmark = events.next().await.unwrap();
    let (kind, name, at) = seen(&bookmark);
    assert_eq!((kind, name), ("BOOKMARK", ""));
    assert!(at >= newest);
    assert_eq!(bookmark["object"]["kind"], "ConfigMap");
    let mark = &bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"];
    assert_eq!(mark, "true");
    admin.post(MAPS, &json!({"metadata": {"name": "b"}})).await.expect(201);
    let event = events.next().await.unwrap();
    assert_eq!((seen(&event).0, seen(&event).1), ("ADDED", "b"));
    let future = format!(
        "{MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
         &resourceVersion=99999999"
    );
    let mut events = admin.watch(&future).await;
    let event = events.next().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(504)));
    expect_end(events).await;
}

/// Only the first event of a table contains its columns.
#[tokio::test(flavor = "multi_thread")]
async fn only_the_first_table_of_a_watch_has_columns() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    for name in ["a", "b"] {
        admin.post(MAPS, &json!({"metadata": {"name": name}})).await.expect(201);
    }
    let accept = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let mut events = admin.watch_with(&format!("{MAPS}?watch=1"), &accept).await;
    for name in ["a", "b"] {
        let table = events.next().await.unwrap()["object"].take();
        assert_eq!(table["kind"], "Table");
        assert_eq!(table["rows"][0]["cells"][0], name);
        assert_eq!(table["rows"].as_array().map(Vec::len), Some(1));
        assert_eq!(table["columnDefinitions"].is_array(), name == "a", "{table}");
        assert!(table["columnDefinitions"].is_array() || table["columnDefinitions"].is_null());
    }
}

/// An idle watch sends bookmarks.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_watch_keeps_up_with_the_store() {
    let cluster = Cluster::start_with(|options, _| {
        options.api_settings.bookmark_interval = Duration::from_millis(200);
    })
    .await;
    let admin = cluster.admin();
    let start = version(&admin.get(MAPS).await.expect(200));
    let path = format!("/api/v1/secrets?watch=1&allowWatchBookmarks=true&resourceVersion={start}");
    let mut events = admin.watch(&path).await;
    let made = admin.post(MAPS, &json!({"metadata": {"name": "a"}})).await.expect(201);
    // A bookmark may have been due before the write.
    loop {
        let event = events.next().await.unwrap();
        let (kind, _, at) = seen(&event);
        assert_eq!(kind, "BOOKMARK");
        assert_eq!(event["object"]["kind"], "Secret");
        if at >= version(&made) {
            break;
        }
    }
}

/// A client that resumes where it was misses nothing and sees nothing twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_watch_resumes_after_a_restart() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let start = version(&admin.get(MAPS).await.expect(200));
    let mut events = admin.watch(&format!("{MAPS}?watch=1&resourceVersion={start}")).await;
    for name in ["a", "b", "c"] {
        admin.post(MAPS, &json!({"metadata": {"name": name}})).await.expect(201);
    }
    let first = events.next().await.unwrap();
    assert_eq!(seen(&first).1, "a");
    let last = seen(&first).2;
    let cluster = cluster.restart().await;
    let admin = cluster.admin();
    let mut events = admin.watch(&format!("{MAPS}?watch=1&resourceVersion={last}")).await;
    admin.post(MAPS, &json!({"metadata": {"name": "d"}})).await.expect(201);
    let mut before = last;
    for name in ["b", "c", "d"] {
        let event = events.next().await.unwrap();
        let (kind, own, at) = seen(&event);
        assert_eq!((kind, own), ("ADDED", name));
        assert!(at > before);
        before = at;
    }
}

/// An event is encoded once for all watches of one form. A watch that may not see it, or wants another form, does not
/// get those bytes.
#[tokio::test(flavor = "multi_thread")]
async fn a_shared_encoding_shows_nobody_more() {
    let cluster = Cluster::start().await;
    let (admin, alice) = (cluster.admin(), cluster.alice());
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["watch"],
        "resourceNames": ["hers"]}]);
    let group = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let role = json!({"metadata": {"name": "hers"}, "rules": rules});
    admin.post(&format!("{group}/roles"), &role).await.expect(201);
    let binding = json!({"metadata": {"name": "hers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "hers"},
        "subjects": [{"kind": "User", "name": "alice"}]});
    admin.post(&format!("{group}/rolebindings"), &binding).await.expect(201);
    let watch = format!("{MAPS}?watch=1&resourceVersion=0");
    let only = format!("{watch}&fieldSelector=metadata.name%3Dhers");
    assert_eq!(alice.get(&watch).await.code, 403);
    let mut whole = [admin.watch(&watch).await, admin.watch(&watch).await];
    let mut hers = alice.watch(&only).await;
    let partial = [("accept", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")];
    let table = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let mut partial = admin.watch_with(&watch, &partial).await;
    let mut table = admin.watch_with(&watch, &table).await;
    let path = format!("{MAPS}/hers");
    let other = json!({"metadata": {"name": "other"}, "data": {"k": "secret"}});
    let own = json!({"metadata": {"name": "hers"}, "data": {"k": "1"}});
    let changed = json!({"metadata": {"name": "hers"}, "data": {"k": "2"}});
    let made = [
        ("ADDED", admin.post(MAPS, &other).await.expect(201)),
        ("ADDED", admin.post(MAPS, &own).await.expect(201)),
        ("MODIFIED", admin.put(&path, &changed).await.expect(200)),
    ];
    for (event_type, object) in &made {
        let want = json!({"type": event_type, "object": object});
        for events in &mut whole {
            assert_eq!(events.next().await.unwrap(), want);
        }
        let event = partial.next().await.unwrap();
        assert_eq!(event["object"]["kind"], "PartialObjectMetadata");
        assert_eq!(event["object"]["metadata"], object["metadata"]);
        assert_eq!(event["object"]["data"], Value::Null);
        assert_eq!(table.next().await.unwrap()["object"]["kind"], "Table");
        if object["metadata"]["name"] == "hers" {
            assert_eq!(hers.next().await.unwrap(), want);
        }
    }
}
