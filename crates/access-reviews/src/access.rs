//! May somebody do something: SubjectAccessReview, its local form and the one about oneself.

use crate::review::{Question, Spec};
use api_object::{GroupKind, Status};
use authz::{Attributes, Decision, User};
use field_errors::{FieldErrors, FieldPath};
use serde_json::Value;

use crate::fault::{checked, path_fault, wrong_namespace};
use crate::kind::Kind;
use crate::metadata::Metadata;
use crate::prepare::{Request, no_user};
use crate::read::{Fields, Malformed, subject_spec, target_spec};
use crate::response::{AccessStatus, Response, tree};

/// A question about one action of one user.
#[derive(Debug)]
pub struct AccessReview {
    response: Response,
    question: Question<'static>,
}

impl AccessReview {
    /// What the chain is to be asked.
    pub fn attributes(&self) -> Attributes<'_> {
        self.question.attributes()
    }

    /// The body of the answer. A failure of an authorizer is told there and fails nothing.
    pub fn respond(self, decision: &Decision) -> Value {
        let status = AccessStatus::new(&self.question, decision).into_map();
        self.response.with_status(status)
    }
}

/// 1. The types of the body, and the place that it says.
/// 2. Its rules: those of the spec, of the metadata, and of the kind.
/// 3. Whom it is about.
pub(crate) fn prepare(
    kind: Kind,
    body: &Value,
    request: &Request<'_>,
) -> Result<AccessReview, Status> {
    let fields = Fields::of_body(body, kind);
    let nobody = User::default();
    let (spec, mut metadata) = read(kind, &fields, request)?;
    metadata.place(kind, request.namespace)?;
    let question = match kind {
        Kind::SelfSubjectAccessReview => spec.question_for_user(request.user.unwrap_or(&nobody)),
        _ => spec.question(),
    };
    let mut local = FieldErrors::new();
    if kind == Kind::LocalSubjectAccessReview {
        local = local_faults(&spec, metadata.namespace());
    }
    let faults = metadata.fault(kind).into_iter().chain(local);
    // Kubernetes loses the kind on the way, so its messages begin with a dot.
    let kind_in_messages = GroupKind::new(kind.group(), "");
    let question = checked(question, faults, &kind_in_messages)?.into_owned();
    if kind == Kind::SelfSubjectAccessReview && request.user.is_none() {
        return Err(no_user());
    }
    let response = Response::new(kind, request, metadata.into_value(), Some(tree(&spec)));
    Ok(AccessReview { response, question })
}

fn read<'t>(
    kind: Kind,
    fields: &Fields<'t>,
    request: &Request<'_>,
) -> Result<(Spec<'t>, Metadata), Status> {
    let version = request.version;
    let read = || {
        let metadata = Metadata::read(fields)?;
        let spec = match kind {
            Kind::SelfSubjectAccessReview => {
                target_spec(fields, version, "SelfSubjectAccessReviewSpec")?
            }
            _ => subject_spec(fields, version, "SubjectAccessReviewSpec")?,
        };
        Ok((spec, metadata))
    };
    read().map_err(|malformed: Malformed| malformed.into_status(kind, version))
}

/// A review that is local asks about its namespace and says so: an empty one is not filled in.
fn local_faults(spec: &Spec<'_>, namespace: &str) -> FieldErrors {
    let at = FieldPath::root("spec");
    let mut errors = FieldErrors::new();
    if let Some(resource) = &spec.resource_attributes
        && resource.namespace != namespace
    {
        let at = at.child("resourceAttributes");
        errors.push(wrong_namespace(&at, resource.namespace));
    }
    errors.extend(path_fault(spec));
    errors
}
