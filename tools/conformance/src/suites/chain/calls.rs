//! The calls that webhooks received during a step.

use fake_http::Request;
use serde_json::{Value, json};

/// Groups consecutive requests with the same body: they are the attempts of one call.
pub(super) fn group_attempts(webhook: &str, requests: &[Request]) -> Vec<Value> {
    let mut calls = Vec::new();
    for group in requests.chunk_by(|one, next| one.body == next.body) {
        let Some(first) = group.first() else { continue };
        let mut call = json!({
            "webhook": webhook,
            "attempts": group.len(),
            "uri": first.target,
            "body": body_text(&first.body),
        });
        // All recorded calls are POSTs of JSON, so only another method or type is shown.
        if let Some(odd) = group.iter().find(|request| !is_json_post(request)) {
            call["odd"] = format!("{} {:?}", odd.method, odd.header("content-type")).into();
        }
        calls.push(call);
    }
    calls
}

fn is_json_post(request: &Request) -> bool {
    request.method == "POST" && request.header("content-type") == Some("application/json")
}

/// A body as text with its members in order, so that an absent member differs from an empty one. Parsing and writing
/// it again makes the escapes uniform.
fn body_text(body: &[u8]) -> String {
    match serde_json::from_slice::<Value>(body) {
        Ok(value) => value.to_string(),
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    }
}

/// A recorded step whose bodies are texts in the form of [`body_text`].
pub(super) fn with_body_texts(expected: &Value) -> Value {
    let mut expected = expected.clone();
    for call in expected["calls"].as_array_mut().into_iter().flatten() {
        let text = call["body"].to_string();
        call["body"] = text.into();
    }
    expected
}
