//! Reads the question of a review that is one line of text.

use document::{
    DecodeProblem, Diagnostic, Entry, Fault, LineIndex, Node, Span, SpannedFault, Value, json,
};
use field_errors::FieldError;

use super::access_question::AccessQuestion;
use super::plain_v1_review_reader;
use super::positioned_review::{DecodedReview, ReviewForm, decode_review};
use super::review_serde_types;

/// Upper bound on the bytes of a line, which is at least that of request bodies.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// The versions in which the group of reviews is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// `v1`, the version that Kubernetes serves.
    V1,
    /// `v1beta1`, in which the list of groups is called `group`.
    V1beta1,
}

/// Reads a line that holds a spec, or a whole review of version v1 or v1beta1.
///
/// Unlike a server, which ignores unknown fields, this function refuses them: a review with a
/// misspelled namespace would ask another question.
///
/// # Errors
/// Every fault, with `file` and the number of the line, in Kubernetes' words where it has any.
///
/// ```
/// let line = r#"{"user": "ana", "nonResourceAttributes": {"path": "/healthz", "verb": "get"}}"#;
/// let question = access_reviews::review_parsing::read_review_line("questions", 1, line).unwrap();
/// assert_eq!(question.attributes().path(), "/healthz");
///
/// let faults = access_reviews::review_parsing::read_review_line("questions", 7, r#"{"usr": "ana"}"#).unwrap_err();
/// assert_eq!(faults[0].fault.to_string(), "unknown field \"usr\"");
/// assert_eq!((faults[0].position.line, faults[0].position.column), (7, 2));
/// ```
pub fn read_review_line<'t>(
    file: &str,
    line: usize,
    text: &'t str,
) -> Result<AccessQuestion<'t>, Vec<Diagnostic>> {
    match read_plain_review_line(text) {
        Some(question) => Ok(question),
        None => read_line_with_positions(text).map_err(|findings| {
            let lines = LineIndex::new(text);
            let findings = findings
                .into_iter()
                .map(|finding| finding.into_positioned_diagnostic(file, &lines));
            findings.map(|finding| diagnostic_on_line(finding, line)).collect()
        }),
    }
}

fn diagnostic_on_line(mut diagnostic: Diagnostic, line: usize) -> Diagnostic {
    diagnostic.position.line = diagnostic.position.line.saturating_add(line).saturating_sub(1);
    diagnostic
}

/// Reads the question of a line that is written plainly and has no faults; otherwise returns `None`.
pub(super) fn read_plain_review_line(text: &str) -> Option<AccessQuestion<'_>> {
    if text.len() > LINE_BYTES_MAX {
        return None;
    }
    if let Some(spec) =
        review_serde_types::parse_json_object::<review_serde_types::Spec<'_>>(text.as_bytes())
    {
        let has_two_lists = spec.groups.is_some() && spec.group.is_some();
        return if has_two_lists { None } else { spec.to_question().ok() };
    }
    let (_, spec) = parse_plain_review(text.as_bytes())?;
    spec.to_question().ok()
}

/// Parses the spec of a whole review, if the review is written plainly: without escapes, `null`,
/// repeated or unknown fields, and with empty metadata. Otherwise it returns `None`, and the caller
/// uses a slower reader that reports faults.
///
/// ```
/// let review = br#"{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
///     "spec": {"user": "ana", "nonResourceAttributes": {"path": "/healthz", "verb": "get"}}}"#;
/// let (version, spec) = access_reviews::review_parsing::parse_plain_review(review).unwrap();
/// assert_eq!((version, spec.user), (access_reviews::review_parsing::Version::V1, "ana"));
/// ```
pub fn parse_plain_review(text: &[u8]) -> Option<(Version, review_serde_types::Spec<'_>)> {
    if let Some(spec) = std::str::from_utf8(text).ok().and_then(plain_v1_review_reader::read_review)
    {
        return Some((Version::V1, spec));
    }
    let review: review_serde_types::PlainReview<'_> = review_serde_types::parse_json_object(text)?;
    let (version, other_list) = match review.api_version {
        review_serde_types::V1 => (Version::V1, &review.spec.group),
        review_serde_types::V1BETA1 => (Version::V1beta1, &review.spec.groups),
        _ => return None,
    };
    if review.kind != review_serde_types::KIND || other_list.is_some() {
        return None;
    }
    Some((version, review.spec))
}

pub(super) fn read_line_with_positions(
    text: &str,
) -> Result<AccessQuestion<'static>, Vec<SpannedFault>> {
    if text.len() > LINE_BYTES_MAX {
        let message = format!("the line is longer than {LINE_BYTES_MAX} bytes");
        return Err(vec![whole_line_fault(message, Span::default())]);
    }
    let root = json::parse_json(text)
        .map_err(|error| vec![whole_line_fault(error.message, error.span)])?;
    let DecodedReview { review_form: form, spec, decode_problems: problems } =
        decode_review(text, &root);
    if !problems.is_empty() {
        return Err(problems.into_iter().map(SpannedFault::from).collect());
    }
    spec.to_question().map(AccessQuestion::into_owned).map_err(|errors| {
        let locate = |error: FieldError| {
            let span = find_field_span(&root, form, &error.path);
            SpannedFault {
                fault: Fault::Field(error),
                span,
                hint: None,
                expression_issues: Vec::new(),
            }
        };
        errors.into_iter().map(locate).collect()
    })
}

fn whole_line_fault(message: String, span: Span) -> SpannedFault {
    SpannedFault::from(DecodeProblem { path: String::new(), message, span, hint: None })
}

/// The span of a field, or of its nearest ancestor that exists.
fn find_field_span(root: &Node, form: ReviewForm, path: &str) -> Span {
    let path = match form {
        ReviewForm::BareSpec => path.strip_prefix("spec").unwrap_or(path).trim_start_matches('.'),
        ReviewForm::V1 | ReviewForm::V1beta1 => path,
    };
    let mut node = root;
    for step in path.split(['.', '[']).filter(|step| !step.is_empty()) {
        let next = match &node.value {
            Value::Object(entries) => {
                entries.iter().find(|entry| entry.key == step).map(entry_value)
            }
            Value::List(items) => {
                step.trim_end_matches(']').parse().ok().and_then(|idx: usize| items.get(idx))
            }
            _ => None,
        };
        match next {
            Some(next) => node = next,
            None => break,
        }
    }
    node.span
}

fn entry_value(entry: &Entry) -> &Node {
    &entry.value
}
