//! The fast path for the most frequent review.

use crate::review::{AccessQuestion, Spec, Version, parse_plain_review};
use authz::{Attributes, Decision};
use serde::Serialize;

use crate::review_response::AccessStatus;

/// A valid SubjectAccessReview of version v1 without unusual syntax.
///
/// It borrows from the body, and neither reading it nor writing the response builds a tree. [`prepare_review`](crate::prepare_review)
/// handles every other body, gives the same responses, and reports errors.
///
/// ```
/// let body = br#"{"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
///     "metadata": {}, "spec": {"user": "ana", "groups": ["dev"],
///     "resourceAttributes": {"namespace": "prod", "verb": "get", "resource": "pods"}}}"#;
/// let review = access_reviews::SubjectAccessReview::parse(body).unwrap();
/// assert_eq!(review.attributes().verb, authz::Verb::GET);
/// let mut answer = Vec::new();
/// review.write_response(&authz::Decision::allow("a rule"), &mut answer);
/// assert!(answer.ends_with(b"\"status\":{\"allowed\":true,\"reason\":\"a rule\"}}\n"));
/// ```
#[derive(Debug)]
pub struct SubjectAccessReview<'b> {
    spec: Spec<'b>,
    question: AccessQuestion<'b>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResponseBody<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: EmptyObject,
    spec: &'a Spec<'a>,
    status: AccessStatus<'a>,
}

#[derive(Serialize)]
struct EmptyObject {}

impl<'b> SubjectAccessReview<'b> {
    /// Parses a review; returns `None` if [`prepare_review`](crate::prepare_review) has to read the body.
    pub fn parse(body: &'b [u8]) -> Option<Self> {
        match parse_plain_review(body)? {
            (Version::V1, spec) => {
                let question = spec.to_question().ok()?;
                Some(Self { spec, question })
            }
            (Version::V1beta1, _) => None,
        }
    }

    /// The attributes for the chain.
    pub fn attributes(&self) -> Attributes<'_> {
        self.question.attributes()
    }

    /// Appends the body of the response: JSON and a line feed.
    pub fn write_response(&self, decision: &Decision, out: &mut Vec<u8>) {
        let response = ResponseBody {
            kind: "SubjectAccessReview",
            api_version: "authorization.k8s.io/v1",
            metadata: EmptyObject {},
            spec: &self.spec,
            status: AccessStatus::new(&self.question, decision),
        };
        // Writing to memory does not fail.
        let _ = serde_json::to_writer(&mut *out, &response);
        out.push(b'\n');
    }
}
