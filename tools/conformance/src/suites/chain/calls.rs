//! The calls that webhooks received during a step.

use fake_http::Request;
use serde_json::{Value, json};

/// Consecutive requests with one body are one call with several attempts.
pub(super) fn grouped(webhook: &str, requests: &[Request]) -> Vec<Value> {
    let mut calls = Vec::new();
    for group in requests.chunk_by(|one, next| one.body == next.body) {
        let Some(first) = group.first() else { continue };
        let mut call = json!({
            "webhook": webhook,
            "attempts": group.len(),
            "uri": first.target,
            "body": exact(&first.body),
        });
        // Recorded calls are all alike in this, so only another one is shown.
        if let Some(odd) = group.iter().find(|request| !is_usual(request)) {
            call["odd"] = format!("{} {:?}", odd.method, odd.header("content-type")).into();
        }
        calls.push(call);
    }
    calls
}

fn is_usual(request: &Request) -> bool {
    request.method == "POST" && request.header("content-type") == Some("application/json")
}

/// A body as text, with its members in their order, so that an absent member differs from an empty
/// one. Escapes are those of one writer, for a character may be escaped or not.
fn exact(body: &[u8]) -> String {
    match serde_json::from_slice::<Value>(body) {
        Ok(value) => value.to_string(),
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    }
}

/// A recorded step with bodies in the same form.
pub(super) fn with_exact_bodies(expected: &Value) -> Value {
    let mut expected = expected.clone();
    for call in expected["calls"].as_array_mut().into_iter().flatten() {
        let text = call["body"].to_string();
        call["body"] = text.into();
    }
    expected
}
