//! Reads the answer of a webhook from an HTTP response.

use authz::SharedText;
use field_errors::truncate_to_bytes;

use crate::call_error::{CallError, RetryAdvice};
use crate::http_error;
use crate::media_type;
use crate::response_document::{self, DecodeError, DocumentValue, unknown_type_message};
use crate::settings::ReviewVersion;
use crate::transport::HttpResponse;

/// The longest name from an answer that a message repeats, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// The status of a SubjectAccessReview. A clone shares the reason.
#[derive(Debug, Clone)]
pub(crate) struct ReviewStatus {
    pub(crate) is_allowed: bool,
    pub(crate) is_denied: bool,
    pub(crate) reason: SharedText,
    /// The memory that the reason uses, in bytes.
    pub(crate) reason_memory_bytes: usize,
}

/// Reads an answer.
///
/// 1. An invalid content type is an internal error of the service, whatever the status code.
/// 2. A status code outside 200 to 206 is a failure; a `Status` in the body describes it.
/// 3. An empty body is a failure.
/// 4. The document must be a review of the expected version, or must not state its type.
/// 5. Unknown members are ignored; known members of another type are a failure. The last of repeated members counts;
///    repeated objects are merged.
pub(crate) fn decode_response(
    reply: &HttpResponse,
    version: ReviewVersion,
) -> Result<ReviewStatus, CallError> {
    let content_type = reply.content_type.as_deref().filter(|text| !text.is_empty());
    let media_type = media_type::parse_media_type(content_type.unwrap_or("application/json"))
        .map_err(|fault| http_error::invalid_content_type_error(reply.status, fault))?;
    let body = String::from_utf8_lossy(&reply.body);
    if !(200..=206).contains(&reply.status) {
        let is_text = content_type.is_none() || media_type.starts_with("text/");
        return Err(http_error::error_from_response(reply, is_text, &body));
    }
    decode_review_document(reply, content_type.unwrap_or("application/json"), &body, version)
        .map_err(|DecodeError(message)| CallError::Response {
            status: reply.status,
            retry_advice: RetryAdvice::Never,
            is_timeout: false,
            message: message.into(),
        })
}

/// Checks the answer to a probe. It must be one that [`decode_response`] accepts, and must also be recognizable as a
/// review: a service that answers every path with `{}` is not a webhook.
pub(crate) fn check_probe_response(
    reply: &HttpResponse,
    version: ReviewVersion,
) -> Result<(), CallError> {
    decode_response(reply, version)?;
    let is_review =
        response_document::parse_response_document(&String::from_utf8_lossy(&reply.body))
            .is_ok_and(|document| is_recognizable_review(&document));
    if is_review {
        return Ok(());
    }
    let message = "the answer is not a SubjectAccessReview: it has neither kind nor status.allowed";
    Err(CallError::Response {
        status: reply.status,
        retry_advice: RetryAdvice::Never,
        is_timeout: false,
        message: message.into(),
    })
}

/// Reports whether a document states its kind or has the field `status.allowed`.
fn is_recognizable_review(document: &DocumentValue) -> bool {
    document.object_members().iter().any(|(name, value)| match value {
        DocumentValue::Text(text) => name.eq_ignore_ascii_case("kind") && !text.is_empty(),
        DocumentValue::Object(_) => {
            name == "status" && value.object_members().iter().any(|(name, _)| name == "allowed")
        }
        _ => false,
    })
}

fn decode_review_document(
    reply: &HttpResponse,
    content_type: &str,
    body: &str,
    version: ReviewVersion,
) -> Result<ReviewStatus, DecodeError> {
    if body.is_empty() {
        let status = reply.status;
        let content_type = truncate_to_bytes(content_type, NAME_BYTES_MAX);
        return Err(DecodeError(format!(
            "0-length response with status code: {status} and content type: {content_type}"
        )));
    }
    let document = response_document::parse_response_document(body)?;
    check_kind_and_version(&read_kind_and_version(&document)?, version)?;
    read_review_status(document, version)
}

/// The type that a document states. Missing parts are empty.
pub(crate) struct DocumentKindAndVersion {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
}

/// Reads `kind` and `apiVersion`. As in Kubernetes, case does not matter.
pub(crate) fn read_kind_and_version(
    document: &DocumentValue,
) -> Result<DocumentKindAndVersion, DecodeError> {
    if !matches!(document, DocumentValue::Object(_) | DocumentValue::Null) {
        let found = document.go_type_name();
        return Err(DecodeError(unknown_type_message(&format!(
            "json: cannot unmarshal {found} into Go value of type struct {{ APIVersion string \
             \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
        ))));
    }
    let (mut api_version, mut kind) = ("", "");
    for (name, value) in document.object_members() {
        let (field, place) = if name.eq_ignore_ascii_case("kind") {
            ("kind", &mut kind)
        } else if name.eq_ignore_ascii_case("apiVersion") {
            ("apiVersion", &mut api_version)
        } else {
            continue;
        };
        match value {
            DocumentValue::Text(text) => *place = text,
            DocumentValue::Null => {}
            other => {
                return Err(DecodeError(unknown_type_message(&type_mismatch_message(
                    other,
                    &format!(".{field}"),
                    "string",
                ))));
            }
        }
    }
    let (group, version) = match api_version.split_once('/') {
        None => ("", api_version),
        Some((_, version)) if version.contains('/') => {
            let shown = truncate_to_bytes(api_version, NAME_BYTES_MAX);
            return Err(DecodeError(format!("unexpected GroupVersion string: {shown}")));
        }
        Some(parts) => parts,
    };
    Ok(DocumentKindAndVersion {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
    })
}

