//! Differences in the calls of admission webhooks.

use serde_json::Value;

use crate::suites::AnswerPair;
use crate::vectors::Vector;

/// The admitted object has the version of the request, even if the webhook reviewed another version.
pub(super) fn shown_version(vector: &Vector, _: &AnswerPair, want: &mut Value) -> bool {
    let Some(request) = vector.body.get("request") else { return false };
    let own = &request["object"]["apiVersion"];
    let calls = want["calls"].as_array().into_iter().flatten();
    let mut shown = calls.map(|call| &call["body"]["request"]["object"]["apiVersion"]);
    let recorded = &want["object"]["apiVersion"];
    let applies = recorded.is_string() && recorded != own && shown.any(|it| it == recorded);
    if applies {
        want["object"]["apiVersion"] = own.clone();
    }
    applies
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn amended(recorded: &str, shown: &str) -> Option<Value> {
        let body = json!({"request": {"object": {"apiVersion": "g/v1"}}});
        let body = body.as_object().cloned().unwrap();
        let vector = Vector { id: "v".to_owned(), feature: "f".to_owned(), body };
        let call = json!({"body": {"request": {"object": {"apiVersion": shown}}}});
        let mut want = json!({"object": {"apiVersion": recorded, "x": 1}, "calls": [call]});
        let answer = AnswerPair { want: Value::Null, got: Value::Null, warnings: Vec::new() };
        shown_version(&vector, &answer, &mut want).then(|| want["object"].clone())
    }

    #[test]
    fn the_rule_explains_the_version_of_the_review_only() {
        assert_eq!(amended("g/v2", "g/v2"), Some(json!({"apiVersion": "g/v1", "x": 1})));
        assert_eq!(amended("g/v3", "g/v2"), None);
        assert_eq!(amended("g/v1", "g/v2"), None);
    }
}
