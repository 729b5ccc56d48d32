//! The quick way for the review that servers are asked most.

use crate::review::{Question, Spec, Version, parse_plain_review};
use authz::{Attributes, Decision};
use serde::Serialize;

use crate::response::AccessStatus;

/// A SubjectAccessReview of version v1 that is written plainly and breaks no rule.
///
/// It borrows from the body, and neither reading it nor writing the answer makes a tree. Whatever is
/// out of the ordinary is left to [`prepare`](crate::prepare), which gives the same answers and
/// knows how to tell what is wrong.
///
/// ```
/// let body = br#"{"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
///     "metadata": {}, "spec": {"user": "ana", "groups": ["dev"],
///     "resourceAttributes": {"namespace": "prod", "verb": "get", "resource": "pods"}}}"#;
/// let review = access_reviews::SubjectAccessReview::parse(body).unwrap();
/// assert_eq!(review.attributes().verb, "get");
/// let mut answer = Vec::new();
/// review.write_response(&authz::Decision::allow("a rule"), &mut answer);
/// assert!(answer.ends_with(b"\"status\":{\"allowed\":true,\"reason\":\"a rule\"}}\n"));
/// ```
#[derive(Debug)]
pub struct SubjectAccessReview<'b> {
    spec: Spec<'b>,
    question: Question<'b>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: Empty,
    spec: &'a Spec<'a>,
    status: AccessStatus<'a>,
}

#[derive(Serialize)]
struct Empty {}

impl<'b> SubjectAccessReview<'b> {
    /// The review, or `None` if the body is to be read the long way.
    pub fn parse(body: &'b [u8]) -> Option<Self> {
        match parse_plain_review(body)? {
            (Version::V1, spec) => {
                let question = spec.question().ok()?;
                Some(Self { spec, question })
            }
            (Version::V1beta1, _) => None,
        }
    }

    /// What the chain is to be asked.
    pub fn attributes(&self) -> Attributes<'_> {
        self.question.attributes()
    }

    /// Appends the body of the answer: JSON and a line feed.
    pub fn write_response(&self, decision: &Decision, out: &mut Vec<u8>) {
        let written = Written {
            kind: "SubjectAccessReview",
            api_version: "authorization.k8s.io/v1",
            metadata: Empty {},
            spec: &self.spec,
            status: AccessStatus::new(&self.question, decision),
        };
        // Memory takes whatever is written to it.
        let _ = serde_json::to_writer(&mut *out, &written);
        out.push(b'\n');
    }
}
