//! SubjectAccessReview, LocalSubjectAccessReview and SelfSubjectAccessReview.

use crate::review_parsing::{AccessQuestion, Spec};
use api_object::GroupKind;
use authz::{Attributes, Decision, User};
use field_errors::{FieldErrors, FieldPath};
use serde_json::Value;

use crate::invalid_review::{
    into_valid_question, namespace_mismatch_error, path_in_local_review_error,
};
use crate::prepare_review::ReviewRequest;
use crate::read_body::{
    MalformedBodyError, ObjectFields, read_spec_with_user, read_spec_without_user,
};
use crate::review_error::ReviewError;
use crate::review_kind::ReviewKind;
use crate::review_metadata::Metadata;
use crate::review_response::{AccessStatus, ResponseWithoutStatus, to_json_tree};

/// A review of one action of one user.
#[derive(Debug)]
pub struct AccessReview {
    response_without_status: ResponseWithoutStatus,
    access_question: AccessQuestion<'static>,
}

impl AccessReview {
    /// The attributes for the chain.
    pub fn attributes(&self) -> Attributes<'_> {
        self.access_question.attributes()
    }

    /// The body of the response. It contains the errors of authorizers, which do not make the review fail.
    pub fn into_response(self, decision: &Decision) -> Value {
        let status = AccessStatus::new(&self.access_question, decision).into_json_map();
        self.response_without_status.with_status(status)
    }
}

/// Reads and validates a review:
/// 1. The types in the body, and its namespace.
/// 2. The rules of the spec, of the metadata, and of the kind.
/// 3. The user that it is about.
pub(crate) fn prepare_access_review(
    kind: ReviewKind,
    body: &Value,
    request: &ReviewRequest<'_>,
) -> Result<AccessReview, ReviewError> {
    let fields = ObjectFields::from_body(body, kind);
    let nobody = User::default();
    let (spec, mut metadata) = read(kind, &fields, request)?;
    metadata.set_namespace(kind, request.namespace)?;
    let question = match kind {
        ReviewKind::SelfSubjectAccessReview => {
            spec.to_question_for_user(request.user.unwrap_or(&nobody))
        }
        _ => spec.to_question(),
    };
    let mut local = FieldErrors::new();
    if kind == ReviewKind::LocalSubjectAccessReview {
        local = check_local_review_namespace(&spec, metadata.namespace());
    }
    let faults = metadata.validation_error(kind).into_iter().chain(local);
    // Kubernetes' decoder drops the kind before this message, so its messages begin with a dot.
    let kind_in_messages = GroupKind::new(kind.group(), "");
    let question = into_valid_question(question, faults, kind_in_messages)?.into_owned();
    if kind == ReviewKind::SelfSubjectAccessReview && request.user.is_none() {
        return Err(ReviewError::NoUser);
    }
    let response = ResponseWithoutStatus::new(
        kind,
        request,
        metadata.into_json_value(),
        Some(to_json_tree(&spec)),
    );
    Ok(AccessReview { response_without_status: response, access_question: question })
}

fn read<'t>(
    kind: ReviewKind,
    fields: &ObjectFields<'t>,
    request: &ReviewRequest<'_>,
) -> Result<(Spec<'t>, Metadata), ReviewError> {
    let version = request.version;
    let read = || {
        let metadata = Metadata::read(fields)?;
        let spec = match kind {
            ReviewKind::SelfSubjectAccessReview => {
                read_spec_without_user(fields, version, "SelfSubjectAccessReviewSpec")?
            }
            _ => read_spec_with_user(fields, version, "SubjectAccessReviewSpec")?,
        };
        Ok((spec, metadata))
    };
    read().map_err(|malformed: MalformedBodyError| malformed.into_review_error(kind, version))
}

/// Checks that the namespace in the spec of a local review is that of the review. An empty namespace in the spec
/// is an error.
fn check_local_review_namespace(spec: &Spec<'_>, namespace: &str) -> FieldErrors {
    let at = FieldPath::root("spec");
    let mut errors = FieldErrors::new();
    if let Some(resource) = &spec.resource_attributes
        && resource.namespace != namespace
    {
        let at = at.child("resourceAttributes");
        errors.push(namespace_mismatch_error(&at, resource.namespace));
    }
    errors.extend(path_in_local_review_error(spec));
    errors
}