const GROUP: &str = "authorization.k8s.io";
const KIND: &str = "SubjectAccessReview";

/// The Go file in which Kubernetes registers the kinds that it can decode. Its message names the
/// file.
const SCHEME: &str = "k8s.io/client-go/kubernetes/scheme/register.go:84";

fn check_kind_and_version(
    found: &DocumentKindAndVersion,
    expected: ReviewVersion,
) -> Result<(), DecodeError> {
    let kind = if found.kind.is_empty() { KIND } else { &found.kind };
    let (group, version) = match (found.group.as_str(), found.version.as_str()) {
        ("" | GROUP, "") => (GROUP, expected.name()),
        said => said,
    };
    if kind == KIND && group == GROUP && version == expected.name() {
        return Ok(());
    }
    if is_kubernetes_kind(group, version, kind) {
        let expected = expected.name();
        return Err(DecodeError(format!(
            "converting ({version}.{kind}) to ({expected}.{KIND}): unknown conversion"
        )));
    }
    let api_version =
        if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    Err(DecodeError(format!(
        "no kind {} is registered for version {} in scheme \"{SCHEME}\"",
        go_compat::quote(truncate_to_bytes(kind, NAME_BYTES_MAX)),
        go_compat::quote(truncate_to_bytes(&api_version, NAME_BYTES_MAX))
    )))
}

/// Reports whether Kubernetes could decode such a document, and would then find no way to make a
/// review of it. Both cases are failures; only the message differs, so the kinds that a webhook may
/// plausibly send by mistake are enough.
fn is_kubernetes_kind(group: &str, version: &str, kind: &str) -> bool {
    match group {
        "" => version == "v1" && matches!(kind, "ConfigMap" | "Pod" | "Status"),
        GROUP => {
            matches!(version, "v1" | "v1beta1")
                && matches!(
                    kind,
                    "LocalSubjectAccessReview"
                        | "SelfSubjectAccessReview"
                        | "SelfSubjectRulesReview"
                        | "SubjectAccessReview"
                )
        }
        _ => false,
    }
}

fn read_review_status(
    document: DocumentValue,
    version: ReviewVersion,
) -> Result<ReviewStatus, DecodeError> {
    let (mut is_allowed, mut is_denied, mut reason) = (false, false, String::new());
    let DocumentValue::Object(members) = document else {
        return Ok(build_review_status(false, false, reason));
    };
    for (name, value) in members {
        match (name.as_str(), value) {
            (_, DocumentValue::Null) => {}
            ("status", DocumentValue::Object(members)) => {
                for (name, value) in members {
                    let field = format!("SubjectAccessReviewStatus.status.{name}");
                    match (name.as_str(), value) {
                        ("allowed", DocumentValue::Bool(truth)) => is_allowed = truth,
                        ("denied", DocumentValue::Bool(truth)) => is_denied = truth,
                        ("reason", DocumentValue::Text(text)) => reason = text,
                        (_, DocumentValue::Null) | ("evaluationError", DocumentValue::Text(_)) => {}
                        ("allowed" | "denied", other) => {
                            return Err(DecodeError(type_mismatch_message(&other, &field, "bool")));
                        }
                        ("reason" | "evaluationError", other) => {
                            return Err(DecodeError(type_mismatch_message(
                                &other, &field, "string",
                            )));
                        }
                        (_, _) => {}
                    }
                }
            }
            ("metadata" | "spec", DocumentValue::Object(_)) => {}
            ("metadata", other) => {
                return Err(DecodeError(type_mismatch_message(
                    &other,
                    &format!("{KIND}.metadata"),
                    "v1.ObjectMeta",
                )));
            }
            ("spec", other) => {
                let expected = format!("{}.{KIND}Spec", version.name());
                return Err(DecodeError(type_mismatch_message(
                    &other,
                    &format!("{KIND}.spec"),
                    &expected,
                )));
            }
            ("status", other) => {
                let expected = format!("{}.{KIND}Status", version.name());
                return Err(DecodeError(type_mismatch_message(
                    &other,
                    &format!("{KIND}.status"),
                    &expected,
                )));
            }
            (_, _) => {}
        }
    }
    Ok(build_review_status(is_allowed, is_denied, reason))
}

fn build_review_status(is_allowed: bool, is_denied: bool, reason: String) -> ReviewStatus {
    let n_bytes = reason.len();
    ReviewStatus { is_allowed, is_denied, reason: reason.into(), reason_memory_bytes: n_bytes }
}

fn type_mismatch_message(found: &DocumentValue, field: &str, expected: &str) -> String {
    let found = found.go_type_name();
    format!("json: cannot unmarshal {found} into Go struct field {field} of type {expected}")
}

#[cfg(test)]
mod tests;
