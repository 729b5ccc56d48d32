//! How an answer comes about: SubjectAccessExplanation.

use crate::review::Question;
use api_object::{GroupKind, Status};
use authz::{Attributes, Trace};
use authz_chain::{Chain, Outcome};
use serde_json::Value;

use crate::fault::checked;
use crate::kind::Kind;
use crate::metadata::Metadata;
use crate::prepare::Request;
use crate::read::{Fields, Malformed, subject_spec};
use crate::response::{AccessStatus, Response, tree};
use crate::trace::{not_asked, trace_json};

const KIND: Kind = Kind::SubjectAccessExplanation;

/// A question about one action of one user, to be asked with a recorder that is on.
///
/// The spec is that of a SubjectAccessReview. The caller needs `create` on
/// `subjectaccessexplanations` of group `authorization.portcullis.io` and nothing else: the
/// permission is of the cluster, for an explanation shows roles and bindings of all namespaces that
/// were looked at.
#[derive(Debug)]
pub struct ExplanationReview {
    response: Response,
    question: Question<'static>,
}

impl ExplanationReview {
    /// What the chain is to be asked.
    pub fn attributes(&self) -> Attributes<'_> {
        self.question.attributes()
    }

    /// The body of the answer: what a SubjectAccessReview answers, the authorizer that decided, the
    /// events that were recorded and the authorizers that were not asked.
    pub fn respond(self, chain: &Chain, outcome: &Outcome<'_>, trace: &Trace) -> Value {
        let mut status = AccessStatus::new(&self.question, &outcome.decision).into_map();
        if let Some(name) = outcome.decided_by {
            status.insert("decidedBy".to_owned(), name.into());
        }
        status.insert("trace".to_owned(), trace_json(trace));
        if trace.n_dropped() > 0 {
            status.insert("droppedEvents".to_owned(), trace.n_dropped().into());
        }
        let not_asked = not_asked(chain, trace);
        if !not_asked.is_empty() {
            status.insert("notAsked".to_owned(), not_asked.into());
        }
        self.response.with_status(status)
    }
}

pub(crate) fn prepare(body: &Value, request: &Request<'_>) -> Result<ExplanationReview, Status> {
    let fields = Fields::of_body(body, KIND);
    let read = || {
        let spec = subject_spec(&fields, request.version, "SubjectAccessExplanationSpec")?;
        Ok((spec, Metadata::read(&fields)?))
    };
    let (spec, mut metadata) =
        read().map_err(|error: Malformed| error.into_status(KIND, request.version))?;
    metadata.place(KIND, request.namespace)?;
    let kind_in_messages = GroupKind::new(KIND.group(), KIND.name());
    let question = checked(spec.question(), metadata.fault(KIND), &kind_in_messages)?.into_owned();
    let response = Response::new(KIND, request, metadata.into_value(), Some(tree(&spec)));
    Ok(ExplanationReview { response, question })
}
