//! The answer of a hook, and whether it may be believed (admission §4.4, §4.10).

use std::collections::BTreeMap;

use admission::ReviewVersion;
use api_object::Tree;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;

use crate::failure::{self, CallFailure, NAME_BYTES_MAX, excerpt};
use crate::members;
use crate::observe::Phase;
use crate::refusal::HookStatus;
use crate::review::{KIND, version_name};

/// What a hook has said.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answer {
    pub(crate) is_allowed: bool,
    pub(crate) status: Option<HookStatus>,
    /// Empty unless the hook is mutating and has sent one.
    pub(crate) patch: Vec<u8>,
    /// What the patch is, if it is none that is known here.
    pub(crate) odd_patch_type: Option<String>,
    pub(crate) warnings: Vec<String>,
    pub(crate) audit_annotations: BTreeMap<String, String>,
}

/// An HTTP answer, as far as it matters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Received<'a> {
    pub(crate) code: u16,
    pub(crate) content_type: &'a str,
    pub(crate) body: &'a [u8],
}

/// What upstream calls the place where it knows reviews from. Operators search for its messages.
const SCHEME: &str = "k8s.io/apiserver/pkg/util/webhook/client.go:74";

/// The only type of patch.
const JSON_PATCH: &str = "JSONPatch";

/// Reads an answer to the question `uid` and checks it.
///
/// 1. The code must be one of success, and there must be a body.
/// 2. The body must be a review of the version that was sent; one that names neither version nor kind
///    is taken for it. A `Status` is a failure by itself.
/// 3. The review must hold an answer that keeps the rules of its version.
pub(crate) fn read(
    received: Received<'_>,
    version: ReviewVersion,
    phase: Phase,
    uid: &str,
) -> Result<Answer, CallFailure> {
    let Received { code, content_type, body } = received;
    if !(200..=206).contains(&code) {
        let is_text = content_type.is_empty() || content_type.starts_with("text/");
        return Err(failure::of_reply(code, is_text, body));
    }
    if body.is_empty() {
        let content_type = excerpt(content_type, NAME_BYTES_MAX);
        let what =
            format!("0-length response with status code: {code} and content type: {content_type}");
        return Err(CallFailure::no_answer(what));
    }
    let document = parse(body).map_err(undecodable)?;
    let document_type =
        TypeMeta::deserialize(&document).map_err(|error| undecodable(without_value(&error)))?;
    match version {
        ReviewVersion::V1alpha1 => first(document),
        ReviewVersion::V1beta1 | ReviewVersion::V1 => {
            if !document_type.is_review_of(version)? {
                return status(document);
            }
            let review: Review = serde_json::from_value(document).map_err(mistyped)?;
            let response = review.response.ok_or_else(absent)?;
            match version {
                ReviewVersion::V1 => strict(response, &document_type, phase, uid),
                _ => lenient(response, phase),
            }
        }
    }
}

fn undecodable(cause: impl std::fmt::Display) -> CallFailure {
    CallFailure::no_answer(format!("couldn't get version/kind; json parse error: {cause}"))
}

/// A member of the document is of a wrong type.
fn mistyped(error: serde_json::Error) -> CallFailure {
    CallFailure::no_answer(without_value(&error))
}

/// What the library says of a value of a wrong type, without the value, which is a part of the body.
fn without_value(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let value = text.find(['`', '"']).zip(text.rfind(", expected"));
    match value.and_then(|(start, end)| text.get(..start).zip(text.get(end..))) {
        Some((before, after)) => format!("{}{after}", before.trim_end()),
        None => text,
    }
}

/// The object in a body; null is one without members. The words for anything else are Go's, and
/// upstream has read it as YAML, where text that is not JSON is a string.
fn parse(body: &[u8]) -> Result<Value, String> {
    const WANTED: &str = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind \
                          string \"json:\\\"kind,omitempty\\\"\" }";
    let found = match serde_json::from_slice(body) {
        Ok(Value::Null) => return Ok(Value::Object(Tree::new())),
        Ok(document @ Value::Object(_)) => return Ok(document),
        Ok(other) => json_type(&other),
        Err(_) if !body.trim_ascii_start().starts_with(b"{") => "string",
        Err(error) => return Err(error.to_string()),
    };
    Err(format!("json: cannot unmarshal {found} into Go value of type {WANTED}"))
}

/// What Go calls the type of a value.
pub(crate) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn absent() -> CallFailure {
    CallFailure::bad_answer("webhook response was absent")
}

/// A `Status` where a review belongs: a failure, unless it says success and thereby nothing.
fn status(document: Value) -> Result<Answer, CallFailure> {
    let told: HookStatus = serde_json::from_value(document).map_err(mistyped)?;
    match told.status.as_deref() {
        Some("Success") => Err(absent()),
        _ => Err(failure::of_status(told)),
    }
}

/// The answer of the proposal's form is in the status of the review.
fn first(document: Value) -> Result<Answer, CallFailure> {
    let review: FirstReview = serde_json::from_value(document).map_err(mistyped)?;
    let status = review.status.ok_or_else(absent)?;
    Ok(Answer {
        is_allowed: status.allowed.unwrap_or_default(),
        status: status.status,
        ..Answer::default()
    })
}

