//! The fast path for the most frequent review.

use std::io::Write;

use authz::{Attributes, Decision, RbacGrant, Verdict};
use serde::Serialize;

use crate::review_parsing::{AccessQuestion, Spec, Version, parse_plain_review};
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
/// let review = access_reviews::PlainSubjectAccessReview::parse(body).unwrap();
/// assert_eq!(review.attributes().verb, authz::Verb::GET);
/// let mut answer = Vec::new();
/// review.write_response(&authz::Decision::allow("a rule"), &mut answer);
/// assert!(answer.ends_with(b"\"status\":{\"allowed\":true,\"reason\":\"a rule\"}}\n"));
/// ```
#[derive(Debug)]
pub struct PlainSubjectAccessReview<'b> {
    spec: Spec<'b>,
    access_question: AccessQuestion<'b>,
}

/// The response up to its spec.
const RESPONSE_START: &[u8] =
    br#"{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},"spec":"#;

impl<'b> PlainSubjectAccessReview<'b> {
    /// Parses a review; returns `None` if [`prepare_review`](crate::prepare_review) has to read the body.
    pub fn parse(body: &'b [u8]) -> Option<Self> {
        match parse_plain_review(body)? {
            (Version::V1, spec) => {
                let question = spec.to_question().ok()?;
                Some(Self { spec, access_question: question })
            }
            (Version::V1beta1, _) => None,
        }
    }

    /// The attributes for the chain.
    pub fn attributes(&self) -> Attributes<'_> {
        self.access_question.attributes()
    }

    /// Appends the body of the response: JSON and a line feed.
    pub fn write_response(&self, decision: &Decision, out: &mut Vec<u8>) {
        out.extend_from_slice(RESPONSE_START);
        write_spec(&self.spec, out);
        out.extend_from_slice(b",\"status\":");
        write_status(&self.access_question, decision, out);
        out.extend_from_slice(b"}\n");
    }
}

/// Writes a status as [`AccessStatus`] serializes. Most are those of requests that RBAC allows.
fn write_status(question: &AccessQuestion<'_>, decision: &Decision, out: &mut Vec<u8>) {
    let start = out.len();
    if decision.verdict == Verdict::Allow
        && question.evaluation_error(decision.error.as_ref()).is_none()
        && let Some(grant) = decision.reason.rbac_grant()
    {
        out.extend_from_slice(b"{\"allowed\":true,\"reason\":\"RBAC: allowed by ");
        if try_write_unescaped_grant(&grant, out) {
            out.extend_from_slice(b"\"}");
            return;
        }
        out.truncate(start);
    }
    write_json(out, &AccessStatus::new(question, decision));
}

/// Writes a grant as its `Display` does, within a JSON string. Returns false if a name needs escapes.
fn try_write_unescaped_grant(grant: &RbacGrant<'_>, out: &mut Vec<u8>) -> bool {
    let (binding_kind, binding_namespace) = match grant.binding_namespace.name() {
        None => ("ClusterRoleBinding", None),
        Some(namespace) => ("RoleBinding", Some(namespace)),
    };
    let Some(subject) = &grant.subject else { return false };
    let account_namespace = (subject.kind == "ServiceAccount").then(|| subject.namespace.as_str());
    let parts = [
        ("", binding_kind, grant.binding_name, binding_namespace),
        (" of ", grant.role_kind, grant.role_name, None),
        (" to ", subject.kind, subject.name, account_namespace),
    ];
    for (before, kind, name, namespace) in parts {
        let is_plain =
            [kind, name, namespace.unwrap_or_default()].into_iter().all(needs_no_escapes);
        if !is_plain {
            return false;
        }
        let (slash, namespace) = match namespace {
            None => ("", ""),
            Some(namespace) => ("/", namespace),
        };
        for part in [before, kind, " \\\"", name, slash, namespace, "\\\""] {
            out.extend_from_slice(part.as_bytes());
        }
    }
    true
}

/// Whether a text needs no escapes, neither in a Go string literal nor in JSON.
fn needs_no_escapes(text: &str) -> bool {
    let is_plain = |byte: &u8| matches!(*byte, b' '..=b'~') && !matches!(*byte, b'"' | b'\\');
    // This does not use `all`, which reads one byte at a time.
    text.as_bytes().iter().fold(true, |all, byte| all & is_plain(byte))
}

/// Writes a spec as its `Serialize` does, member by member, because the general serializer takes several times as long.
fn write_spec(spec: &Spec<'_>, out: &mut Vec<u8>) {
    let mut object = JsonObjectWriter::write_object_start(out);
    if let Some(attributes) = &spec.resource_attributes {
        let mut inner = object.write_object_member_start("resourceAttributes");
        inner.write_string_member("namespace", attributes.namespace);
        inner.write_string_member("verb", attributes.verb);
        inner.write_string_member("group", attributes.group);
        inner.write_string_member("version", attributes.version);
        inner.write_string_member("resource", attributes.resource);
        inner.write_string_member("subresource", attributes.subresource);
        inner.write_string_member("name", attributes.name);
        if let Some(selector) = &attributes.field_selector {
            inner.write_value_member("fieldSelector", selector);
        }
        if let Some(selector) = &attributes.label_selector {
            inner.write_value_member("labelSelector", selector);
        }
        inner.write_object_end();
    }
    if let Some(attributes) = &spec.non_resource_attributes {
        let mut inner = object.write_object_member_start("nonResourceAttributes");
        inner.write_string_member("path", attributes.path);
        inner.write_string_member("verb", attributes.verb);
        inner.write_object_end();
    }
    object.write_string_member("user", spec.user);
    object.write_list_member("groups", spec.groups.as_deref().unwrap_or_default());
    object.write_list_member("group", spec.group.as_deref().unwrap_or_default());
    if !spec.extra.is_empty() {
        object.write_value_member("extra", &spec.extra);
    }
    object.write_string_member("uid", spec.uid);
    object.write_object_end();
}

