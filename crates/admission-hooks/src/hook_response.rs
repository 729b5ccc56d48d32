//! The response of a hook: decoding and the rules of its version.

use std::collections::BTreeMap;

use admission::ReviewVersion;
use api_object::Tree;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;

use crate::bounded_document::BoundedDocument;
use crate::call_failure::{
    CallFailure, NAME_BYTES_MAX, failure_from_http_reply, failure_from_status, truncate_text,
};
use crate::deserialize_objects;
use crate::hook_denial::HookStatus;
use crate::hook_observer::Phase;
use crate::json_patch::go_syntax_error;
use crate::review_request::{KIND, review_version_name};

/// The valid response of a hook.
#[derive(Debug, Clone, Default)]
pub(crate) struct HookResponse {
    pub(crate) is_allowed: bool,
    pub(crate) status: Option<HookStatus>,
    /// Empty unless the hook is mutating and has sent one.
    pub(crate) patch: Vec<u8>,
    /// The `patchType`, if it is not `JSONPatch`.
    pub(crate) unknown_patch_type: Option<String>,
    pub(crate) warnings: Vec<String>,
    pub(crate) audit_annotations: BTreeMap<String, String>,
}

/// The parts of an HTTP response that a review is read from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HttpReply<'a> {
    pub(crate) code: u16,
    pub(crate) content_type: &'a str,
    pub(crate) body: &'a [u8],
}

/// The name of the scheme in Kubernetes' error messages, which operators search for.
const SCHEME: &str = "k8s.io/apiserver/pkg/util/webhook/client.go:74";

/// The only supported patch type.
const JSON_PATCH: &str = "JSONPatch";

/// Decodes and checks the response to the review `uid`.
///
/// 1. The status code must be 2xx, and there must be a body.
/// 2. The body must be a review of the version that was sent. A missing version or kind counts as the
///    expected one. A `Status` is a failure.
/// 3. The response in the review must satisfy the rules of its version.
pub(crate) fn parse_response(
    reply: HttpReply<'_>,
    version: ReviewVersion,
    phase: Phase,
    uid: &str,
) -> Result<HookResponse, CallFailure> {
    let HttpReply { code, content_type, body } = reply;
    if !(200..=206).contains(&code) {
        let is_text = content_type.is_empty() || content_type.starts_with("text/");
        return Err(failure_from_http_reply(code, is_text, body));
    }
    if body.is_empty() {
        let content_type = truncate_text(content_type, NAME_BYTES_MAX);
        let what =
            format!("0-length response with status code: {code} and content type: {content_type}");
        return Err(CallFailure::unreadable_response(what));
    }
    let document = parse_json_object(body)?;
    let document_type = TypeMeta::deserialize(&document)
        .map_err(|error| undecodable_failure(error_text_without_value(&error)))?;
    match version {
        ReviewVersion::V1alpha1 => convert_v1alpha1_response(document),
        ReviewVersion::V1beta1 | ReviewVersion::V1 => {
            if !document_type.is_review_of_version(version)? {
                return Err(failure_of_status_document(document));
            }
            let review: ReviewBody =
                serde_json::from_value(document).map_err(wrong_type_failure)?;
            let response = review.response.ok_or_else(missing_response_failure)?;
            match version {
                ReviewVersion::V1 => convert_v1_response(response, &document_type, phase, uid),
                ReviewVersion::V1alpha1 | ReviewVersion::V1beta1 => {
                    convert_v1beta1_response(response, phase)
                }
            }
        }
    }
}

fn undecodable_failure(cause: impl std::fmt::Display) -> CallFailure {
    CallFailure::unreadable_response(format!(
        "couldn't get version/kind; json parse error: {cause}"
    ))
}

/// A field of the document has a wrong type.
fn wrong_type_failure(error: serde_json::Error) -> CallFailure {
    CallFailure::unreadable_response(error_text_without_value(&error))
}

/// The message of serde_json about a value of a wrong type, without the value, which is a part of the body.
fn error_text_without_value(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let value = text.find(['`', '"']).zip(text.rfind(", expected"));
    match value.and_then(|(start, end)| text.get(..start).zip(text.get(end..))) {
        Some((before, after)) => format!("{}{after}", before.trim_end()),
        None => text,
    }
}

