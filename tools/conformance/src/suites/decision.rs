//! The decision that the authorizer of a vector gives to every request.

use crate::vectors::UnusableVector;
use authz::{Decision, EvaluationErrors};
use serde_json::Value;

/// Reads the `authorizer` of a vector.
pub(super) fn parse_decision(authorizer: &Value) -> Result<Decision, UnusableVector> {
    let text = |key: &str| authorizer[key].as_str().unwrap_or_default().to_owned();
    let reason = text("reason");
    let decision = match text("decision").as_str() {
        "allow" => Decision::allow(reason),
        "deny" => Decision::deny(reason),
        "noOpinion" => Decision::no_opinion(reason),
        other => return Err(UnusableVector::new(format!("`{other}` is no decision"))),
    };
    match text("error") {
        error if error.is_empty() => Ok(decision),
        error => Ok(decision.with_error(EvaluationErrors::message(error))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use authz::Verdict;
    use serde_json::json;

    #[test]
    fn all_parts_are_read() {
        let found =
            parse_decision(&json!({"decision": "deny", "reason": "r", "error": "e"})).unwrap();
        assert_eq!((found.verdict, found.reason.to_string()), (Verdict::Deny, "r".to_owned()));
        assert_eq!(found.error.unwrap().to_string(), "e");
        assert!(parse_decision(&json!({"decision": "noOpinion"})).unwrap().error.is_none());
        assert!(parse_decision(&json!({"decision": "maybe"})).is_err());
    }
}
