//! Errors that reviews of several kinds may have.

use crate::review_parsing::{AccessQuestion, Spec};
use api_object::GroupKind;
use field_errors::{FieldError, FieldErrors, FieldPath};

use crate::review_error::ReviewError;

/// Returns the question, or all errors of the review: those of the question first, then the others.
pub(crate) fn into_valid_question<'t>(
    question: Result<AccessQuestion<'t>, FieldErrors>,
    others: impl IntoIterator<Item = FieldError>,
    kind: GroupKind,
) -> Result<AccessQuestion<'t>, ReviewError> {
    let (question, mut errors) = match question {
        Ok(question) => (Some(question), FieldErrors::new()),
        Err(errors) => (None, errors),
    };
    errors.extend(others);
    match question {
        Some(question) if errors.is_empty() => Ok(question),
        Some(_) | None => Err(ReviewError::Invalid { kind, name: String::new(), errors }),
    }
}

/// The error of a spec that names another namespace than the review.
pub(crate) fn namespace_mismatch_error(
    resource_attributes: &FieldPath<'_>,
    namespace: &str,
) -> FieldError {
    resource_attributes.child("namespace").invalid(namespace, "must match metadata.namespace")
}

/// The error of a local review about a path, which has no namespace.
pub(crate) fn path_in_local_review_error(spec: &Spec<'_>) -> Option<FieldError> {
    let path = spec.non_resource_attributes.as_ref()?;
    let at = FieldPath::root("spec");
    let detail = "disallowed on this kind of request";
    Some(at.child("nonResourceAttributes").invalid(path.to_bad_value(), detail))
}