/// Decodes the object in a body; null counts as an empty object. The error texts are those of Go, which
/// decodes the body as YAML, where text that is not JSON is a string.
fn parse_json_object(body: &[u8]) -> Result<Value, CallFailure> {
    const WANTED: &str = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind \
                          string \"json:\\\"kind,omitempty\\\"\" }";
    let found = match serde_json::from_slice(body) {
        Ok(BoundedDocument::Other(Value::Null)) => return Ok(Value::Object(Tree::new())),
        Ok(BoundedDocument::Object(tree)) => return Ok(Value::Object(tree)),
        Ok(BoundedDocument::Other(other)) => go_type_name(&other),
        Err(_) if !body.trim_ascii_start().starts_with(b"{") => "string",
        Err(error) => {
            let cause = go_syntax_error(body).unwrap_or_else(|| error.to_string());
            return Err(undecodable_failure(cause));
        }
    };
    Err(undecodable_failure(format!(
        "json: cannot unmarshal {found} into Go value of type {WANTED}"
    )))
}

/// The name of the type of a value in Go's error messages.
pub(crate) fn go_type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn missing_response_failure() -> CallFailure {
    CallFailure::invalid_response("webhook response was absent")
}

/// The failure of a `Status` in place of a review. A successful one counts as a missing response.
fn failure_of_status_document(document: Value) -> CallFailure {
    match serde_json::from_value::<HookStatus>(document) {
        Err(error) => wrong_type_failure(error),
        Ok(status) if status.status.as_deref() == Some("Success") => missing_response_failure(),
        Ok(status) => failure_from_status(status),
    }
}

/// A v1alpha1 hook responds in the status of the review.
fn convert_v1alpha1_response(document: Value) -> Result<HookResponse, CallFailure> {
    let review: V1alpha1ReviewResponseBody =
        serde_json::from_value(document).map_err(wrong_type_failure)?;
    let status = review.status.ok_or_else(missing_response_failure)?;
    Ok(HookResponse {
        is_allowed: status.allowed.unwrap_or_default(),
        status: status.status,
        ..HookResponse::default()
    })
}

/// Applies the rules of v1: uid, version and kind must match, and a patch needs its type.
fn convert_v1_response(
    response: ResponseBody,
    document_type: &TypeMeta,
    phase: Phase,
    uid: &str,
) -> Result<HookResponse, CallFailure> {
    let own_uid = response.uid.as_deref().unwrap_or_default();
    if own_uid != uid {
        return Err(CallFailure::invalid_response(format!(
            "expected response.uid={}, got {}",
            go_compat::quote(uid),
            go_compat::quote(truncate_text(own_uid, NAME_BYTES_MAX))
        )));
    }
    if !document_type.has_version_and_kind() {
        return Err(CallFailure::invalid_response(format!(
            "expected webhook response of admission.k8s.io/v1, Kind={KIND}, got {document_type}"
        )));
    }
    let patch = decode_patch(&response)?;
    let complaint = match (phase, patch.is_empty(), response.patch_type.as_deref()) {
        (Phase::Mutating, false, None) => {
            "webhook returned response.patch but not response.patchType"
        }
        (Phase::Mutating, true, Some(_)) => {
            "webhook returned response.patchType but not response.patch"
        }
        (Phase::Mutating, false, Some("")) => "webhook returned invalid response.patchType of \"\"",
        (Phase::Validating, false, _) => "validating webhook may not return response.patch",
        (Phase::Validating, true, Some(_)) => {
            "validating webhook may not return response.patchType"
        }
        (Phase::Mutating | Phase::Validating, true, None) | (Phase::Mutating, false, Some(_)) => "",
    };
    if !complaint.is_empty() {
        return Err(CallFailure::invalid_response(complaint));
    }
    let unknown_patch_type = response.patch_type.clone().filter(|own| own != JSON_PATCH);
    Ok(HookResponse { patch, unknown_patch_type, ..HookResponse::from(response) })
}

/// Applies the rules of v1beta1: every patch is a JSON Patch, whatever its `patchType`.
fn convert_v1beta1_response(
    response: ResponseBody,
    phase: Phase,
) -> Result<HookResponse, CallFailure> {
    let patch = decode_patch(&response)?;
    match phase {
        Phase::Mutating => Ok(HookResponse { patch, ..HookResponse::from(response) }),
        Phase::Validating => Ok(HookResponse::from(response)),
    }
}

