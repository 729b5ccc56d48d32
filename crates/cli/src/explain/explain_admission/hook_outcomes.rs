//! Determines for each hook whether the server would call it, and why.

use std::borrow::Cow;
use std::sync::Arc;

use admission::{
    AUTHORIZER_CHECKS_MAX, Attributes, AuthorizerDecisions, CallDecision, ConditionVariables,
    ExplainedCondition, FailurePolicy, GroupVersionKind, Hook, HookList, HookMatch,
    MatchedResource, SideEffects, SkipCause,
};
use admission_hooks::{ObjectConversionError, ObjectConverter, Phase, UntypedConverter};
use api_object::{Status, Tree};
use authz::TraceRecorder;
use server::IntoStatus;

use super::admission_write::AdmissionWrite;
use super::manifest_cluster::ManifestCluster;
use crate::offline::is_webhook_not_called;

/// The port of a service whose configuration does not set one. The value does not affect whether the target
/// is valid.
const PLACEHOLDER_PORT: u16 = 443;

/// One hook and its outcome.
#[derive(Debug)]
pub(super) struct ExplainedHook<'a> {
    pub(super) admission_phase: Phase,
    /// The position in the list of all hooks of the phase.
    pub(super) index: usize,
    pub(super) hook: &'a Arc<Hook>,
    /// The kind and resource that the hook would receive; `None` if no rule matches.
    pub(super) matched_resource: Option<MatchedResource<'a>>,
    pub(super) hook_outcome: HookOutcome,
    /// Whether the hook would receive another version than that of the request.
    pub(super) hook_receives_other_version: bool,
    /// The results of the evaluated match conditions.
    pub(super) conditions: Vec<ExplainedCondition<'a>>,
}

/// The treatment of one hook by the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HookOutcome {
    /// No rule of the hook matches.
    Unmatched,
    /// The server skips the hook for this reason.
    Skipped(HookSkipReason),
    /// The server calls the hook.
    Called,
    /// The server cannot call the hook for this reason, and ignores the failure.
    FailsOpen(String),
    /// The server refuses the request at this step, without calling the hook.
    Refuses(Status, RefusalStep),
    /// The server refuses the request before it reaches the hook.
    NotReached,
    /// The outcome depends on something unknown, which the text names.
    Unknown(String),
}

/// The step in which the server refuses a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefusalStep {
    /// While the server selects the hooks to call.
    Selection,
    /// When the server calls the hook.
    Call,
}

/// Why a hook whose rules match is not called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HookSkipReason {
    NamespaceSelector,
    ObjectSelector,
    /// The condition of this name is false.
    Condition(String),
    /// Evaluating the conditions fails with this error, which the server ignores.
    ConditionError(String),
}

/// The match conditions of a hook cannot be evaluated offline.
#[derive(Debug, thiserror::Error)]
enum UndecidableConditionsError {
    #[error(transparent)]
    Conversion(#[from] ObjectConversionError),
    #[error("its conditions need an authorizer check, which would call a webhook")]
    AuthorizerWebhook,
    #[error("its conditions make too many authorizer checks")]
    TooManyChecks,
}

/// Explains all hooks in call order: the mutating ones, then the validating ones. The list includes
/// hooks without a matching rule.
pub(super) fn explain_hooks<'a>(
    cluster: &'a ManifestCluster,
    write: &'a AdmissionWrite<'a>,
    decisions: &mut AuthorizerDecisions,
) -> Vec<ExplainedHook<'a>> {
    let snapshot = &cluster.admission_snapshot;
    let mut all = Vec::new();
    if write.pre_admission_rejection.is_some() || write.to_attributes().exemption().is_some() {
        return all;
    }
    for (phase, list) in [
        (Phase::Mutating, snapshot.mutating_hooks()),
        (Phase::Validating, snapshot.validating_hooks()),
    ] {
        explain_hook_list(cluster, write, phase, list, decisions, &mut all);
    }
    mark_unreached_hooks(&mut all);
    all
}

