//! Redacts secrets and credentials in bodies and URLs.
//!
//! The members of a sensitive body that may be shown are listed; all others are masked, so that a misspelled `stringData` is
//! masked too. A body is sensitive because of the resource in the URL, or because it or a part of it is of kind Secret.

mod quoted_body;
mod uri_redaction;
mod webhook_url_redaction;

use serde_json::{Map, Value};

pub(crate) use self::quoted_body::redact_quoted_body;
pub use self::uri_redaction::redact_uri;
use self::webhook_url_redaction::redact_urls_in_text;

/// The text in place of a secret.
pub const REDACTED: &str = "[redacted]";

/// The deepest nesting that is copied; deeper parts are masked. No server accepts as much.
const NESTING_MAX: usize = 520;

/// The annotation that contains the whole object as it was last applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Which parts of a body are secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodySensitivity {
    /// No part is secret.
    Plain,
    /// The body has URLs of webhooks; credentials in URLs are masked.
    WebhookUrls,
    /// The body is a Secret; its data is masked.
    SecretData,
    /// The token in the spec is masked.
    TokenReview,
    /// The token in the status is masked.
    TokenRequest,
}

impl BodySensitivity {
    /// The sensitivity of the bodies of a resource.
    pub(crate) fn sensitivity_of_resource(
        api_group: &str,
        resource: &str,
        subresource: &str,
    ) -> Self {
        match (api_group, resource, subresource) {
            ("", "secrets", _) => Self::SecretData,
            ("", "serviceaccounts", "token") => Self::TokenRequest,
            ("authentication.k8s.io", "tokenreviews", _) => Self::TokenReview,
            (
                "admissionregistration.k8s.io",
                "mutatingwebhookconfigurations" | "validatingwebhookconfigurations",
                _,
            )
            | ("apiextensions.k8s.io", "customresourcedefinitions", _) => Self::WebhookUrls,
            _ => Self::Plain,
        }
    }

    /// The sensitivity of an object by its kind, in any API group; otherwise the expected one.
    fn sensitivity_of_object(self, members: &Map<String, Value>) -> Self {
        match members.get("kind").and_then(Value::as_str) {
            Some("Secret" | "SecretList") => Self::SecretData,
            Some("TokenReview") => Self::TokenReview,
            Some("TokenRequest") => Self::TokenRequest,
            Some(_) | None => self,
        }
    }
}

/// How a member of a sensitive object is copied.
enum MemberTreatment {
    /// The member is shown.
    Show,
    /// The member contains objects like the one around it.
    Descend,
    /// The member is an object of which one member is shown.
    ShowOnly(&'static str),
    /// The member is masked; if it is an object, the names of its members are shown.
    Mask,
}

/// Copies bodies without their secrets, and without managed fields on request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RedactingBodyCopier {
    pub(crate) omit_managed_fields: bool,
}

impl RedactingBodyCopier {
    /// Copies the object of a request or of a response, or a patch that is an object or a list.
    pub(crate) fn copy_redacted_body(self, body: &Value, sensitivity: BodySensitivity) -> Value {
        self.copy_redacted_value(body, sensitivity, 0)
    }

