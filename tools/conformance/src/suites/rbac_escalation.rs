//! `rbac-escalation`: may somebody who holds some rules grant others?

use authz_rbac::{CHECK_STEPS_MAX, EscalationRefusal, HeldRules, check_rules_held};
use manifests::rbac::{decode_rules, encode_rule};
use serde_json::{Value, json};

use super::Answer;
use super::question::user;
use crate::vectors::Vector;

pub(super) fn answer(vector: &Vector) -> Result<Answer, String> {
    let rules = |key| -> Result<_, String> {
        decode_rules(vector.member(key)?).map_err(|error| error.to_string())
    };
    let asker = user(vector.member("user")?)?.unwrap_or_default();
    let (owned, wanted) = (rules("ownerRules")?, rules("requestedRules")?);
    let held = HeldRules { roles: vec![&owned], role_lookup_errors: Vec::new() };
    let got = match check_rules_held(&asker, held, &wanted, CHECK_STEPS_MAX) {
        Ok(()) => json!({"covered": true}),
        Err(EscalationRefusal::NotHeld(refusal)) => {
            let uncovered: Result<Vec<Value>, _> = refusal.rules.iter().map(encode_rule).collect();
            json!({
                "covered": false,
                "uncovered": uncovered.map_err(|error| error.to_string())?,
                "message": refusal.to_string(),
            })
        }
        Err(other) => json!({"covered": false, "message": other.to_string()}),
    };
    let expected = ["covered", "uncovered", "message"];
    let want: serde_json::Map<String, Value> = expected
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), vector.body.get(key)?.clone())))
        .collect();
    Ok(Answer { want: want.into(), got, warnings: Vec::new() })
}

/// Every text is written by Kubernetes itself.
pub(super) fn exact_length(text: &str) -> usize {
    text.len()
}