/// Marks the hooks that the server does not reach:
/// 1. The first refusal of a mutating hook ends admission.
/// 2. The server selects all validating hooks before it calls one of them, so a refusal during selection
///    leaves all of them uncalled.
fn mark_unreached_hooks(all: &mut [ExplainedHook<'_>]) {
    let is_asked = |outcome: &HookOutcome| {
        matches!(outcome, HookOutcome::Called | HookOutcome::FailsOpen(_) | HookOutcome::Unknown(_))
    };
    let is_refusal =
        |own: &ExplainedHook<'_>| matches!(own.hook_outcome, HookOutcome::Refuses(_, _));
    let first =
        all.iter().position(|own| own.admission_phase == Phase::Mutating && is_refusal(own));
    if let Some(first) = first {
        for own in
            all.iter_mut().skip(first + 1).filter(|own| own.hook_outcome != HookOutcome::Unmatched)
        {
            own.hook_outcome = HookOutcome::NotReached;
            own.conditions.clear();
        }
        return;
    }
    let is_unselected = |own: &ExplainedHook<'_>| {
        matches!(own.hook_outcome, HookOutcome::Refuses(_, RefusalStep::Selection))
    };
    if all.iter().any(is_unselected) {
        let asked = |own: &&mut ExplainedHook<'_>| {
            own.admission_phase == Phase::Validating && is_asked(&own.hook_outcome)
        };
        all.iter_mut().filter(asked).for_each(|own| own.hook_outcome = HookOutcome::NotReached);
    }
}

fn explain_hook_list<'a>(
    cluster: &'a ManifestCluster,
    write: &'a AdmissionWrite<'a>,
    phase: Phase,
    list: &'a HookList,
    decisions: &mut AuthorizerDecisions,
    all: &mut Vec<ExplainedHook<'a>>,
) {
    let attributes = write.to_attributes();
    let mut matches = list.match_hooks(&attributes).into_iter().peekable();
    for (index, hook) in list.hooks().iter().enumerate() {
        let explained = match matches.next_if(|found| found.hook_list_position == index) {
            None => ExplainedHook {
                admission_phase: phase,
                index,
                hook,
                matched_resource: None,
                hook_outcome: HookOutcome::Unmatched,
                hook_receives_other_version: false,
                conditions: Vec::new(),
            },
            Some(found) => {
                let (outcome, conditions) =
                    determine_hook_outcome(cluster, &attributes, &found, decisions);
                let receives_other_version = found.matched_resource.resource != attributes.resource;
                let matched_resource = Some(found.matched_resource);
                ExplainedHook {
                    admission_phase: phase,
                    index,
                    hook,
                    matched_resource,
                    hook_outcome: outcome,
                    hook_receives_other_version: receives_other_version,
                    conditions,
                }
            }
        };
        all.push(explained);
    }
}

/// Determines the outcome of a hook with a matching rule, in the order of the server:
/// 1. its selectors,
/// 2. its conditions,
/// 3. whether a dry run may call it,
/// 4. whether its target is valid.
fn determine_hook_outcome<'a>(
    cluster: &ManifestCluster,
    attributes: &Attributes<'a>,
    found: &HookMatch<'a, 'a>,
    decisions: &mut AuthorizerDecisions,
) -> (HookOutcome, Vec<ExplainedCondition<'a>>) {
    let HookMatch { hook, matched_resource, .. } = found;
    let namespace = cluster.namespace(attributes.namespace);
    if namespace.is_none() && hook.needs_stored_namespace(attributes) {
        let name = attributes.namespace;
        let why = format!(
            "its namespaceSelector needs the labels of namespace \"{name}\", which --objects does \
             not contain"
        );
        return (HookOutcome::Unknown(why), Vec::new());
    }
    match hook.evaluate_selectors(attributes, matched_resource, namespace) {
        CallDecision::Call => {}
        CallDecision::Skip(skip) => return (HookOutcome::Skipped(skip.into()), Vec::new()),
        CallDecision::Refuse(error) => {
            let refused = HookOutcome::Refuses(error.into_status(), RefusalStep::Selection);
            return (refused, Vec::new());
        }
    }
    let (explained, conditions) =
        match evaluate_match_conditions(cluster, attributes, found, decisions) {
            Ok(checked) => checked,
            Err(error) => return (HookOutcome::Unknown(error.to_string()), Vec::new()),
        };
    let outcome = match explained {
        CallDecision::Call => determine_call_outcome(hook, attributes),
        CallDecision::Skip(skip) => HookOutcome::Skipped(skip.into()),
        CallDecision::Refuse(error) => {
            HookOutcome::Refuses(error.into_status(), RefusalStep::Selection)
        }
    };
    (outcome, conditions)
}