    fn copy_redacted_value(
        self,
        value: &Value,
        sensitivity: BodySensitivity,
        depth: usize,
    ) -> Value {
        if depth >= NESTING_MAX {
            return REDACTED.into();
        }
        match value {
            Value::Object(members) => {
                let sensitivity = sensitivity.sensitivity_of_object(members);
                let copied = members.iter().map(|(name, value)| {
                    (name.clone(), self.copy_redacted_member(name, value, sensitivity, depth + 1))
                });
                Value::Object(copied.collect())
            }
            Value::Array(items) => items
                .iter()
                .map(|item| self.copy_redacted_value(item, sensitivity, depth + 1))
                .collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                match (sensitivity, value) {
                    (BodySensitivity::WebhookUrls, Value::String(text)) => {
                        redact_urls_in_text(text).into()
                    }
                    (BodySensitivity::Plain | BodySensitivity::WebhookUrls, _) => value.clone(),
                    (
                        BodySensitivity::SecretData
                        | BodySensitivity::TokenReview
                        | BodySensitivity::TokenRequest,
                        _,
                    ) => mask_value(value),
                }
            }
        }
    }

    fn copy_redacted_member(
        self,
        name: &str,
        value: &Value,
        sensitivity: BodySensitivity,
        depth: usize,
    ) -> Value {
        if name == "metadata" {
            return self.copy_redacted_metadata(value, sensitivity, depth);
        }
        match member_treatment(name, value, sensitivity) {
            MemberTreatment::Show => self.copy_redacted_value(value, BodySensitivity::Plain, depth),
            MemberTreatment::Descend => self.copy_redacted_value(value, sensitivity, depth),
            MemberTreatment::ShowOnly(shown) => self.copy_showing_member(shown, value, depth),
            MemberTreatment::Mask => mask_value(value),
        }
    }

    fn copy_redacted_metadata(
        self,
        value: &Value,
        sensitivity: BodySensitivity,
        depth: usize,
    ) -> Value {
        let Value::Object(members) = value else {
            return self.copy_redacted_value(value, sensitivity, depth);
        };
        let copied = members
            .iter()
            .filter(|(name, _)| !(self.omit_managed_fields && name.as_str() == "managedFields"));
        let copied = copied.map(|(name, value)| {
            let copy = match (name.as_str(), value) {
                ("annotations", Value::Object(annotations))
                    if sensitivity != BodySensitivity::Plain =>
                {
                    let masked = annotations.iter().map(|(name, value)| {
                        let copy =
                            if name == LAST_APPLIED { mask_value(value) } else { value.clone() };
                        (name.clone(), copy)
                    });
                    Value::Object(masked.collect())
                }
                _ => self.copy_redacted_value(value, BodySensitivity::Plain, depth + 1),
            };
            (name.clone(), copy)
        });
        Value::Object(copied.collect())
    }

    fn copy_showing_member(self, shown: &str, value: &Value, depth: usize) -> Value {
        let Value::Object(members) = value else {
            return mask_value(value);
        };
        let copied = members.iter().map(|(name, value)| {
            let copy = if name == shown {
                self.copy_redacted_value(value, BodySensitivity::Plain, depth + 1)
            } else {
                mask_value(value)
            };
            (name.clone(), copy)
        });
        Value::Object(copied.collect())
    }
}

/// How a member is copied. The lists cover the object itself, options, the Status of an error, lists, tables, and the
/// operations of a JSON patch, whose values are masked.
fn member_treatment(name: &str, value: &Value, sensitivity: BodySensitivity) -> MemberTreatment {
    match (sensitivity, name) {
        (BodySensitivity::Plain | BodySensitivity::WebhookUrls, _) => MemberTreatment::Descend,
        (_, "kind" | "apiVersion" | "message" | "reason" | "details" | "code") => {
            MemberTreatment::Show
        }
        (_, "op" | "path" | "from" | "dryRun" | "fieldManager") => MemberTreatment::Show,
        (BodySensitivity::SecretData, "type" | "immutable" | "status") => MemberTreatment::Show,
        (
            BodySensitivity::SecretData,
            "gracePeriodSeconds" | "preconditions" | "propagationPolicy" | "orphanDependents",
        ) => MemberTreatment::Show,
        (BodySensitivity::SecretData, "columnDefinitions" | "cells") => MemberTreatment::Show,
        (BodySensitivity::SecretData, "items" | "rows" | "object") => MemberTreatment::Descend,
        (BodySensitivity::TokenReview, "spec") => MemberTreatment::ShowOnly("audiences"),
        (BodySensitivity::TokenReview, "status") => MemberTreatment::Show,
        (BodySensitivity::TokenRequest, "spec") => MemberTreatment::Show,
        // The status of a Status is a word.
        (BodySensitivity::TokenRequest, "status") if value.is_string() => MemberTreatment::Show,
        (BodySensitivity::TokenRequest, "status") => {
            MemberTreatment::ShowOnly("expirationTimestamp")
        }
        (
            BodySensitivity::SecretData
            | BodySensitivity::TokenReview
            | BodySensitivity::TokenRequest,
            _,
        ) => MemberTreatment::Mask,
    }
}

/// Replaces values and keeps the names of members. Null stays, because it means a removal in a patch.
fn mask_value(value: &Value) -> Value {
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
