//! `rbac-escalation`: whether a user who holds some rules may grant others.

use authz_rbac::{CHECK_STEPS_MAX, EscalationRefusal, HeldRules, check_rules_held};
use manifests::rbac::{decode_rbac_rules, encode_rbac_rule};
use serde_json::{Value, json};

use super::AnswerPair;
use super::recorded_attributes::parse_user;
use crate::vectors::{UnusableVector, Vector};

pub(super) fn answer_vector(vector: &Vector) -> Result<AnswerPair, UnusableVector> {
    let rules = |key| -> Result<_, UnusableVector> {
        decode_rbac_rules(vector.member(key)?).map_err(UnusableVector::new)
    };
    let user = parse_user(vector.member("user")?)?.unwrap_or_default();
    let (owned, wanted) = (rules("ownerRules")?, rules("requestedRules")?);
    let held = HeldRules { roles: vec![&owned], role_lookup_errors: Vec::new() };
    let got = match check_rules_held(&user, held, &wanted, CHECK_STEPS_MAX) {
        Ok(()) => json!({"covered": true}),
        Err(EscalationRefusal::NotHeld(refusal)) => {
            let uncovered: Result<Vec<Value>, _> =
                refusal.rules.iter().map(encode_rbac_rule).collect();
            json!({
                "covered": false,
                "uncovered": uncovered.map_err(UnusableVector::new)?,
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
    Ok(AnswerPair { want: want.into(), got, warnings: Vec::new() })
}

/// Kubernetes writes every text, so all of it must agree.
pub(super) fn exact_length(text: &str) -> usize {
    text.len()
}