/// The rules of v1.
fn strict(
    response: Response,
    document_type: &TypeMeta,
    phase: Phase,
    uid: &str,
) -> Result<Answer, CallFailure> {
    let own_uid = response.uid.as_deref().unwrap_or_default();
    if own_uid != uid {
        return Err(CallFailure::bad_answer(format!(
            "expected response.uid={}, got {}",
            go_compat::quote(uid),
            go_compat::quote(excerpt(own_uid, NAME_BYTES_MAX))
        )));
    }
    if !document_type.is_complete() {
        return Err(CallFailure::bad_answer(format!(
            "expected webhook response of admission.k8s.io/v1, Kind={KIND}, got {document_type}"
        )));
    }
    let patch = patch_bytes(&response)?;
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
        return Err(CallFailure::bad_answer(complaint));
    }
    let odd_patch_type = response.patch_type.clone().filter(|own| own != JSON_PATCH);
    Ok(Answer { patch, odd_patch_type, ..Answer::from(response) })
}

/// The rules of v1beta1: whatever the type of a patch is said to be, it is a JSON Patch.
fn lenient(response: Response, phase: Phase) -> Result<Answer, CallFailure> {
    let patch = patch_bytes(&response)?;
    match phase {
        Phase::Mutating => Ok(Answer { patch, ..Answer::from(response) }),
        Phase::Validating => Ok(Answer::from(response)),
    }
}

/// The bytes of a patch, which Go reads with or without line breaks in between.
fn patch_bytes(response: &Response) -> Result<Vec<u8>, CallFailure> {
    let text = response.patch.as_deref().unwrap_or_default().replace(['\r', '\n'], "");
    STANDARD
        .decode(text)
        .map_err(|cause| CallFailure::no_answer(format!("illegal base64 data: {cause}")))
}

/// Version and kind of a document. They are texts or absent.
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

    fn is_complete(&self) -> bool {
        !self.api_version().is_empty() && !self.kind().is_empty()
    }

    /// Whether the document is a review of a version; false for a `Status`. What is not said is as
    /// expected.
    fn is_review_of(&self, version: ReviewVersion) -> Result<bool, CallFailure> {
        let version = version_name(version);
        let expected = format!("admission.k8s.io/{version}");
        let api_version =
            Some(self.api_version()).filter(|own| !own.is_empty()).unwrap_or(&expected);
        let kind = Some(self.kind()).filter(|own| !own.is_empty()).unwrap_or(KIND);
        match (api_version, kind) {
            (own, KIND) if own == expected => Ok(true),
            ("v1", "Status") => Ok(false),
            ("admission.k8s.io/v1" | "admission.k8s.io/v1beta1", KIND) => {
                let own = api_version.trim_start_matches("admission.k8s.io/");
                Err(CallFailure::no_answer(format!(
                    "converting ({own}.{KIND}) to ({version}.{KIND}): unknown conversion"
                )))
            }
            (own, kind) => Err(CallFailure::no_answer(format!(
                "no kind {} is registered for version {} in scheme \"{SCHEME}\"",
                go_compat::quote(excerpt(kind, NAME_BYTES_MAX)),
                go_compat::quote(excerpt(own, NAME_BYTES_MAX))
            ))),
        }
    }
}

/// As Kubernetes prints a kind with its version.
impl std::fmt::Display for TypeMeta {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (group, version) =
            self.api_version().split_once('/').unwrap_or(("", self.api_version()));
        let cut = |text| excerpt(text, NAME_BYTES_MAX);
        write!(f, "{}/{}, Kind={}", cut(group), cut(version), cut(self.kind()))
    }
}

#[derive(Deserialize)]
struct Review {
    #[serde(default, deserialize_with = "members::object")]
    response: Option<Response>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    uid: Option<String>,
    allowed: Option<bool>,
    #[serde(default, deserialize_with = "members::object")]
    status: Option<HookStatus>,
    patch: Option<String>,
    patch_type: Option<String>,
    audit_annotations: Option<BTreeMap<String, Option<String>>>,
    warnings: Option<Vec<Option<String>>>,
}

#[derive(Deserialize)]
struct FirstReview {
    #[serde(default, deserialize_with = "members::object")]
    status: Option<FirstStatus>,
}

#[derive(Deserialize)]
struct FirstStatus {
    allowed: Option<bool>,
    #[serde(default, deserialize_with = "members::object")]
    status: Option<HookStatus>,
}

/// Without the patch, which has rules of its own.
impl From<Response> for Answer {
    fn from(response: Response) -> Self {
        let annotations = response.audit_annotations.unwrap_or_default().into_iter();
        let warnings = response.warnings.unwrap_or_default().into_iter();
        Self {
            is_allowed: response.allowed.unwrap_or_default(),
            status: response.status,
            patch: Vec::new(),
            odd_patch_type: None,
            warnings: warnings.map(Option::unwrap_or_default).collect(),
            audit_annotations: annotations
                .map(|(key, value)| (key, value.unwrap_or_default()))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests;
