//! From one line of text to a question.

use document::decode::Problem;
use document::{Diagnostic, Entry, Fault, Finding, Lines, Node, Span, Value, json};
use field_errors::FieldError;

use super::decode::{Decoded, Form, decode};
use super::question::Question;
use super::wire;

/// The longest line that is read, in bytes: as much as a server reads of one request, at least.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// The versions in which the group of reviews is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// The current one.
    V1,
    /// The one before, in which the list of groups is called `group`.
    V1beta1,
}

/// Reads a line that holds a spec, or a whole review of version v1 or v1beta1.
///
/// Unlike a server, which ignores fields that it does not know, this refuses them: a question with
/// a misspelled namespace is another question.
///
/// # Errors
/// Every fault, with `file` and the number of the line, in Kubernetes' words where it has any.
///
/// ```
/// let line = r#"{"user": "ana", "nonResourceAttributes": {"path": "/healthz", "verb": "get"}}"#;
/// let question = access_reviews::review::read_line("questions", 1, line).unwrap();
/// assert_eq!(question.attributes().path(), "/healthz");
///
/// let faults = access_reviews::review::read_line("questions", 7, r#"{"usr": "ana"}"#).unwrap_err();
/// assert_eq!(faults[0].fault.to_string(), "unknown field \"usr\"");
/// assert_eq!((faults[0].place.line, faults[0].place.column), (7, 2));
/// ```
pub fn read_line<'t>(
    file: &str,
    line: usize,
    text: &'t str,
) -> Result<Question<'t>, Vec<Diagnostic>> {
    match quick_look(text) {
        Some(question) => Ok(question),
        None => read_with_places(text).map_err(|findings| {
            let lines = Lines::new(text);
            let findings = findings.into_iter().map(|finding| finding.locate(file, &lines));
            findings.map(|finding| on_line(finding, line)).collect()
        }),
    }
}

fn on_line(mut diagnostic: Diagnostic, line: usize) -> Diagnostic {
    diagnostic.place.line = diagnostic.place.line.saturating_add(line).saturating_sub(1);
    diagnostic
}

/// The question, if the line is written plainly and nothing is wrong with it.
pub(super) fn quick_look(text: &str) -> Option<Question<'_>> {
    if text.len() > LINE_BYTES_MAX {
        return None;
    }
    if let Some(spec) = wire::from_object::<wire::Spec<'_>>(text.as_bytes()) {
        let has_two_lists = spec.groups.is_some() && spec.group.is_some();
        return if has_two_lists { None } else { spec.question().ok() };
    }
    let (_, spec) = plain_review(text.as_bytes())?;
    spec.question().ok()
}

/// The spec of a whole review, if the review is written plainly: without escapes, `null`, repeated
/// or unknown fields, and with empty metadata. What is not is left to slower readers, who tell what
/// is to be told about it.
///
/// ```
/// let review = br#"{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
///     "spec": {"user": "ana", "nonResourceAttributes": {"path": "/healthz", "verb": "get"}}}"#;
/// let (version, spec) = access_reviews::review::plain_review(review).unwrap();
/// assert_eq!((version, spec.user), (access_reviews::review::Version::V1, "ana"));
/// ```
pub fn plain_review(text: &[u8]) -> Option<(Version, wire::Spec<'_>)> {
    let review: wire::Review<'_> = wire::from_object(text)?;
    let (version, other_list) = match review.api_version {
        wire::V1 => (Version::V1, &review.spec.group),
        wire::V1BETA1 => (Version::V1beta1, &review.spec.groups),
        _ => return None,
    };
    if review.kind != wire::KIND || other_list.is_some() {
        return None;
    }
    Some((version, review.spec))
}

pub(super) fn read_with_places(text: &str) -> Result<Question<'static>, Vec<Finding>> {
    if text.len() > LINE_BYTES_MAX {
        let message = format!("the line is longer than {LINE_BYTES_MAX} bytes");
        return Err(vec![whole_line(message, Span::default())]);
    }
    let root = json::read(text).map_err(|error| vec![whole_line(error.message, error.span)])?;
    let Decoded { form, spec, problems } = decode(text, &root);
    if !problems.is_empty() {
        return Err(problems.into_iter().map(Finding::from).collect());
    }
    spec.question().map(Question::into_owned).map_err(|errors| {
        let locate = |error: FieldError| {
            let span = place_of(&root, form, &error.path);
            Finding { fault: Fault::Field(error), span, hint: None, notes: Vec::new() }
        };
        errors.into_iter().map(locate).collect()
    })
}

fn whole_line(message: String, span: Span) -> Finding {
    Finding::from(Problem { path: String::new(), message, span, hint: None })
}

/// The place of a field, or of the nearest thing around it that is there.
fn place_of(root: &Node, form: Form, path: &str) -> Span {
    let path = match form {
        Form::Bare => path.strip_prefix("spec").unwrap_or(path).trim_start_matches('.'),
        Form::V1 | Form::V1beta1 => path,
    };
    let mut node = root;
    for step in path.split(['.', '[']).filter(|step| !step.is_empty()) {
        let next = match &node.value {
            Value::Object(entries) => entries.iter().find(|entry| entry.key == step).map(value),
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

fn value(entry: &Entry) -> &Node {
    &entry.value
}