/// Writes the members of a JSON object.
struct JsonObjectWriter<'o> {
    json_output: &'o mut Vec<u8>,
    is_empty: bool,
}

impl<'o> JsonObjectWriter<'o> {
    fn write_object_start(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { json_output: out, is_empty: true }
    }

    fn write_object_member_start(&mut self, name: &str) -> JsonObjectWriter<'_> {
        self.write_member_name(name);
        JsonObjectWriter::write_object_start(self.json_output)
    }

    fn write_object_end(self) {
        self.json_output.push(b'}');
    }

    /// Writes the name of a member, which needs no escapes.
    fn write_member_name(&mut self, name: &str) {
        if !std::mem::take(&mut self.is_empty) {
            self.json_output.push(b',');
        }
        self.json_output.push(b'"');
        self.json_output.extend_from_slice(name.as_bytes());
        self.json_output.extend_from_slice(b"\":");
    }

    /// Writes a member, unless it is empty.
    fn write_string_member(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            self.write_member_name(name);
            write_unescaped_json_string(self.json_output, text);
        }
    }

    /// Writes a list, unless it is empty.
    fn write_list_member(&mut self, name: &str, texts: &[&str]) {
        if texts.is_empty() {
            return;
        }
        self.write_member_name(name);
        for (idx, text) in texts.iter().enumerate() {
            self.json_output.push(if idx == 0 { b'[' } else { b',' });
            write_unescaped_json_string(self.json_output, text);
        }
        self.json_output.push(b']');
    }

    fn write_value_member(&mut self, name: &str, value: &impl Serialize) {
        self.write_member_name(name);
        write_json(self.json_output, value);
    }
}

fn write_json(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    // Writing to memory does not fail.
    let _ = serde_json::to_writer(out.by_ref(), value);
}

/// Writes a string. The texts of a plain review need no escapes, since it was written without any.
fn write_unescaped_json_string(out: &mut Vec<u8>, text: &str) {
    let needs_escape = |byte: &u8| *byte < b' ' || matches!(*byte, b'"' | b'\\');
    // This does not use `any`, which reads one byte at a time.
    if text.as_bytes().iter().fold(false, |found, byte| found | needs_escape(byte)) {
        return write_json(out, text);
    }
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[derive(Debug)]
    struct OneGrant(RbacGrant<'static>);

    impl authz::RbacGrantSource for OneGrant {
        fn grant_at_index(&self, _: usize) -> Option<RbacGrant<'_>> {
            Some(self.0)
        }
    }

    /// The writer of grants and the general serializer produce the same text.
    #[test]
    fn a_status_is_written_as_it_serializes() {
        use authz::{Namespace, RbacSubject, Reason};
        let subject = |kind, name, namespace| {
            Some(RbacSubject { kind, name, namespace: Namespace::new(namespace) })
        };
        let plain = RbacGrant {
            binding_namespace: Namespace::CLUSTER_SCOPE,
            binding_name: "readers",
            role_kind: "ClusterRole",
            role_name: "system:view",
            subject: subject("User", "ana", ""),
            rule_idx: None,
        };
        let account = subject("ServiceAccount", "robot", "prod");
        let grants = [
            plain,
            RbacGrant { binding_namespace: Namespace::new("prod"), ..plain },
            RbacGrant { subject: account, ..plain },
            RbacGrant { subject: None, ..plain },
            RbacGrant { subject: subject("Group", "a\"b", ""), ..plain },
            RbacGrant { role_name: "a\\b", ..plain },
            RbacGrant { binding_name: "é", ..plain },
            RbacGrant { role_kind: "\n\u{7f}", ..plain },
        ];
        let reasons = grants
            .map(|grant| Reason::RbacGrant { bindings: Arc::new(OneGrant(grant)), grant_idx: 0 });
        let mut decisions: Vec<Decision> = reasons.map(Decision::allow).into();
        decisions.extend([
            Decision::allow("a \"text\""),
            Decision::allow(""),
            Decision::deny("no"),
            Decision::no_opinion(""),
        ]);
        for spec in [
            r#"{"user": "ana", "resourceAttributes": {"verb": "get"}}"#,
            r#"{"user": "ana", "resourceAttributes": {"verb": "get",
                "fieldSelector": {"rawSelector": "a in b"}}}"#,
        ] {
            let spec: Spec<'_> = serde_json::from_str(spec).unwrap();
            let question = spec.to_question().unwrap();
            for decision in &decisions {
                let mut written = Vec::new();
                write_status(&question, decision, &mut written);
                let want = serde_json::to_string(&AccessStatus::new(&question, decision)).unwrap();
                assert_eq!(String::from_utf8(written).unwrap(), want);
            }
        }
    }

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
        write_unescaped_json_string(&mut written, "a\"b\\c\n");
        assert_eq!(written, br#""a\"b\\c\n""#);
    }
}
