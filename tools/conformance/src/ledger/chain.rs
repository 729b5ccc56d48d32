//! Differences in the error messages of authorization webhooks that fail.

use serde_json::Value;

use crate::suites::AnswerPair;
use crate::vectors::Vector;

/// The error does not repeat the body of an unsuccessful response that is plain text.
pub(super) fn repeated_body(vector: &Vector, _: &AnswerPair, want: &mut Value) -> bool {
    let webhooks = vector.body.get("webhooks").and_then(Value::as_object).into_iter().flatten();
    let responses = webhooks.flat_map(|(_, it)| it["responses"].as_array().into_iter().flatten());
    let webhook_errors: Vec<(String, String)> = responses.filter_map(webhook_errors).collect();
    let mut applies = false;
    for step in want.as_array_mut().into_iter().flatten() {
        let Some(error) = step.get_mut("error") else { continue };
        let found = webhook_errors.iter().find(|(by_kubernetes, _)| error == by_kubernetes);
        if let Some((_, by_us)) = found {
            *error = by_us.as_str().into();
            applies = true;
        }
    }
    applies
}

/// Returns Kubernetes' error message for a response whose body it repeats, and our message.
fn webhook_errors(response: &Value) -> Option<(String, String)> {
    let code = response["status"].as_u64()?;
    let body = response["body"].as_str()?.trim_ascii();
    if !response["contentType"].as_str()?.starts_with("text/") {
        return None;
    }
    let code_alone = format!(
        "the server responded with the status code {code} but did not return more information"
    );
    let quoted = |body: &str| {
        format!("an error on the server ({body:?}) has prevented the request from succeeding")
    };
    match code {
        403 | 415 => Some((body.to_owned(), code_alone)),
        503 | 504 => None,
        500.. => Some((quoted(body), quoted("unknown"))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn amended(response: Value, error: &str) -> Option<Value> {
        let body = json!({"webhooks": {"w": {"responses": [response]}}});
        let body = body.as_object().cloned().unwrap();
        let vector = Vector { id: "v".to_owned(), feature: "f".to_owned(), body };
        let mut want = json!([{"error": error, "x": 1}]);
        let answer = AnswerPair { want: Value::Null, got: Value::Null, warnings: Vec::new() };
        repeated_body(&vector, &answer, &mut want).then(|| want[0]["error"].clone())
    }

    #[test]
    fn the_rule_explains_omitted_text_bodies_only() {
        let words = |body: &str| {
            format!("an error on the server (\"{body}\") has prevented the request from succeeding")
        };
        let text =
            |status: u16| json!({"status": status, "contentType": "text/plain", "body": "b"});
        assert_eq!(amended(text(500), &words("b")), Some(json!(words("unknown"))));
        assert_eq!(amended(text(500), &words("c")), None);
        assert_eq!(amended(text(503), &words("b")), None);
        let code =
            "the server responded with the status code 403 but did not return more information";
        assert_eq!(amended(text(403), "b"), Some(json!(code)));
        assert_eq!(amended(text(404), "b"), None);
        let status = json!({"status": 500, "contentType": null, "body": "b"});
        assert_eq!(amended(status, &words("b")), None);
    }
}
