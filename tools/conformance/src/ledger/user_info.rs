//! Differences in the reading of token files.

use serde_json::Value;

use crate::suites::AnswerPair;
use crate::vectors::Vector;

/// Portcullis ignores a group with an empty name.
pub(super) fn empty_group(vector: &Vector, _: &AnswerPair, want: &mut Value) -> bool {
    if !vector.body.contains_key("csv") {
        return false;
    }
    let mut has_changed = false;
    for user in want["users"].as_array_mut().into_iter().flatten() {
        if let Some(groups) = user.get_mut("groups").and_then(Value::as_array_mut) {
            let n_groups = groups.len();
            groups.retain(|group| group != "");
            has_changed |= groups.len() < n_groups;
        }
    }
    has_changed
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{LEDGER, Suite, VectorOutcome, judge};

    fn outcome(groups: &str, want: Value) -> VectorOutcome {
        let body = json!({
            "csv": format!("t,ana,1,\"{groups}\"\n"), "tokens": ["t"],
            "expect": {"users": [{"name": "ana", "uid": "1", "groups": want}]},
        });
        let body = body.as_object().cloned().unwrap();
        let vector = Vector { id: "v".to_owned(), feature: "f".to_owned(), body };
        judge(Suite::UserInfo, &vector, LEDGER).unwrap().outcome
    }

    #[test]
    fn only_the_empty_group_is_dropped() {
        assert_eq!(outcome("a", json!(["a"])), VectorOutcome::Passed);
        let agreed = VectorOutcome::Agreed(vec!["token-file-empty-group"]);
        assert_eq!(outcome("", json!([""])), agreed);
        assert_eq!(outcome("a,", json!(["a", ""])), agreed);
        assert!(matches!(outcome("a,", json!(["a", "", "b"])), VectorOutcome::Failed(_)));
    }
}
