//! `forbidden-response`: the response to a request that is not allowed.

use access_reviews::{AccessError, check_allowed};
use api_object::Status;
use authz::RequestInfo;
use serde_json::{Value, json};
use server::IntoStatus;

use super::AnswerPair;
use super::decision::parse_decision;
use super::recorded_attributes::parse_user;
use crate::vectors::{UnusableVector, Vector};

pub(super) fn answer_vector(vector: &Vector) -> Result<AnswerPair, UnusableVector> {
    let target = vector.text("target")?;
    let info = RequestInfo::new(vector.text("method")?, target).map_err(UnusableVector::new)?;
    let user = parse_user(vector.body.get("user").unwrap_or(&Value::Null))?;
    let decision = parse_decision(vector.member("authorizer")?)?;
    let got = match check_allowed(&info.to_attributes_for_user(user.as_ref()), target, &decision) {
        Ok(()) => json!({ "passed": true }),
        Err(AccessError::Forbidden(request)) => status_json(&request.into_status()),
        Err(AccessError::Unavailable(why)) => status_json(&why.into_status()),
        // The recorded texts are without the line feed that ends the body.
        Err(AccessError::EvaluationFailed(text)) => json!({
            "passed": false, "code": 500, "contentType": "text/plain; charset=utf-8",
            "text": text.strip_suffix('\n'),
        }),
    };
    Ok(AnswerPair { want: vector.member("expect")?.clone(), got, warnings: Vec::new() })
}

fn status_json(status: &Status) -> Value {
    json!({
        "passed": false, "code": status.code, "contentType": "application/json",
        "body": serde_json::to_value(status).unwrap_or_default(),
    })
}

/// Kubernetes writes every text, so all of it must agree.
pub(super) fn exact_length(text: &str) -> usize {
    text.len()
}
