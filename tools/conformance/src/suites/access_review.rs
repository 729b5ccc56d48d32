//! `access-review`: creating a review of somebody's access.

use access_reviews::{
    AccessReview, PreparedReview, ReviewKind, ReviewRequest, SubjectAccessReview, prepare_review,
};
use api_object::Status;
use authz::Attributes;
use jiff::Timestamp;
use serde_json::{Value, json};
use server::IntoStatus;

use super::Answer;
use super::decision::decision;
use super::question::user;
use super::request_attributes::attributes;
use crate::compare::length_through;
use crate::vectors::Vector;

const VERSION: &str = "v1";
/// What comes before the words of a decoder.
const NOT_DECODED: &str = "cannot be handled as a ";

pub(super) fn answer(vector: &Vector) -> Result<Answer, String> {
    let object = vector.member("object")?;
    let name = object["kind"].as_str().unwrap_or_default();
    let kind = ReviewKind::ALL.into_iter().find(|kind| kind.name() == name);
    let kind = kind.ok_or_else(|| format!("`{name}` is no kind of review"))?;
    let requestor = user(vector.body.get("requestor").unwrap_or(&Value::Null))?;
    let request = ReviewRequest {
        version: VERSION,
        namespace: vector.body.get("requestNamespace").and_then(Value::as_str).unwrap_or_default(),
        user: requestor.as_ref(),
        now: Timestamp::UNIX_EPOCH,
    };
    let decision = decision(vector.member("authorizer")?)?;
    let got = match prepare_review(kind, object, &request) {
        Ok(PreparedReview::Access(review)) => {
            let asked = asked(&review);
            let answer = review.into_response(&decision);
            let quick = quick_answer(kind, object, &decision);
            match quick {
                // Both ways must lead to the same answer; if not, the vector has to fail.
                Some(quick) if quick != answer => json!({ "quick": quick, "long": answer }),
                Some(_) | None => accepted(&answer, asked),
            }
        }
        Ok(_) => return Err(format!("`{name}` asks for something else than a decision")),
        Err(error) => refused(&error.into_status()),
    };
    Ok(Answer { want: vector.member("expect")?.clone(), got, warnings: Vec::new() })
}

/// Messages of decoders are their own wording; all else is Kubernetes'.
pub(super) fn exact_length(text: &str) -> usize {
    length_through(text, &["json: "])
}

fn quick_answer(kind: ReviewKind, object: &Value, decision: &authz::Decision) -> Option<Value> {
    if kind != ReviewKind::SubjectAccessReview {
        return None;
    }
    let body = object.to_string();
    let mut answer = Vec::new();
    SubjectAccessReview::parse(body.as_bytes())?.write_response(decision, &mut answer);
    Some(serde_json::from_slice(&answer).unwrap_or_default())
}

/// What the authorizer was asked, and about whom.
fn asked(review: &AccessReview) -> (Value, Value) {
    let asked: Attributes<'_> = review.attributes();
    let user = asked.user.map(|user| {
        json!({
            "name": user.name, "uid": user.uid, "groups": user.groups, "extra": user.extra,
        })
    });
    (attributes(&asked), user.unwrap_or_default())
}

fn accepted(answer: &Value, (attributes, user): (Value, Value)) -> Value {
    json!({
        "result": "ok", "code": 201, "status": answer["status"],
        "attributes": attributes, "user": user,
    })
}

fn refused(status: &Status) -> Value {
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
