//! What never reaches the log: the values of secrets, and credentials.
//!
//! Members that may be shown are listed, and everything else of a sensitive body is masked: a
//! client that misspells `stringData` still has its secret kept. A body is sensitive because of the
//! resource it was sent to, or because it, or something inside it, says that it is a Secret.

mod status;
mod uri;

use serde_json::{Map, Value};

pub(crate) use self::status::without_quotes;
pub use self::uri::redact_uri;

/// What stands in place of a secret.
pub const REDACTED: &str = "[redacted]";

/// The deepest nesting that is copied. It is more than any server accepts; deeper parts are masked.
const NESTING_MAX: usize = 520;

/// Holds the whole object as it was last applied, with its secrets.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What a body is, as far as secrets go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Nothing in it is secret by itself.
    Plain,
    /// A Secret. What it holds is masked.
    Data,
    /// The token that is asked about is masked.
    TokenReview,
    /// The token that was issued is masked.
    TokenRequest,
}

impl Subject {
    /// What bodies of a resource are.
    pub(crate) fn of_resource(api_group: &str, resource: &str, subresource: &str) -> Self {
        match (api_group, resource, subresource) {
            ("", "secrets", _) => Self::Data,
            ("", "serviceaccounts", "token") => Self::TokenRequest,
            ("authentication.k8s.io", "tokenreviews", _) => Self::TokenReview,
            _ => Self::Plain,
        }
    }

    /// What an object says it is. Kinds of the same name in other groups are treated alike, since
    /// something that is called a secret is one. What says nothing of the sort is what is expected.
    fn of_object(self, members: &Map<String, Value>) -> Self {
        match members.get("kind").and_then(Value::as_str) {
            Some("Secret" | "SecretList") => Self::Data,
            Some("TokenReview") => Self::TokenReview,
            Some("TokenRequest") => Self::TokenRequest,
            Some(_) | None => self,
        }
    }
}

/// What becomes of a member of a sensitive object.
enum Treatment {
    /// It is shown.
    Show,
    /// It holds objects like the one around it.
    Descend,
    /// It is an object of which one member is shown.
    ShowOnly(&'static str),
    /// It is masked, and if it is an object the names of its members are shown.
    Mask,
}

/// A copy of a body without its secrets, and without managed fields if they are not wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Copier {
    pub(crate) omit_managed_fields: bool,
}

impl Copier {
    /// The object of a request or an answer, or a patch in the form of an object or a list.
    pub(crate) fn copy(self, body: &Value, subject: Subject) -> Value {
        self.value(body, subject, 0)
    }

    fn value(self, value: &Value, subject: Subject, depth: usize) -> Value {
        if depth >= NESTING_MAX {
            return REDACTED.into();
        }
        match value {
            Value::Object(members) => {
                let subject = subject.of_object(members);
                let copied = members.iter().map(|(name, value)| {
                    (name.clone(), self.member(name, value, subject, depth + 1))
                });
                Value::Object(copied.collect())
            }
            Value::Array(items) => {
                items.iter().map(|item| self.value(item, subject, depth + 1)).collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                if subject == Subject::Plain { value.clone() } else { mask(value) }
            }
        }
    }

    fn member(self, name: &str, value: &Value, subject: Subject, depth: usize) -> Value {
        if name == "metadata" {
            return self.metadata(value, subject, depth);
        }
        match treatment(name, value, subject) {
            Treatment::Show => self.value(value, Subject::Plain, depth),
            Treatment::Descend => self.value(value, subject, depth),
            Treatment::ShowOnly(shown) => self.show_only(shown, value, depth),
            Treatment::Mask => mask(value),
        }
    }

    fn metadata(self, value: &Value, subject: Subject, depth: usize) -> Value {
        let Value::Object(members) = value else {
            return self.value(value, subject, depth);
        };
        let copied = members
            .iter()
            .filter(|(name, _)| !(self.omit_managed_fields && name.as_str() == "managedFields"));
        let copied = copied.map(|(name, value)| {
            let copy = match (name.as_str(), value) {
                ("annotations", Value::Object(annotations)) if subject != Subject::Plain => {
                    let masked = annotations.iter().map(|(name, value)| {
                        let copy = if name == LAST_APPLIED { mask(value) } else { value.clone() };
                        (name.clone(), copy)
                    });
                    Value::Object(masked.collect())
                }
                _ => self.value(value, Subject::Plain, depth + 1),
            };
            (name.clone(), copy)
        });
        Value::Object(copied.collect())
    }

    fn show_only(self, shown: &str, value: &Value, depth: usize) -> Value {
        let Value::Object(members) = value else {
            return mask(value);
        };
        let copied = members.iter().map(|(name, value)| {
            let copy = if name == shown {
                self.value(value, Subject::Plain, depth + 1)
            } else {
                mask(value)
            };
            (name.clone(), copy)
        });
        Value::Object(copied.collect())
    }
}

/// The lists cover, beside the object itself, what else a request for it can carry: options, the
/// Status of a failure, lists, tables, and the operations of a JSON patch, whose values are masked.
fn treatment(name: &str, value: &Value, subject: Subject) -> Treatment {
    match (subject, name) {
        (Subject::Plain, _) => Treatment::Descend,
        (_, "kind" | "apiVersion" | "message" | "reason" | "details" | "code") => Treatment::Show,
        (_, "op" | "path" | "from" | "dryRun" | "fieldManager") => Treatment::Show,
        (Subject::Data, "type" | "immutable" | "status") => Treatment::Show,
        (
            Subject::Data,
            "gracePeriodSeconds" | "preconditions" | "propagationPolicy" | "orphanDependents",
        ) => Treatment::Show,
        (Subject::Data, "columnDefinitions" | "cells") => Treatment::Show,
        (Subject::Data, "items" | "rows" | "object") => Treatment::Descend,
        (Subject::TokenReview, "spec") => Treatment::ShowOnly("audiences"),
        (Subject::TokenReview, "status") => Treatment::Show,
        (Subject::TokenRequest, "spec") => Treatment::Show,
        // The status of a Status is a word.
        (Subject::TokenRequest, "status") if value.is_string() => Treatment::Show,
        (Subject::TokenRequest, "status") => Treatment::ShowOnly("expirationTimestamp"),
        (Subject::Data | Subject::TokenReview | Subject::TokenRequest, _) => Treatment::Mask,
    }
}

/// Says that something is there, and how it is called, but not what it is. Null is nothing, and
/// in a patch it means a removal.
fn mask(value: &Value) -> Value {
    match value {
        Value::Null => Value::Null,
        Value::Object(members) => {
            let masked = members.iter().map(|(name, value)| {
                let copy = if value.is_null() { Value::Null } else { REDACTED.into() };
                (name.clone(), copy)
            });
            Value::Object(masked.collect())
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => REDACTED.into(),
    }
}

#[cfg(test)]
mod tests;