/// Evaluates the match conditions on the objects in the kind that the hook receives. The offline chain
/// answers their authorizer checks.
///
/// # Errors
/// The result depends on something that is not known offline.
fn evaluate_match_conditions<'a>(
    cluster: &ManifestCluster,
    attributes: &Attributes<'a>,
    found: &HookMatch<'a, 'a>,
    decisions: &mut AuthorizerDecisions,
) -> Result<(CallDecision<'a>, Vec<ExplainedCondition<'a>>), UndecidableConditionsError> {
    let HookMatch { hook, matched_resource, .. } = found;
    let kind = matched_resource.kind.unwrap_or(attributes.kind);
    let object = convert_to_hook_kind(attributes.object, attributes, &kind)?;
    let old_object = convert_to_hook_kind(attributes.old_object, attributes, &kind)?;
    let objects =
        Attributes { object: object.as_deref(), old_object: old_object.as_deref(), ..*attributes };
    let input = ConditionVariables::new(attributes, &objects, kind, matched_resource.resource);
    // Each evaluation may need one more check; the last one needs none.
    for _ in 0..=AUTHORIZER_CHECKS_MAX {
        match hook.evaluate_conditions(attributes, &input, Some(decisions)) {
            Ok(explained) => {
                return Ok((
                    explained,
                    hook.match_conditions.explain_conditions(&input, Some(decisions)),
                ));
            }
            Err(question) => {
                let asked = question.to_authorization_attributes(attributes.user);
                let decision = cluster
                    .offline_authorizer
                    .authorize(&asked, TraceRecorder::disabled_recorder())
                    .decision;
                if is_webhook_not_called(decision.error.as_ref()) {
                    return Err(UndecidableConditionsError::AuthorizerWebhook);
                }
                decisions.record_decision(*question, &decision);
            }
        }
    }
    Err(UndecidableConditionsError::TooManyChecks)
}

/// Converts an object to the kind that a hook receives.
fn convert_to_hook_kind<'t>(
    tree: Option<&'t Tree>,
    attributes: &Attributes<'_>,
    kind: &GroupVersionKind<'_>,
) -> Result<Option<Cow<'t, Tree>>, ObjectConversionError> {
    match tree {
        Some(tree) if attributes.kind != *kind => {
            UntypedConverter.convert_to_kind(tree, kind).map(|tree| Some(Cow::Owned(tree)))
        }
        tree => Ok(tree.map(Cow::Borrowed)),
    }
}

/// Determines the outcome of a selected hook: some calls fail before a request is sent.
fn determine_call_outcome(hook: &Hook, attributes: &Attributes<'_>) -> HookOutcome {
    let name = go_compat::quote(&hook.name);
    if attributes.is_dry_run {
        match hook.side_effects {
            Some(SideEffects::None | SideEffects::NoneOnDryRun) => {}
            Some(SideEffects::Some | SideEffects::Unknown) => {
                let why = format!("admission webhook {name} does not support dry run");
                return HookOutcome::Refuses(Status::bad_request(why), RefusalStep::Call);
            }
            None => return failed_call_outcome(hook, "Webhook SideEffects is nil"),
        }
    }
    if hook.review_versions.is_empty() {
        let why = "webhook does not accept known AdmissionReview versions (v1, v1beta1)";
        return failed_call_outcome(hook, why);
    }
    match admission_hooks::hook_target(&hook.client_config, PLACEHOLDER_PORT) {
        Ok(_) => HookOutcome::Called,
        Err(error) => failed_call_outcome(hook, &error.to_string()),
    }
}

/// Applies the failure policy to a failed call.
fn failed_call_outcome(hook: &Hook, why: &str) -> HookOutcome {
    match hook.failure_policy {
        FailurePolicy::Ignore => HookOutcome::FailsOpen(why.to_owned()),
        FailurePolicy::Fail => {
            let name = go_compat::quote(&hook.name);
            let status = Status::internal_error(&format!("failed calling webhook {name}: {why}"));
            HookOutcome::Refuses(status, RefusalStep::Call)
        }
    }
}

impl From<SkipCause<'_>> for HookSkipReason {
    fn from(skip: SkipCause<'_>) -> Self {
        match skip {
            SkipCause::NamespaceSelector => Self::NamespaceSelector,
            SkipCause::ObjectSelector => Self::ObjectSelector,
            SkipCause::Condition { name } => Self::Condition(name.to_owned()),
            SkipCause::ConditionError(cause) => Self::ConditionError(cause),
        }
    }
}
