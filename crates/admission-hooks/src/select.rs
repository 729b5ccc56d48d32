//! Selectors and match conditions: which of the matched hooks are called.

use std::borrow::Cow;

use admission::{
    Attributes, ConditionInput, Consideration, Decisions, GroupVersionKind, GroupVersionResource,
    Hook, Match, Skip,
};
use api_object::{Status, Tree};
use authz::{Recorder, Verdict};
use tokio::time::{Instant, timeout_at};

use crate::object_kinds::convert_kind;
use crate::observer::{ConditionOutcome, ConditionReport, Phase};
use crate::refusal::Refusal;
use crate::session::HookRequest;
use crate::session_report::SkipReason;

/// A request in the version in which one hook reviews it.
#[derive(Debug)]
pub(crate) struct PresentedRequest<'a> {
    pub(crate) kind: GroupVersionKind<'a>,
    pub(crate) resource: GroupVersionResource<'a>,
    /// The objects in that kind.
    pub(crate) object: Option<Cow<'a, Tree>>,
    pub(crate) old_object: Option<Cow<'a, Tree>>,
}

/// Whether a hook is called.
pub(crate) enum Selection<'a> {
    Call(Box<PresentedRequest<'a>>),
    Skip(SkipReason),
}

/// Decides whether a matched hook is called: by its selectors, then by its match conditions on the
/// objects in the kind that the hook reviews.
///
/// `attributes` are those of the request with the object as it is now. `authorizer` checks of conditions
/// are decided before the deadline, and each distinct check once in a request.
pub(crate) async fn select_hook<'a>(
    request: &HookRequest<'a>,
    phase: Phase,
    matched: &Match<'_, 'a>,
    attributes: &Attributes<'a>,
    deadline: Instant,
    decisions: &mut Decisions,
) -> Result<Selection<'a>, Refusal> {
    let Match { hook, identity, .. } = matched;
    match hook.select(attributes, identity, request.namespace) {
        Consideration::Go => {}
        Consideration::Skip(skip) => return Ok(Selection::Skip(skip.into())),
        Consideration::Refuse(status) => return Err(status.into()),
    }
    // `select` refuses an identity without a kind, so the default is never used.
    let kind = identity.kind.unwrap_or(attributes.kind);
    let converted = |tree: Option<&'a Tree>| {
        let tree =
            tree.map(|it| convert_kind(request.kinds, Cow::Borrowed(it), &attributes.kind, &kind));
        tree.transpose().map_err(|why| Refusal::from(Status::internal(&why.to_string())))
    };
    let presented = Box::new(PresentedRequest {
        kind,
        resource: identity.resource,
        object: converted(attributes.object)?,
        old_object: converted(attributes.old_object)?,
    });
    if hook.conditions.is_empty() {
        return Ok(Selection::Call(presented));
    }
    let began = Instant::now();
    let considered = {
        let objects = Attributes {
            object: presented.object.as_deref(),
            old_object: presented.old_object.as_deref(),
            ..*attributes
        };
        let input = ConditionInput::new(attributes, &objects, kind, identity.resource);
        evaluate_conditions(request, hook, attributes, &input, deadline, decisions).await?
    };
    let outcome = match &considered {
        Consideration::Go => ConditionOutcome::Hold,
        Consideration::Skip(Skip::ConditionError(_)) | Consideration::Refuse(_) => {
            ConditionOutcome::Fail
        }
        Consideration::Skip(
            Skip::NamespaceSelector | Skip::ObjectSelector | Skip::Condition { .. },
        ) => ConditionOutcome::Exclude,
    };
    request.observer.conditions(&ConditionReport {
        webhook: &hook.name,
        phase,
        operation: attributes.operation,
        duration: began.elapsed(),
        outcome,
    });
    match considered {
        Consideration::Go => Ok(Selection::Call(presented)),
        Consideration::Skip(skip) => Ok(Selection::Skip(skip.into())),
        Consideration::Refuse(status) => Err(status.into()),
    }
}

/// Evaluates the match conditions of a hook, and evaluates them again after each `authorizer` check that
/// they needed. Their cost limit allows at most [`admission::CHECKS_MAX`] checks, so this ends.
async fn evaluate_conditions<'h>(
    request: &HookRequest<'_>,
    hook: &'h Hook,
    attributes: &Attributes<'_>,
    input: &ConditionInput<'_>,
    deadline: Instant,
    decisions: &mut Decisions,
) -> Result<Consideration<'h>, Refusal> {
    loop {
        let known = request.authorizer.map(|_| &*decisions);
        match hook.check_conditions(attributes, input, known) {
            Ok(considered) => return Ok(considered),
            Err(check) => {
                let Some(authorizer) = request.authorizer else {
                    // Conditions request no check if they were given no decisions.
                    return Err(Status::internal("there is no authorizer to ask").into());
                };
                let attributes = check.attributes(attributes.user);
                let decision = authorizer.authorize(&attributes, Recorder::off());
                let decision = timeout_at(deadline, decision)
                    .await
                    .map_err(|_| Refusal::deadline_exceeded())?;
                if let Verdict::Unavailable(why) = decision.verdict {
                    return Err(Status::undecided(why).into());
                }
                decisions.remember(*check, &decision);
            }
        }
    }
}

impl From<Skip<'_>> for SkipReason {
    fn from(skip: Skip<'_>) -> Self {
        match skip {
            Skip::NamespaceSelector => Self::NamespaceSelector,
            Skip::ObjectSelector => Self::ObjectSelector,
            Skip::Condition { name } => Self::Condition(name.to_owned()),
            Skip::ConditionError(cause) => Self::ConditionError(cause),
        }
    }
}
