//! Admission configurations that clients write.
//!
//! The crate `admission` tests every detail of their validation. These tests repeat the cases over
//! HTTP and check the responses.

mod ordering;
mod requests;
mod v1;
mod v1alpha1;

use admission::ConfigurationKind;
use serde_json::{Value, json};
use store::{ExpectedKeyState, Key, Put, Store};

use crate::client::{Answer, Client};
use crate::cluster::Cluster;
use crate::pattern;

/// The label of a case, the entries of a new object, and one pattern for each expected field error. An
/// object without field errors is created.
type Row = (&'static str, Value, Vec<String>);

fn path_of(kind: ConfigurationKind) -> String {
    format!("/apis/{}/{}/{}", ConfigurationKind::GROUP, kind.version(), kind.resource())
}

fn object(kind: ConfigurationKind, name: &str, entries: Value) -> Value {
    json!({"metadata": {"name": name}, (kind.entries_member_name()): entries})
}

/// A value with members set to other values; null removes one.
fn with(mut base: Value, changes: Value) -> Value {
    let own = base.as_object_mut().expect("an object");
    for (member, value) in changes.as_object().expect("an object") {
        match value {
            Value::Null => drop(own.shift_remove(member)),
            value => drop(own.insert(member.clone(), value.clone())),
        }
    }
    base
}

async fn create(client: &Client, kind: ConfigurationKind, name: &str, entries: Value) -> Answer {
    client.post(&path_of(kind), &object(kind, name, entries)).await
}

/// Replaces the entries of an object.
async fn replace(client: &Client, kind: ConfigurationKind, name: &str, entries: Value) -> Answer {
    let path = format!("{}/{name}", path_of(kind));
    let mut object = client.get(&path).await.expect(200);
    object[kind.entries_member_name()] = entries;
    client.put(&path, &object).await
}

/// Puts an object where the server stores it, as if an older one had accepted it.
async fn plant(cluster: &Cluster, kind: ConfigurationKind, name: &str, value: Vec<u8>) {
    let registry = api_resources::Registry::with_built_in_resources();
    let resource = registry.resource(ConfigurationKind::GROUP, kind.version(), kind.resource());
    let key = api_resources::object_key("/registry", resource.expect("served"), None, name)
        .expect("a key");
    let key = Key::new(&key).expect("a key");
    let put = Put {
        key,
        value: value.into(),
        expected_state: ExpectedKeyState::Absent,
        ttl: None,
        key_group_revision_action: None,
    };
    cluster.store.put(put).await.expect("a write");
}

/// The same with an object that can be read.
async fn plant_object(cluster: &Cluster, kind: ConfigurationKind, name: &str, entries: Value) {
    let mut planted = object(kind, name, entries);
    planted["apiVersion"] = format!("{}/{}", ConfigurationKind::GROUP, kind.version()).into();
    planted["kind"] = kind.name().into();
    planted["metadata"]["uid"] = "planted".into();
    planted["metadata"]["generation"] = 1.into();
    planted["metadata"]["creationTimestamp"] = "2026-11-15T18:02:38Z".into();
    plant(cluster, kind, name, planted.to_string().into_bytes()).await;
}

/// The field errors of an object, one text each.
#[track_caller]
fn faults(answer: &Answer) -> Vec<String> {
    let status = answer.json();
    assert_eq!(answer.code, 422, "{status}");
    assert_eq!(status["reason"], "Invalid", "{status}");
    let causes = status["details"]["causes"].as_array().expect("causes");
    let shown = |cause: &Value| {
        let text = |member: &str| cause[member].as_str().unwrap_or_default().to_owned();
        format!("{}: {}", text("field"), text("message"))
    };
    causes.iter().map(shown).collect()
}

/// Checks that a response lists exactly these field errors.
#[track_caller]
fn assert_faults(row: &str, answer: &Answer, want: &[String]) {
    let found = faults(answer);
    let mut differences = Vec::new();
    let (patterns, texts) = (Value::from(want.to_vec()), Value::from(found));
    pattern::check(&patterns, Some(&texts), row, &mut differences);
    assert!(differences.is_empty(), "{differences:?}\n{}", answer.text());
}

/// The texts of the warnings beside an answer.
fn warnings(answer: &Answer) -> Vec<String> {
    let texts = answer.headers.get_all("warning").iter().map(|value| {
        let text = value.to_str().expect("text");
        let text = text.strip_prefix("299 - \"").and_then(|text| text.strip_suffix('"'));
        text.expect("a warning of code 299").replace("\\\"", "\"").replace("\\\\", "\\")
    });
    texts.collect()
}

/// Creates an object for each row. A refused object is not stored, and an accepted one is.
async fn check(client: &Client, kind: ConfigurationKind, rows: Vec<Row>) {
    for (idx, (row, entries, want)) in rows.into_iter().enumerate() {
        let name = format!("row-{idx}");
        let answer = create(client, kind, &name, entries.clone()).await;
        let stored = client.get(&format!("{}/{name}", path_of(kind))).await;
        if want.is_empty() {
            assert_eq!(answer.code, 201, "{row} {entries}: {}", answer.text());
            assert_eq!(stored.json(), answer.json(), "{row}");
        } else {
            assert_faults(&format!("{row} {entries}"), &answer, &want);
            assert_eq!(stored.code, 404, "{row}");
        }
    }
}
