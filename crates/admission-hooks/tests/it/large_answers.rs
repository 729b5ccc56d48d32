//! Answers with very many parts, which fit into the limit on the bytes of an answer.

use admission_hooks::{HookRefusal, RESPONSE_BYTES_MAX};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::fixture::{Scene, allow, annotations, hook, peer, says};

/// The number of entries of each answer, as many as fit.
const N_ENTRIES: usize = 200_000;

/// A20: as many warnings as fit into an answer become as many as a client is sent, and each is compared with few.
#[tokio::test]
async fn a20_warnings_are_limited_in_number_and_length() {
    let distinct = |idx: usize| format!("warning number {idx}");
    // After the first ones, all are the same, and would be compared with all before.
    let repeated = |idx: usize| distinct(idx.min(1000));
    for texts in [
        (0..N_ENTRIES).map(distinct).collect::<Vec<_>>(),
        (0..N_ENTRIES).map(repeated).collect::<Vec<_>>(),
    ] {
        let mut response = allow();
        response["warnings"] = json!(texts);
        assert!(response.to_string().len() < RESPONSE_BYTES_MAX + (2 << 20));
        let peer = peer(says(cut_to_limit(response, "warnings")));
        let (_, notes) = Scene::new().validating("c", vec![hook("v.x.y", &peer)]).allowed().await;
        let n_chars: usize = notes.warnings.iter().map(|text| text.chars().count()).sum();
        assert!(n_chars <= 4096 + 256, "{n_chars}");
        assert_eq!(notes.warnings.first().map(String::as_str), Some("warning number 0"));
    }
}

/// A20: as many annotations as fit into an answer become as many as an audit event has room for.
#[tokio::test]
async fn a20_annotations_are_limited_in_number() {
    let mut response = allow();
    response["auditAnnotations"] =
        (0..N_ENTRIES).map(|idx| (format!("key{idx:06}"), json!(""))).collect();
    let peer = peer(says(cut_to_limit(response, "auditAnnotations")));
    let hooks = ["a.x.y", "b.x.y", "c.x.y", "d.x.y"].map(|name| hook(name, &peer)).to_vec();
    let (_, notes) = Scene::new().mutating("c", hooks).allowed().await;
    let all = annotations(&notes);
    let n_of = |hook: &str| all.keys().filter(|key| key.starts_with(hook)).count();
    assert_eq!(["a.x.y", "b.x.y", "c.x.y", "d.x.y"].map(n_of), [64, 64, 0, 0]);
    // The server's own annotations about each call are there nevertheless.
    let n_calls = all.keys().filter(|key| key.starts_with("mutation.webhook")).count();
    assert_eq!(n_calls, 4);
}

/// A20: a patch of a million operations is refused before one of them is applied.
#[tokio::test]
async fn a20_operations_of_a_patch_are_limited() {
    let operations = format!("[{}]", vec!["{}"; 1_000_000].join(","));
    let patch = STANDARD.encode(operations);
    assert!(patch.len() < RESPONSE_BYTES_MAX);
    let response = json!({"allowed": true, "patchType": "JSONPatch", "patch": patch});
    let peer = peer(says(response));
    let (refusal, _) = Scene::new().mutating("c", vec![hook("m.x.y", &peer)]).refused().await;
    assert!(matches!(refusal, HookRefusal::Internal(_)), "{refusal}");
    assert!(refusal.to_string().contains("1000000"), "{refusal}");
}

/// Removes entries of a member until the answer fits.
fn cut_to_limit(mut response: Value, member: &str) -> Value {
    while response.to_string().len() > RESPONSE_BYTES_MAX - 1024 {
        match &mut response[member] {
            Value::Array(items) => items.truncate(items.len() * 9 / 10),
            Value::Object(members) => {
                let kept = members.len() * 9 / 10;
                let keys: Vec<String> = members.keys().skip(kept).cloned().collect();
                keys.iter().for_each(|key| drop(members.remove(key)));
            }
            other => panic!("{other}"),
        }
    }
    response
}
