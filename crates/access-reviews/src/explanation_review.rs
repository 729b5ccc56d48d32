//! SubjectAccessExplanation: an access review with a trace of the decision.

use crate::review_parsing::AccessQuestion;
use api_object::GroupKind;
use authz::{Attributes, Trace};
use authz_chain::{Chain, ChainDecision};
use serde_json::Value;

use crate::invalid_review::into_valid_question;
use crate::prepare_review::ReviewRequest;
use crate::read_body::{MalformedBodyError, ObjectFields, read_spec_with_user};
use crate::review_error::ReviewError;
use crate::review_kind::ReviewKind;
use crate::review_metadata::Metadata;
use crate::review_response::{AccessStatus, ResponseWithoutStatus, to_json_tree};
use crate::trace_json::{authorizers_not_consulted, trace_to_json};

const KIND: ReviewKind = ReviewKind::SubjectAccessExplanation;

/// A review of one action of one user with a trace.
///
/// The spec is that of a SubjectAccessReview. The caller needs `create` on
/// `subjectaccessexplanations` of group `authorization.portcullis.io` and nothing else: the
/// permission is cluster-wide, because an explanation shows roles and bindings of all namespaces that
/// the decision uses.
#[derive(Debug)]
pub struct ExplanationReview {
    response_without_status: ResponseWithoutStatus,
    access_question: AccessQuestion<'static>,
}

impl ExplanationReview {
    /// The attributes for the chain.
    pub fn attributes(&self) -> Attributes<'_> {
        self.access_question.attributes()
    }

    /// The body of the response: that of a SubjectAccessReview, the authorizer that decided, the recorded events, and the
    /// authorizers that were not consulted.
    pub fn into_response(self, chain: &Chain, outcome: &ChainDecision<'_>, trace: &Trace) -> Value {
        let mut status =
            AccessStatus::new(&self.access_question, &outcome.decision).into_json_map();
        if let Some(name) = outcome.deciding_authorizer_name {
            status.insert("decidedBy".to_owned(), name.into());
        }
        status.insert("trace".to_owned(), trace_to_json(trace));
        if trace.n_dropped_trace_entries() > 0 {
            status.insert("droppedEvents".to_owned(), trace.n_dropped_trace_entries().into());
        }
        let authorizers_not_consulted = authorizers_not_consulted(chain, trace);
        if !authorizers_not_consulted.is_empty() {
            status.insert("notAsked".to_owned(), authorizers_not_consulted.into());
        }
        self.response_without_status.with_status(status)
    }
}

pub(crate) fn prepare_explanation_review(
    body: &Value,
    request: &ReviewRequest<'_>,
) -> Result<ExplanationReview, ReviewError> {
    let fields = ObjectFields::from_body(body, KIND);
    let read = || {
        let spec = read_spec_with_user(&fields, request.version, "SubjectAccessExplanationSpec")?;
        Ok((spec, Metadata::read(&fields)?))
    };
    let (spec, mut metadata) = read()
        .map_err(|error: MalformedBodyError| error.into_review_error(KIND, request.version))?;
    metadata.set_namespace(KIND, request.namespace)?;
    let kind_in_messages = GroupKind::new(KIND.group(), KIND.name());
    let question =
        into_valid_question(spec.to_question(), metadata.validation_error(KIND), kind_in_messages)?
            .into_owned();
    let response = ResponseWithoutStatus::new(
        KIND,
        request,
        metadata.into_json_value(),
        Some(to_json_tree(&spec)),
    );
    Ok(ExplanationReview { response_without_status: response, access_question: question })
}
