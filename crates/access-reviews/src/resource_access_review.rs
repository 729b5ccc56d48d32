//! ResourceAccessReview and LocalResourceAccessReview: the subjects that may do something.

use std::borrow::Cow;

use crate::review_parsing::{AccessQuestion, AccessTarget, Spec};
use api_object::GroupKind;
use authz::{Attributes, Namespace, Resource, Subjects, Target, User, Verb};
use field_errors::{FieldErrors, FieldPath};
use serde_json::{Map, Value};

use crate::invalid_review::{
    into_valid_question, namespace_mismatch_error, path_in_local_review_error,
};
use crate::prepare_review::ReviewRequest;
use crate::read_body::{MalformedBodyError, ObjectFields, read_spec_without_user};
use crate::resolve_resource::{ResourceNameField, ResourceNameInBody};
use crate::review_error::ReviewError;
use crate::review_kind::ReviewKind;
use crate::review_metadata::Metadata;
use crate::review_response::{ResponseWithoutStatus, to_json_tree};

/// A review that lists the subjects that may perform one action.
#[derive(Debug)]
pub struct ResourceAccessReview {
    pub(crate) response_without_status: ResponseWithoutStatus,
    pub(crate) access_question: AccessQuestion<'static>,
    /// The namespace that a cluster-scoped review asks about, for which the caller needs a permission.
    pub(crate) namespace_to_authorize: Option<String>,
    pub(crate) resource_name_in_body: ResourceNameInBody,
}

impl ResourceAccessReview {
    /// The permission that the caller needs besides creating this review: a caller that asks about a
    /// namespace through the cluster-scoped review must be allowed to create the review there.
    pub fn required_permission<'a>(&'a self, caller: Option<&'a User>) -> Option<Attributes<'a>> {
        let namespace = self.namespace_to_authorize.as_deref()?;
        let local = ReviewKind::LocalResourceAccessReview;
        let resource = Resource {
            api_group: local.group(),
            api_version: "v1alpha1",
            namespace: Namespace::new(namespace),
            resource: local.plural_resource_name(),
            ..Resource::default()
        };
        Some(Attributes { user: caller, verb: Verb::CREATE, target: Target::Resource(resource) })
    }

    /// The attributes for the chain, without a user.
    pub fn attributes(&self) -> Attributes<'_> {
        Attributes { user: None, ..self.access_question.attributes() }
    }

    /// Builds the body of the response: the sorted users and groups, and notes about subjects that the lists lack.
    pub fn into_response(self, subjects: &Subjects) -> Value {
        let mut status = Map::new();
        status.insert("users".to_owned(), subjects.users.iter().map(String::as_str).collect());
        status.insert("groups".to_owned(), subjects.groups.iter().map(String::as_str).collect());
        let mut notes = subjects.subject_listing_notes.clone();
        notes.extend(self.access_question.evaluation_error(None));
        if !notes.is_empty() {
            status.insert("evaluationError".to_owned(), notes.join("; ").into());
        }
        self.response_without_status.with_status(status)
    }
}

pub(crate) fn prepare_resource_access_review(
    kind: ReviewKind,
    body: &Value,
    request: &ReviewRequest<'_>,
) -> Result<ResourceAccessReview, ReviewError> {
    let fields = ObjectFields::from_body(body, kind);
    let is_local = kind == ReviewKind::LocalResourceAccessReview;
    let type_name =
        if is_local { "LocalResourceAccessReviewSpec" } else { "ResourceAccessReviewSpec" };
    let read = || {
        Ok((read_spec_without_user(&fields, request.version, type_name)?, Metadata::read(&fields)?))
    };
    let (spec, mut metadata) = read()
        .map_err(|error: MalformedBodyError| error.into_review_error(kind, request.version))?;
    metadata.set_namespace(kind, request.namespace)?;
    let mut faults = missing_field_errors(&spec);
    faults.extend(metadata.validation_error(kind));
    if is_local {
        faults.extend(check_local_review_namespace(&spec, request.namespace));
    }
    let question = spec.to_question_for_user(&User::default());
    let kind_in_messages = GroupKind::new(kind.group(), kind.name());
    let review_kind = kind_in_messages.clone();
    let mut question = into_valid_question(question, faults, kind_in_messages)?.into_owned();
    let mut namespace_to_authorize = None;
    if let AccessTarget::Resource(resource) = &mut question.target {
        if is_local {
            resource.namespace = Cow::Owned(request.namespace.to_owned());
        } else if !resource.namespace.is_empty() {
            namespace_to_authorize = Some(resource.namespace.to_string());
        }
    }
    let response = ResponseWithoutStatus::new(
        kind,
        request,
        metadata.into_json_value(),
        Some(to_json_tree(&spec)),
    );
    let attributes = spec.resource_attributes.as_ref();
    let resource_name_in_body = ResourceNameInBody {
        field: ResourceNameField::ResourceAttributes,
        name_in_body: attributes.map(|it| it.resource.to_owned()).unwrap_or_default(),
        review_kind,
        review_name: String::new(),
    };
    Ok(ResourceAccessReview {
        response_without_status: response,
        access_question: question,
        namespace_to_authorize,
        resource_name_in_body,
    })
}

/// The errors of missing fields. A review without verb or target would list only the subjects that may do
/// everything, which the client hardly intends.
fn missing_field_errors(spec: &Spec<'_>) -> FieldErrors {
    let at = FieldPath::root("spec");
    let mut errors = FieldErrors::new();
    let mut require = |at: &FieldPath<'_>, name: &'static str, text: &str| {
        if text.is_empty() {
            errors.push(at.child(name).required(""));
        }
    };
    if let Some(resource) = &spec.resource_attributes {
        let at = at.child("resourceAttributes");
        require(&at, "verb", resource.verb);
        require(&at, "resource", resource.resource);
    }
    if let Some(path) = &spec.non_resource_attributes {
        let at = at.child("nonResourceAttributes");
        require(&at, "verb", path.verb);
        require(&at, "path", path.path);
    }
    errors
}

/// Checks the namespace of a local review. Unlike in a LocalSubjectAccessReview, the spec may omit it.
fn check_local_review_namespace(spec: &Spec<'_>, namespace: &str) -> FieldErrors {
    let at = FieldPath::root("spec");
    let mut errors = FieldErrors::new();
    if let Some(resource) = &spec.resource_attributes
        && !resource.namespace.is_empty()
        && resource.namespace != namespace
    {
        errors.push(namespace_mismatch_error(&at.child("resourceAttributes"), resource.namespace));
    }
    errors.extend(path_in_local_review_error(spec));
    errors
}
