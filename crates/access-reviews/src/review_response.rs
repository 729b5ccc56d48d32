//! The common parts of responses to reviews.

use crate::review_parsing::AccessQuestion;
use authz::{Decision, Reason, Verdict};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::prepare_review::ReviewRequest;
use crate::review_kind::ReviewKind;

/// A response without its status.
#[derive(Debug)]
pub(crate) struct ResponseWithoutStatus {
    kind: &'static str,
    api_version: String,
    metadata: Value,
    spec: Option<Value>,
}

impl ResponseWithoutStatus {
    pub(crate) fn new(
        kind: ReviewKind,
        request: &ReviewRequest<'_>,
        metadata: Value,
        spec: Option<Value>,
    ) -> Self {
        let api_version = kind.api_version(request.version);
        Self { kind: kind.name(), api_version, metadata, spec }
    }

    pub(crate) fn with_status(self, status: Map<String, Value>) -> Value {
        let mut members = Map::new();
        members.insert("kind".to_owned(), self.kind.into());
        members.insert("apiVersion".to_owned(), self.api_version.into());
        members.insert("metadata".to_owned(), self.metadata);
        if let Some(spec) = self.spec {
            members.insert("spec".to_owned(), spec);
        }
        members.insert("status".to_owned(), Value::Object(status));
        Value::Object(members)
    }
}

/// Serializes a value of strings, lists and maps with string keys to a JSON tree.
pub(crate) fn to_json_tree(value: &impl Serialize) -> Value {
    // Serialization fails only for keys that are not strings, and there are none.
    serde_json::to_value(value).unwrap_or_default()
}

/// The status of an access review.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AccessStatus<'d> {
    allowed: bool,
    #[serde(skip_serializing_if = "is_false")]
    denied: bool,
    #[serde(skip_serializing_if = "Reason::is_empty", serialize_with = "serialize_display")]
    reason: &'d Reason,
    #[serde(skip_serializing_if = "Option::is_none")]
    evaluation_error: Option<String>,
}

impl<'d> AccessStatus<'d> {
    pub(crate) fn new(question: &AccessQuestion<'_>, decision: &'d Decision) -> Self {
        Self {
            allowed: decision.verdict == Verdict::Allow,
            denied: decision.verdict == Verdict::Deny,
            reason: &decision.reason,
            evaluation_error: question.evaluation_error(decision.error.as_ref()),
        }
    }

    pub(crate) fn into_json_map(self) -> Map<String, Value> {
        match to_json_tree(&self) {
            Value::Object(members) => members,
            _ => Map::new(),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_false(truth: &bool) -> bool {
    !truth
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn serialize_display<S: Serializer>(reason: &&Reason, serializer: S) -> Result<S::Ok, S::Error> {
    // The text is made first: it consists of many parts, each of which `collect_str` would escape by itself.
    serializer.serialize_str(&reason.to_string())
}
