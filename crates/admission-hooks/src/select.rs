//! Which hooks are called: selectors and conditions, at the right moments (admission §3.1).

use std::borrow::Cow;

use admission::{
    Attributes, AuthorizerDecisions, CallDecision, ConditionInput, GroupVersionKind,
    GroupVersionResource, Hook, HookMatch, SkipCause,
};
use api_object::{Status, Tree};
use authz::{Recorder, Verdict};
use tokio::time::{Instant, timeout_at};

use crate::kinds::as_kind;
use crate::observe::{ConditionOutcome, ConditionReport, Phase};
use crate::passage::HookRequest;
use crate::record::SkipReason;
use crate::refusal::Refusal;

/// A request as one hook is told of it.
#[derive(Debug)]
pub(crate) struct Presented<'a> {
    pub(crate) kind: GroupVersionKind<'a>,
    pub(crate) resource: GroupVersionResource<'a>,
    /// The objects in that kind.
    pub(crate) object: Option<Cow<'a, Tree>>,
    pub(crate) old_object: Option<Cow<'a, Tree>>,
}

/// Whether a hook is called.
pub(crate) enum Selection<'a> {
    Call(Box<Presented<'a>>),
    Skip(SkipReason),
}

/// Decides about a hook whose rules match, by selectors and then by conditions on the objects in the
/// kind that the hook is told.
///
/// `attributes` are those of the request with the object as it is now. What conditions ask the
/// authorizer it is asked before the deadline, and once in a request.
pub(crate) async fn select<'a>(
    asking: &HookRequest<'a>,
    phase: Phase,
    found: &HookMatch<'_, 'a>,
    attributes: &Attributes<'a>,
    deadline: Instant,
    decisions: &mut AuthorizerDecisions,
) -> Result<Selection<'a>, Refusal> {
    let HookMatch { hook, matched_resource: identity, .. } = found;
    match hook.evaluate_selectors(attributes, identity, asking.namespace) {
        CallDecision::Call => {}
        CallDecision::Skip(skip) => return Ok(Selection::Skip(skip.into())),
        CallDecision::Refuse(status) => return Err(status.into()),
    }
    // A selection without a kind is a refusal, which was just found not to be the case.
    let kind = identity.kind.unwrap_or(attributes.kind);
    let converted = |tree: Option<&'a Tree>| {
        let tree = tree.map(|it| as_kind(asking.kinds, Cow::Borrowed(it), &attributes.kind, &kind));
        tree.transpose().map_err(|why| Refusal::from(Status::internal(&why)))
    };
    let presented = Box::new(Presented {
        kind,
        resource: identity.resource,
        object: converted(attributes.object)?,
        old_object: converted(attributes.old_object)?,
    });
    if hook.match_conditions.is_empty() {
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
        consider(asking, hook, attributes, &input, deadline, decisions).await?
    };
    let outcome = match &considered {
        CallDecision::Call => ConditionOutcome::Hold,
        CallDecision::Skip(SkipCause::ConditionError(_)) | CallDecision::Refuse(_) => {
            ConditionOutcome::Fail
        }
        CallDecision::Skip(_) => ConditionOutcome::Exclude,
    };
    asking.observe.conditions(&ConditionReport {
        webhook: &hook.name,
        phase,
        operation: attributes.operation,
        duration: began.elapsed(),
        outcome,
    });
    match considered {
        CallDecision::Call => Ok(Selection::Call(presented)),
        CallDecision::Skip(skip) => Ok(Selection::Skip(skip.into())),
        CallDecision::Refuse(status) => Err(status.into()),
    }
}

/// Evaluates the conditions of a hook, and again each time that the authorizer has answered what
/// they ask. They can not afford more than [`admission::AUTHORIZER_CHECKS_MAX`] questions, so this ends.
async fn consider<'h>(
    asking: &HookRequest<'_>,
    hook: &'h Hook,
    attributes: &Attributes<'_>,
    input: &ConditionInput<'_>,
    deadline: Instant,
    decisions: &mut AuthorizerDecisions,
) -> Result<CallDecision<'h>, Refusal> {
    loop {
        let known = asking.authorizer.map(|_| &*decisions);
        match hook.evaluate_conditions(attributes, input, known) {
            Ok(considered) => return Ok(considered),
            Err(question) => {
                let Some(authorizer) = asking.authorizer else {
                    // Conditions that are given no authorizer ask none.
                    return Err(Status::internal("there is no authorizer to ask").into());
                };
                let attributes = question.attributes(attributes.user);
                let answer = authorizer.authorize(&attributes, Recorder::off());
                let answer = timeout_at(deadline, answer).await.map_err(|_| Refusal::deadline())?;
                if let Verdict::Unavailable(why) = answer.verdict {
                    return Err(Status::undecided(why).into());
                }
                decisions.record(*question, &answer);
            }
        }
    }
}

impl From<SkipCause<'_>> for SkipReason {
    fn from(skip: SkipCause<'_>) -> Self {
        match skip {
            SkipCause::NamespaceSelector => Self::NamespaceSelector,
            SkipCause::ObjectSelector => Self::ObjectSelector,
            SkipCause::Condition { name } => Self::Condition(name.to_owned()),
            SkipCause::ConditionError(cause) => Self::ConditionError(cause),
        }
    }
}
