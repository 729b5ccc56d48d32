//! Selectors and match conditions: which of the matched hooks are called.

use std::borrow::Cow;

use admission::{
    Attributes, AuthorizerDecisions, CallDecision, ConditionVariables, GroupVersionKind,
    GroupVersionResource, Hook, HookMatch, SkipCause,
};
use api_object::Tree;
use authz::{TraceRecorder, Verdict};
use tokio::time::{Instant, timeout_at};

use crate::hook_observer::{ConditionOutcome, ConditionReport, Phase};
use crate::hook_refusal::HookRefusal;
use crate::hook_session::HookRequest;
use crate::object_converter::convert_unless_same_kind;
use crate::session_report::SkipReason;

/// A request in the version in which one hook reviews it.
#[derive(Debug)]
pub(crate) struct ConvertedRequest<'a> {
    pub(crate) kind: GroupVersionKind<'a>,
    pub(crate) resource: GroupVersionResource<'a>,
    /// The new object, converted to the kind that the hook reviews.
    pub(crate) object: Option<Cow<'a, Tree>>,
    pub(crate) old_object: Option<Cow<'a, Tree>>,
}

/// Whether a hook is called.
pub(crate) enum HookSelection<'a> {
    Call(Box<ConvertedRequest<'a>>),
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
    matched: &HookMatch<'_, 'a>,
    attributes: &Attributes<'a>,
    deadline: Instant,
    decisions: &mut AuthorizerDecisions,
) -> Result<HookSelection<'a>, HookRefusal> {
    let HookMatch { hook, matched_resource: identity, .. } = matched;
    match hook.evaluate_selectors(attributes, identity, request.namespace) {
        CallDecision::Call => {}
        CallDecision::Skip(skip) => return Ok(HookSelection::Skip(skip.into())),
        CallDecision::Refuse(error) => return Err(HookRefusal::Selection(error)),
    }
    // `select` refuses an identity without a kind, so the default is never used.
    let kind = identity.kind.unwrap_or(attributes.kind);
    let converted = |tree: Option<&'a Tree>| {
        let tree = tree.map(|it| {
            convert_unless_same_kind(
                request.object_converter,
                Cow::Borrowed(it),
                &attributes.kind,
                &kind,
            )
        });
        tree.transpose().map_err(|why| HookRefusal::Internal(why.to_string()))
    };
    let converted_request = Box::new(ConvertedRequest {
        kind,
        resource: identity.resource,
        object: converted(attributes.object)?,
        old_object: converted(attributes.old_object)?,
    });
    if hook.match_conditions.is_empty() {
        return Ok(HookSelection::Call(converted_request));
    }
    let load = request
        .hook_connections
        .get(phase, matched.hook_list_position)
        .map(|own| &own.long_evaluation_tracker);
    let work = match load {
        Some(load) => load.begin_condition_evaluation(request.long_computation_flag).await,
        None => None,
    };
    let began = Instant::now();
    let considered = {
        let objects = Attributes {
            object: converted_request.object.as_deref(),
            old_object: converted_request.old_object.as_deref(),
            ..*attributes
        };
        let input = ConditionVariables::new(attributes, &objects, kind, identity.resource);
        evaluate_conditions(request, hook, attributes, &input, deadline, decisions).await?
    };
    let outcome = match &considered {
        CallDecision::Call => ConditionOutcome::Hold,
        CallDecision::Skip(SkipCause::ConditionError(_)) | CallDecision::Refuse(_) => {
            ConditionOutcome::Fail
        }
        CallDecision::Skip(
            SkipCause::NamespaceSelector | SkipCause::ObjectSelector | SkipCause::Condition { .. },
        ) => ConditionOutcome::Exclude,
    };
    request.hook_observer.on_conditions(&ConditionReport {
        webhook_name: &hook.name,
        phase,
        operation: attributes.operation,
        evaluation_duration: began.elapsed(),
        condition_outcome: outcome,
    });
    if let Some(load) = load {
        load.end_condition_evaluation(began.elapsed(), work, deadline).await?;
    }
    match considered {
        CallDecision::Call => Ok(HookSelection::Call(converted_request)),
        CallDecision::Skip(skip) => Ok(HookSelection::Skip(skip.into())),
        CallDecision::Refuse(error) => Err(HookRefusal::Selection(error)),
    }
}

/// Evaluates the match conditions of a hook, and evaluates them again after each `authorizer` check that
/// they needed. Their cost limit allows at most [`admission::AUTHORIZER_CHECKS_MAX`] checks, so this ends.
async fn evaluate_conditions<'h>(
    request: &HookRequest<'_>,
    hook: &'h Hook,
    attributes: &Attributes<'_>,
    input: &ConditionVariables<'_>,
    deadline: Instant,
    decisions: &mut AuthorizerDecisions,
) -> Result<CallDecision<'h>, HookRefusal> {
    loop {
        let known = request.authorizer.map(|_| &*decisions);
        match hook.evaluate_conditions(attributes, input, known) {
            Ok(considered) => return Ok(considered),
            Err(check) => {
                let Some(authorizer) = request.authorizer else {
                    // Conditions request no check if they were given no decisions.
                    let why = "there is no authorizer to ask".to_owned();
                    return Err(HookRefusal::Internal(why));
                };
                let attributes = check.to_authorization_attributes(attributes.user);
                let decision =
                    authorizer.authorize(&attributes, TraceRecorder::disabled_recorder());
                let decision = timeout_at(deadline, decision)
                    .await
                    .map_err(|_| HookRefusal::DeadlineExceeded)?;
                if let Verdict::Unavailable(why) = decision.verdict {
                    return Err(HookRefusal::Undecided(why));
                }
                decisions.record_decision(*check, &decision);
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
