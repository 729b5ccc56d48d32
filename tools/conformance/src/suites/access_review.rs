//! `access-review`: creating an access review.

use access_reviews::{
    AccessReview, PlainSubjectAccessReview, PreparedReview, ReviewKind, ReviewRequest,
    prepare_review,
};
use api_object::Status;
use authz::Attributes;
use jiff::Timestamp;
use serde_json::{Value, json};
use server::IntoStatus;

use super::AnswerPair;
use super::decision::parse_decision;
use super::recorded_attributes::parse_user;
use super::request_attributes::attributes;
use crate::compare::length_through;
use crate::vectors::{UnusableVector, Vector};

const VERSION: &str = "v1";
/// The words of a message before the text of a decoder.
const NOT_DECODED: &str = "cannot be handled as a ";

pub(super) fn answer_vector(vector: &Vector) -> Result<AnswerPair, UnusableVector> {
    let object = vector.member("object")?;
    let name = object["kind"].as_str().unwrap_or_default();
    let kind = ReviewKind::ALL.into_iter().find(|kind| kind.name() == name);
    let kind = kind.ok_or_else(|| UnusableVector::new(format!("`{name}` is no kind of review")))?;
    let requestor = parse_user(vector.body.get("requestor").unwrap_or(&Value::Null))?;
    let request = ReviewRequest {
        version: VERSION,
        namespace: vector.body.get("requestNamespace").and_then(Value::as_str).unwrap_or_default(),
        user: requestor.as_ref(),
        now: Timestamp::UNIX_EPOCH,
    };
    let decision = parse_decision(vector.member("authorizer")?)?;
    let got = match prepare_review(kind, object, &request) {
        Ok(PreparedReview::Access(review)) => {
            let input = authorizer_input(&review);
            let answer = review.into_response(&decision);
            let fast = fast_path_answer(kind, object, &decision);
            match fast {
                // Both paths must give the same answer; otherwise the vector fails.
                Some(fast) if fast != answer => json!({ "fast": fast, "full": answer }),
                Some(_) | None => accepted_to_json(&answer, input),
            }
        }
        Ok(_) => {
            return Err(UnusableVector::new(format!("`{name}` does not ask for a decision")));
        }
        Err(error) => refused_to_json(&error.into_status()),
    };
    Ok(AnswerPair { want: vector.member("expect")?.clone(), got, warnings: Vec::new() })
}

/// The wording of decoders is free; Kubernetes writes all other texts.
pub(super) fn exact_length(text: &str) -> usize {
    length_through(text, &["json: "])
}

fn fast_path_answer(kind: ReviewKind, object: &Value, decision: &authz::Decision) -> Option<Value> {
    if kind != ReviewKind::SubjectAccessReview {
        return None;
    }
    let body = object.to_string();
    let mut answer = Vec::new();
    PlainSubjectAccessReview::parse(body.as_bytes())?.write_response(decision, &mut answer);
    Some(serde_json::from_slice(&answer).unwrap_or_default())
}

/// The attributes and the user that the authorizer receives.
fn authorizer_input(review: &AccessReview) -> (Value, Value) {
    let asked: Attributes<'_> = review.attributes();
    let user = asked.user.map(|user| {
        json!({
            "name": user.name, "uid": user.uid, "groups": user.groups, "extra": user.extra,
        })
    });
    (attributes(&asked), user.unwrap_or_default())
}

fn accepted_to_json(answer: &Value, (attributes, user): (Value, Value)) -> Value {
    json!({
        "result": "ok", "code": 201, "status": answer["status"],
        "attributes": attributes, "user": user,
    })
}

fn refused_to_json(status: &Status) -> Value {
    if let Some((_, rest)) = status.message.split_once(NOT_DECODED) {
        let why = rest.split_once(": ").map_or(rest, |(_, why)| why);
        return json!({ "result": "decodeError", "message": why });
    }
    let causes = status.details.iter().flat_map(|details| &details.causes).map(
        |cause| json!({ "type": cause.reason, "field": cause.field, "message": cause.message }),
    );
    json!({
        "result": "rejected", "code": status.code, "reason": status.reason,
        "message": status.message, "causes": causes.collect::<Vec<_>>(),
    })
}
