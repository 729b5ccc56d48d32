//! Faults that reviews of several kinds may have.

use crate::review::{AccessQuestion, Spec};
use api_object::GroupKind;
use field_errors::{FieldError, FieldErrors, FieldPath};

use crate::review_error::ReviewError;

/// The question, or all faults of the object: its own first, then the others.
pub(crate) fn finish_validation<'t>(
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

/// The namespace asked about is not that of the review.
pub(crate) fn wrong_namespace(resource_attributes: &FieldPath<'_>, namespace: &str) -> FieldError {
    resource_attributes.child("namespace").invalid(namespace, "must match metadata.namespace")
}

/// Paths have no namespace, so local reviews can not ask about them.
pub(crate) fn local_path_error(spec: &Spec<'_>) -> Option<FieldError> {
    let path = spec.non_resource_attributes.as_ref()?;
    let at = FieldPath::root("spec");
    let detail = "disallowed on this kind of request";
    Some(at.child("nonResourceAttributes").invalid(path.bad_value(), detail))
}
