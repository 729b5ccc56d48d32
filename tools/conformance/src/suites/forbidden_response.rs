//! `forbidden-response`: what a client sees of a decision.

use access_reviews::{AccessError, check_allowed};
use api_object::Status;
use authz::RequestInfo;
use serde_json::{Value, json};
use server::IntoStatus;

use super::Answer;
use super::decision::decision;
use super::question::user;
use crate::vectors::Vector;

pub(super) fn answer(vector: &Vector) -> Result<Answer, String> {
    let target = vector.text("target")?;
    let info =
        RequestInfo::new(vector.text("method")?, target).map_err(|error| error.to_string())?;
    let user = user(vector.body.get("user").unwrap_or(&Value::Null))?;
    let decision = decision(vector.member("authorizer")?)?;
    let got = match check_allowed(&info.attributes(user.as_ref()), target, &decision) {
        Ok(()) => json!({ "passed": true }),
        Err(AccessError::Forbidden(request)) => status_json(&request.into_status()),
        Err(AccessError::Unavailable(why)) => status_json(&why.into_status()),
        // The recorded texts are without the line feed that ends the body.
        Err(AccessError::EvaluationFailed(text)) => json!({
            "passed": false, "code": 500, "contentType": "text/plain; charset=utf-8",
            "text": text.strip_suffix('\n'),
        }),
    };
    Ok(Answer { want: vector.member("expect")?.clone(), got, warnings: Vec::new() })
}

fn status_json(status: &Status) -> Value {
    json!({
        "passed": false, "code": status.code, "contentType": "application/json",
        "body": serde_json::to_value(status).unwrap_or_default(),
    })
}

/// Every word is Kubernetes'.
pub(super) fn exact_length(text: &str) -> usize {
    text.len()
}
