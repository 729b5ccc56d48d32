//! ResourceAccessReview and LocalResourceAccessReview: the subjects that may do something.

use std::borrow::Cow;

use crate::review::{AccessQuestion, AccessTarget, Spec};
use api_object::GroupKind;
use authz::{Attributes, Resource, Subjects, Target, User};
use field_errors::{FieldErrors, FieldPath};
use serde_json::{Map, Value};

use crate::invalid_review::{finish_validation, local_path_error, wrong_namespace};
use crate::metadata::Metadata;
use crate::prepare::ReviewRequest;
use crate::read_body::{Fields, MalformedBody, read_target_spec};
use crate::response::{Response, to_json_tree};
use crate::review_error::ReviewError;
use crate::review_kind::ReviewKind;

/// A question about everybody who may do one thing.
#[derive(Debug)]
pub struct SubjectsReview {
    pub(crate) response: Response,
    pub(crate) question: AccessQuestion<'static>,
    /// The namespace that a review of the whole cluster asks about.
    pub(crate) guarded_namespace: Option<String>,
}

impl SubjectsReview {
    /// The permission that the caller needs besides creating this review: a caller that asks about a
    /// namespace through the cluster-scoped review must be allowed to create the review there.
    pub fn permission<'a>(&'a self, caller: Option<&'a User>) -> Option<Attributes<'a>> {
        let namespace = self.guarded_namespace.as_deref()?;
        let local = ReviewKind::LocalResourceAccessReview;
        let resource = Resource {
            api_group: local.group(),
            api_version: "v1alpha1",
            namespace,
            resource: local.plural(),
            ..Resource::default()
        };
        Some(Attributes { user: caller, verb: "create", target: Target::Resource(resource) })
    }

    /// The attributes for the chain, without a user.
    pub fn attributes(&self) -> Attributes<'_> {
        Attributes { user: None, ..self.question.attributes() }
    }

    /// The body of the answer: two sorted lists, and what they do not say.
    pub fn respond(self, subjects: &Subjects) -> Value {
        let mut status = Map::new();
        status.insert("users".to_owned(), subjects.users.iter().map(String::as_str).collect());
        status.insert("groups".to_owned(), subjects.groups.iter().map(String::as_str).collect());
        let mut notes = subjects.notes.clone();
        notes.extend(self.question.evaluation_error(None));
        if !notes.is_empty() {
            status.insert("evaluationError".to_owned(), notes.join("; ").into());
        }
        self.response.with_status(status)
    }
}

pub(crate) fn prepare(
    kind: ReviewKind,
    body: &Value,
    request: &ReviewRequest<'_>,
) -> Result<SubjectsReview, ReviewError> {
    let fields = Fields::from_body(body, kind);
    let is_local = kind == ReviewKind::LocalResourceAccessReview;
    let type_name =
        if is_local { "LocalResourceAccessReviewSpec" } else { "ResourceAccessReviewSpec" };
    let read =
        || Ok((read_target_spec(&fields, request.version, type_name)?, Metadata::read(&fields)?));
    let (spec, mut metadata) =
        read().map_err(|error: MalformedBody| error.in_review(kind, request.version))?;
    metadata.set_namespace(kind, request.namespace)?;
    let mut faults = missing_field_errors(&spec);
    faults.extend(metadata.validation_error(kind));
    if is_local {
        faults.extend(check_local_namespace(&spec, request.namespace));
    }
    let question = spec.question_for_user(&User::default());
    let kind_in_messages = GroupKind::new(kind.group(), kind.name());
    let mut question = finish_validation(question, faults, kind_in_messages)?.into_owned();
    let mut guarded_namespace = None;
    if let AccessTarget::Resource(resource) = &mut question.target {
        if is_local {
            resource.namespace = Cow::Owned(request.namespace.to_owned());
        } else if !resource.namespace.is_empty() {
            guarded_namespace = Some(resource.namespace.to_string());
        }
    }
    let response = Response::new(kind, request, metadata.into_value(), Some(to_json_tree(&spec)));
    Ok(SubjectsReview { response, question, guarded_namespace })
}

/// A question without verb or object would be answered with those who may do everything, which is
/// hardly what is asked.
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

/// A namespace may be left out here, unlike in a LocalSubjectAccessReview.
fn check_local_namespace(spec: &Spec<'_>, namespace: &str) -> FieldErrors {
    let at = FieldPath::root("spec");
    let mut errors = FieldErrors::new();
    if let Some(resource) = &spec.resource_attributes
        && !resource.namespace.is_empty()
        && resource.namespace != namespace
    {
        errors.push(wrong_namespace(&at.child("resourceAttributes"), resource.namespace));
    }
    errors.extend(local_path_error(spec));
    errors
}