/// Decodes the base64 of a patch, which may contain line breaks, as in Go.
fn decode_patch(response: &ResponseBody) -> Result<Vec<u8>, CallFailure> {
    let text = response.patch.as_deref().unwrap_or_default().replace(['\r', '\n'], "");
    STANDARD
        .decode(text)
        .map_err(|cause| CallFailure::unreadable_response(format!("illegal base64 data: {cause}")))
}

/// The version and kind of a document.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TypeMeta {
    api_version: Option<String>,
    kind: Option<String>,
}

impl TypeMeta {
    fn api_version(&self) -> &str {
        self.api_version.as_deref().unwrap_or_default()
    }

    fn kind(&self) -> &str {
        self.kind.as_deref().unwrap_or_default()
    }

    fn has_version_and_kind(&self) -> bool {
        !self.api_version().is_empty() && !self.kind().is_empty()
    }

    /// Whether the document is a review of a version; false for a `Status`. A missing version or kind counts
    /// as the expected one.
    fn is_review_of_version(&self, version: ReviewVersion) -> Result<bool, CallFailure> {
        let version = review_version_name(version);
        let expected = format!("admission.k8s.io/{version}");
        let api_version =
            Some(self.api_version()).filter(|own| !own.is_empty()).unwrap_or(&expected);
        let kind = Some(self.kind()).filter(|own| !own.is_empty()).unwrap_or(KIND);
        match (api_version, kind) {
            (own, KIND) if own == expected => Ok(true),
            ("v1", "Status") => Ok(false),
            ("admission.k8s.io/v1" | "admission.k8s.io/v1beta1", KIND) => {
                let own = api_version.trim_start_matches("admission.k8s.io/");
                Err(CallFailure::unreadable_response(format!(
                    "converting ({own}.{KIND}) to ({version}.{KIND}): unknown conversion"
                )))
            }
            (own, kind) => Err(CallFailure::unreadable_response(format!(
                "no kind {} is registered for version {} in scheme \"{SCHEME}\"",
                go_compat::quote(truncate_text(kind, NAME_BYTES_MAX)),
                go_compat::quote(truncate_text(own, NAME_BYTES_MAX))
            ))),
        }
    }
}

/// Formats a kind with its version as Kubernetes does.
impl std::fmt::Display for TypeMeta {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (group, version) =
            self.api_version().split_once('/').unwrap_or(("", self.api_version()));
        let cut = |text| truncate_text(text, NAME_BYTES_MAX);
        write!(f, "{}/{}, Kind={}", cut(group), cut(version), cut(self.kind()))
    }
}

#[derive(Deserialize)]
struct ReviewBody {
    #[serde(default, deserialize_with = "deserialize_objects::deserialize_object_or_null")]
    response: Option<ResponseBody>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResponseBody {
    uid: Option<String>,
    allowed: Option<bool>,
    #[serde(default, deserialize_with = "deserialize_objects::deserialize_object_or_null")]
    status: Option<HookStatus>,
    patch: Option<String>,
    patch_type: Option<String>,
    audit_annotations: Option<BTreeMap<String, Option<String>>>,
    warnings: Option<Vec<Option<String>>>,
}

#[derive(Deserialize)]
struct V1alpha1ReviewResponseBody {
    #[serde(default, deserialize_with = "deserialize_objects::deserialize_object_or_null")]
    status: Option<V1alpha1StatusBody>,
}

#[derive(Deserialize)]
struct V1alpha1StatusBody {
    allowed: Option<bool>,
    #[serde(default, deserialize_with = "deserialize_objects::deserialize_object_or_null")]
    status: Option<HookStatus>,
}

/// Converts everything but the patch, whose rules depend on the version.
impl From<ResponseBody> for HookResponse {
    fn from(response: ResponseBody) -> Self {
        let annotations = response.audit_annotations.unwrap_or_default().into_iter();
        let warnings = response.warnings.unwrap_or_default().into_iter();
        Self {
            is_allowed: response.allowed.unwrap_or_default(),
            status: response.status,
            patch: Vec::new(),
            unknown_patch_type: None,
            warnings: warnings.map(Option::unwrap_or_default).collect(),
            audit_annotations: annotations
                .map(|(key, value)| (key, value.unwrap_or_default()))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests;
