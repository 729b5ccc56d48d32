//! The fast path for the most frequent review.

use std::io::Write;

use authz::{Attributes, Decision};
use serde::Serialize;

use crate::review::{AccessQuestion, Spec, Version, parse_plain_review};
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

/// The response up to its spec.
const RESPONSE_START: &[u8] =
    br#"{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},"spec":"#;

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
        out.extend_from_slice(RESPONSE_START);
        write_spec(&self.spec, out);
        out.extend_from_slice(b",\"status\":");
        write_json(out, &AccessStatus::new(&self.question, decision));
        out.extend_from_slice(b"}\n");
    }
}

/// Writes a spec as its `Serialize` does, member by member, because the general serializer takes several times as long.
fn write_spec(spec: &Spec<'_>, out: &mut Vec<u8>) {
    let mut object = ObjectWriter::begin(out);
    if let Some(attributes) = &spec.resource_attributes {
        let mut inner = object.begin_object("resourceAttributes");
        inner.write_text("namespace", attributes.namespace);
        inner.write_text("verb", attributes.verb);
        inner.write_text("group", attributes.group);
        inner.write_text("version", attributes.version);
        inner.write_text("resource", attributes.resource);
        inner.write_text("subresource", attributes.subresource);
        inner.write_text("name", attributes.name);
        if let Some(selector) = &attributes.field_selector {
            inner.write_value("fieldSelector", selector);
        }
        if let Some(selector) = &attributes.label_selector {
            inner.write_value("labelSelector", selector);
        }
        inner.end();
    }
    if let Some(attributes) = &spec.non_resource_attributes {
        let mut inner = object.begin_object("nonResourceAttributes");
        inner.write_text("path", attributes.path);
        inner.write_text("verb", attributes.verb);
        inner.end();
    }
    object.write_text("user", spec.user);
    object.write_list("groups", spec.groups.as_deref().unwrap_or_default());
    object.write_list("group", spec.group.as_deref().unwrap_or_default());
    if !spec.extra.is_empty() {
        object.write_value("extra", &spec.extra);
    }
    object.write_text("uid", spec.uid);
    object.end();
}

/// Writes the members of a JSON object.
struct ObjectWriter<'o> {
    out: &'o mut Vec<u8>,
    is_empty: bool,
}

impl<'o> ObjectWriter<'o> {
    fn begin(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, is_empty: true }
    }

    fn begin_object(&mut self, name: &str) -> ObjectWriter<'_> {
        self.write_name(name);
        ObjectWriter::begin(self.out)
    }

    fn end(self) {
        self.out.push(b'}');
    }

    /// Writes the name of a member, which needs no escapes.
    fn write_name(&mut self, name: &str) {
        if !std::mem::take(&mut self.is_empty) {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    /// Writes a member, unless it is empty.
    fn write_text(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            self.write_name(name);
            write_json_text(self.out, text);
        }
    }

    /// Writes a list, unless it is empty.
    fn write_list(&mut self, name: &str, texts: &[&str]) {
        if texts.is_empty() {
            return;
        }
        self.write_name(name);
        for (idx, text) in texts.iter().enumerate() {
            self.out.push(if idx == 0 { b'[' } else { b',' });
            write_json_text(self.out, text);
        }
        self.out.push(b']');
    }

    fn write_value(&mut self, name: &str, value: &impl Serialize) {
        self.write_name(name);
        write_json(self.out, value);
    }
}

fn write_json(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    // Writing to memory does not fail.
    let _ = serde_json::to_writer(out.by_ref(), value);
}

/// Writes a string. The texts of a plain review need no escapes, since it was written without any.
fn write_json_text(out: &mut Vec<u8>, text: &str) {
    let needs_escape = |byte: &u8| *byte < b' ' || matches!(*byte, b'"' | b'\\');
    // Not `any`, which looks at one byte at a time.
    if text.as_bytes().iter().fold(false, |found, byte| found | needs_escape(byte)) {
        return write_json(out, text);
    }
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The writer of single members and the general serializer produce the same text.
    #[test]
    fn a_spec_is_written_as_it_serializes() {
        for spec in [
            r#"{"user": "ana", "nonResourceAttributes": {"path": "/a", "verb": "get"}}"#,
            r#"{"user": "ana", "uid": "7", "groups": ["a", "b"], "extra": {"k": ["v", "w"], "l": []},
                "resourceAttributes": {"namespace": "n", "verb": "v", "group": "g", "version": "1",
                "resource": "r", "subresource": "s", "name": "m"}}"#,
            r#"{"groups": ["é\u007f"], "resourceAttributes": {"verb": "list",
                "fieldSelector": {"rawSelector": "a=b"},
                "labelSelector": {"requirements": [{"key": "k", "operator": "In", "values": ["v"]}]}}}"#,
            r#"{"user": "ana", "groups": [], "resourceAttributes": {}}"#,
        ] {
            // U+007F needs no escape in JSON, so a plain text may have it.
            let spec = spec.replace("\\u007f", "\u{7f}");
            let spec: Spec<'_> = serde_json::from_str(&spec).unwrap();
            let mut written = Vec::new();
            write_spec(&spec, &mut written);
            let want = serde_json::to_string(&spec).unwrap();
            assert_eq!(String::from_utf8(written).unwrap(), want);
        }
        let mut written = Vec::new();
        write_json_text(&mut written, "a\"b\\c\n");
        assert_eq!(written, br#""a\"b\\c\n""#);
    }
}
