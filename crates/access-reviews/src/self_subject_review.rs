//! SelfSubjectReview: the user attributes of the caller.

use serde_json::{Map, Value, json};

use crate::metadata::Metadata;
use crate::prepare::ReviewRequest;
use crate::read_body::Fields;
use crate::response::Response;
use crate::review_error::ReviewError;
use crate::review_kind::ReviewKind;

const KIND: ReviewKind = ReviewKind::SelfSubjectReview;

/// The answer, which only the request is needed for. What the metadata says is not echoed.
pub(crate) fn answer(body: &Value, request: &ReviewRequest<'_>) -> Result<Value, ReviewError> {
    Metadata::read(&Fields::from_body(body, KIND))
        .map_err(|malformed| malformed.in_review(KIND, request.version))?;
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
    let response = Response::new(KIND, request, json!({ "creationTimestamp": created }), None);
    Ok(response.with_status(Map::from_iter([("userInfo".to_owned(), Value::Object(shown))])))
}
