//! Writes the `SubjectAccessReview` that is sent.
//!
//! The bytes are those of Kubernetes: the order of keys, the omitted members, and the escapes of Go's JSON. A webhook that
//! compares or signs texts depends on them.

use authz::{Attributes, Resource, ReviewSelectorOperator, Target, User, Verb};
use bytes::Bytes;

use crate::settings::ReviewVersion;

/// Encodes the `SubjectAccessReview` that asks for a decision about a request.
pub fn encode_review(attributes: &Attributes<'_>, version: ReviewVersion) -> Bytes {
    let mut json = JsonWriter(String::with_capacity(512));
    json.open("{");
    json.write_member("kind", "SubjectAccessReview");
    json.write_key("apiVersion");
    json.0.push_str(match version {
        ReviewVersion::V1 => r#""authorization.k8s.io/v1""#,
        ReviewVersion::V1beta1 => r#""authorization.k8s.io/v1beta1""#,
    });
    json.write_key("metadata");
    json.0.push_str("{}");
    json.write_key("spec");
    json.open("{");
    match &attributes.target {
        Target::Resource(resource) => {
            write_resource_attributes(&mut json, attributes.verb, resource)
        }
        Target::Path(path) => {
            json.write_key("nonResourceAttributes");
            json.open("{");
            json.write_member_unless_empty("path", path);
            json.write_member_unless_empty("verb", attributes.verb.as_str());
            json.close("}");
        }
    }
    if let Some(user) = attributes.user {
        write_user(&mut json, user, version);
    }
    json.close("}");
    json.write_key("status");
    json.0.push_str(r#"{"allowed":false}"#);
    json.close("}");
    json.0.into()
}

fn write_resource_attributes(json: &mut JsonWriter, verb: Verb<'_>, resource: &Resource<'_>) {
    json.write_key("resourceAttributes");
    json.open("{");
    json.write_member_unless_empty("namespace", resource.namespace.as_str());
    json.write_member_unless_empty("verb", verb.as_str());
    json.write_member_unless_empty("group", resource.api_group);
    json.write_member_unless_empty("version", resource.api_version);
    json.write_member_unless_empty("resource", resource.resource);
    json.write_member_unless_empty("subresource", resource.subresource);
    json.write_member_unless_empty("name", resource.name);
    let fields = resource.field_requirements().iter().map(|requirement| {
        let operator = requirement.operator.review_selector_operator();
        (requirement.field.as_str(), operator, std::slice::from_ref(&requirement.value))
    });
    write_selector(json, "fieldSelector", fields);
    // A requirement that a review cannot express is omitted, which makes the request wider, never narrower.
    let labels = resource.label_requirements().iter().filter_map(|requirement| {
        let operator = requirement.operator.review_selector_operator()?;
        Some((requirement.key.as_str(), operator, requirement.values.as_slice()))
    });
    write_selector(json, "labelSelector", labels);
    json.close("}");
}

fn write_selector<'a>(
    json: &mut JsonWriter,
    name: &str,
    requirements: impl Iterator<Item = (&'a str, ReviewSelectorOperator, &'a [String])>,
) {
    let mut requirements = requirements.peekable();
    if requirements.peek().is_none() {
        return;
    }
    json.write_key(name);
    json.open("{");
    json.write_key("requirements");
    json.open("[");
    for (key, operator, values) in requirements {
        json.push_comma_unless_first();
        json.open("{");
        json.write_member("key", key);
        json.write_member("operator", operator.name());
        if !values.is_empty() {
            json.write_string_array("values", values);
        }
        json.close("}");
    }
    json.close("]");
    json.close("}");
}

fn write_user(json: &mut JsonWriter, user: &User, version: ReviewVersion) {
    json.write_member_unless_empty("user", &user.name);
    if !user.groups.is_empty() {
        let key = match version {
            ReviewVersion::V1 => "groups",
            ReviewVersion::V1beta1 => "group",
        };
        json.write_string_array(key, &user.groups);
    }
    if !user.extra.is_empty() {
        json.write_key("extra");
        json.open("{");
        for (key, values) in &user.extra {
            json.write_string_array(key, values);
        }
        json.close("}");
    }
    json.write_member_unless_empty("uid", &user.uid);
}

/// Writes JSON to a string.
struct JsonWriter(String);

impl JsonWriter {
    fn open(&mut self, bracket: &str) {
        self.0.push_str(bracket);
    }

    fn close(&mut self, bracket: &str) {
        self.0.push_str(bracket);
    }

    /// Writes a comma, unless this is the first element or member.
    fn push_comma_unless_first(&mut self) {
        if !self.0.ends_with(['{', '[', ':']) {
            self.0.push(',');
        }
    }

    fn write_key(&mut self, key: &str) {
        self.push_comma_unless_first();
        self.write_string(key);
        self.0.push(':');
    }

    fn write_member(&mut self, key: &str, text: &str) {
        self.write_key(key);
        self.write_string(text);
    }

    fn write_member_unless_empty(&mut self, key: &str, text: &str) {
        if !text.is_empty() {
            self.write_member(key, text);
        }
    }

    fn write_string_array(&mut self, key: &str, texts: &[String]) {
        self.write_key(key);
        self.0.push('[');
        for text in texts {
            self.push_comma_unless_first();
            self.write_string(text);
        }
        self.0.push(']');
    }

    /// Writes a string with Go's escapes: those of JSON, of HTML markup, and of the line ends of JavaScript.
    fn write_string(&mut self, text: &str) {
        self.0.push('"');
        let mut rest = text;
        while let Some(at) = rest.find(needs_json_escape) {
            let (plain, tail) = rest.split_at(at);
            self.0.push_str(plain);
            let mut chars = tail.chars();
            if let Some(escaped) = chars.next() {
                self.write_json_escape(escaped);
            }
            rest = chars.as_str();
        }
        self.0.push_str(rest);
        self.0.push('"');
    }

    fn write_json_escape(&mut self, c: char) {
        match c {
            '"' => self.0.push_str("\\\""),
            '\\' => self.0.push_str("\\\\"),
            '\n' => self.0.push_str("\\n"),
            '\r' => self.0.push_str("\\r"),
            '\t' => self.0.push_str("\\t"),
            '\u{8}' => self.0.push_str("\\b"),
            '\u{c}' => self.0.push_str("\\f"),
            other => self.0.push_str(&format!("\\u{:04x}", u32::from(other))),
        }
    }
}

fn needs_json_escape(c: char) -> bool {
    c < ' ' || matches!(c, '"' | '\\' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests;
