//! SelfSubjectReview: the user attributes of the caller.

use serde_json::{Map, Value, json};

use crate::prepare_review::ReviewRequest;
use crate::read_body::ObjectFields;
use crate::review_error::ReviewError;
use crate::review_kind::ReviewKind;
use crate::review_metadata::Metadata;
use crate::review_response::ResponseWithoutStatus;

const KIND: ReviewKind = ReviewKind::SelfSubjectReview;

/// Answers a review, which needs no authorizer. The metadata of the body is not echoed.
pub(crate) fn answer_self_subject_review(
    body: &Value,
    request: &ReviewRequest<'_>,
) -> Result<Value, ReviewError> {
    Metadata::read(&ObjectFields::from_body(body, KIND))
        .map_err(|malformed| malformed.into_review_error(KIND, request.version))?;
    let user = request.user.ok_or(ReviewError::NoUser)?;
    let mut shown = Map::new();
    for (name, text) in [("username", &user.name), ("uid", &user.uid)] {
        if !text.is_empty() {
            shown.insert(name.to_owned(), text.as_str().into());
        }
    }
    if !user.groups.is_empty() {
        shown.insert("groups".to_owned(), user.groups.as_slice().into());
    }
    if !user.extra.is_empty() {
        let extra = user.extra.iter().map(|(key, values)| (key.clone(), values.as_slice().into()));
        shown.insert("extra".to_owned(), Value::Object(extra.collect()));
    }
    let created = request.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let response =
        ResponseWithoutStatus::new(KIND, request, json!({ "creationTimestamp": created }), None);
    Ok(response.with_status(Map::from_iter([("userInfo".to_owned(), Value::Object(shown))])))
}
