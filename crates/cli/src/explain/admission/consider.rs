//! What would become of each hook.

use std::borrow::Cow;
use std::sync::Arc;

use admission::{
    AUTHORIZER_CHECKS_MAX, Attributes, AuthorizerDecisions, CallDecision, ConditionInput,
    ExplainedCondition, FailurePolicy, GroupVersionKind, Hook, HookList, HookMatch,
    MatchedResource, SideEffects, SkipCause,
};
use admission_hooks::{ObjectKinds, Phase, UntypedKinds};
use api_object::{Status, Tree};
use authz::Recorder;

use super::cluster::Cluster;
use super::write::Write;
use crate::offline::is_unanswered;

/// The port of services that hooks take where the configuration leaves it to them; which one it is
/// does not matter for whether there is a way.
const SOME_PORT: u16 = 443;

/// One hook and what would become of it.
#[derive(Debug)]
pub(super) struct Considered<'a> {
    pub(super) phase: Phase,
    /// The place in the list of all hooks of the phase.
    pub(super) index: usize,
    pub(super) hook: &'a Arc<Hook>,
    /// As what it would be told of the request; `None` if no rule matches.
    pub(super) identity: Option<MatchedResource<'a>>,
    pub(super) fate: Fate,
    /// It would be told another version than the request's.
    pub(super) is_converted: bool,
    /// How its conditions come out, as far as they are looked at.
    pub(super) conditions: Vec<ExplainedCondition<'a>>,
}

/// What would become of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    /// No rule matches.
    Unmatched,
    /// It is not called for this reason, and the request goes on.
    Skipped(Reason),
    /// It is called.
    Called,
    /// It can not be called for this reason, which is ignored.
    FailsOpen(String),
    /// The request is refused without a call, at this step.
    Refuses(Status, Step),
    /// It is not asked, for the request is refused before.
    NotReached,
    /// That depends on something that is not known; this is what.
    Open(String),
}

/// When a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// While it is found out who is asked.
    Selection,
    /// When it is asked.
    Call,
}

/// Why a hook whose rules match is not called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reason {
    NamespaceSelector,
    ObjectSelector,
    /// The condition of this name is false.
    Condition(String),
    /// Conditions fail, and that is ignored.
    ConditionError(String),
}

/// All hooks in the order in which they are asked: the mutating ones, then the validating ones.
/// Those whose rules do not match are among them.
pub(super) fn consider_all<'a>(
    cluster: &'a Cluster,
    write: &'a Write<'a>,
    decisions: &mut AuthorizerDecisions,
) -> Vec<Considered<'a>> {
    let snapshot = &cluster.snapshot;
    let mut all = Vec::new();
    if write.refusal.is_some() || write.attributes().exemption().is_some() {
        return all;
    }
    for (phase, list) in
        [(Phase::Mutating, snapshot.mutating()), (Phase::Validating, snapshot.validating())]
    {
        consider_list(cluster, write, phase, list, decisions, &mut all);
    }
    leave_out_unreached(&mut all);
    all
}

/// Finds the hooks that nobody comes to ask (admission §4.1):
/// 1. The first refusal of a mutating hook ends the matter.
/// 2. Validating hooks are all selected before one of them is called.
fn leave_out_unreached(all: &mut [Considered<'_>]) {
    let is_asked = |fate: &Fate| matches!(fate, Fate::Called | Fate::FailsOpen(_) | Fate::Open(_));
    let is_refusal = |own: &Considered<'_>| matches!(own.fate, Fate::Refuses(_, _));
    let first = all.iter().position(|own| own.phase == Phase::Mutating && is_refusal(own));
    if let Some(first) = first {
        for own in all.iter_mut().skip(first + 1).filter(|own| own.fate != Fate::Unmatched) {
            own.fate = Fate::NotReached;
            own.conditions.clear();
        }
        return;
    }
    let is_unselected =
        |own: &Considered<'_>| matches!(own.fate, Fate::Refuses(_, Step::Selection));
    if all.iter().any(is_unselected) {
        let asked =
            |own: &&mut Considered<'_>| own.phase == Phase::Validating && is_asked(&own.fate);
        all.iter_mut().filter(asked).for_each(|own| own.fate = Fate::NotReached);
    }
}

fn consider_list<'a>(
    cluster: &'a Cluster,
    write: &'a Write<'a>,
    phase: Phase,
    list: &'a HookList,
    decisions: &mut AuthorizerDecisions,
    all: &mut Vec<Considered<'a>>,
) {
    let attributes = write.attributes();
    let mut matches = list.match_hooks(&attributes).into_iter().peekable();
    for (index, hook) in list.hooks().iter().enumerate() {
        let considered = match matches.next_if(|found| found.position == index) {
            None => Considered {
                phase,
                index,
                hook,
                identity: None,
                fate: Fate::Unmatched,
                is_converted: false,
                conditions: Vec::new(),
            },
            Some(found) => {
                let (fate, conditions) = consider(cluster, &attributes, &found, decisions);
                let is_converted = found.matched_resource.resource != attributes.resource;
                let identity = Some(found.matched_resource);
                Considered { phase, index, hook, identity, fate, is_converted, conditions }
            }
        };
        all.push(considered);
    }
}

/// What becomes of a hook whose rules match, in the order in which a server finds out:
/// 1. its selectors,
/// 2. its conditions,
/// 3. whether a dry run may call it,
/// 4. whether there is a way to it.
fn consider<'a>(
    cluster: &Cluster,
    attributes: &Attributes<'a>,
    found: &HookMatch<'a, 'a>,
    decisions: &mut AuthorizerDecisions,
) -> (Fate, Vec<ExplainedCondition<'a>>) {
    let HookMatch { hook, matched_resource: identity, .. } = found;
    let namespace = cluster.namespace(attributes.namespace);
    if namespace.is_none() && hook.needs_stored_namespace(attributes) {
        let name = attributes.namespace;
        let why = format!(
            "its namespaceSelector looks at the labels of namespace \"{name}\", which --objects \
             does not have"
        );
        return (Fate::Open(why), Vec::new());
    }
    match hook.evaluate_selectors(attributes, identity, namespace) {
        CallDecision::Call => {}
        CallDecision::Skip(skip) => return (Fate::Skipped(skip.into()), Vec::new()),
        CallDecision::Refuse(status) => {
            return (Fate::Refuses(status, Step::Selection), Vec::new());
        }
    }
    let (considered, conditions) = match check_conditions(cluster, attributes, found, decisions) {
        Ok(checked) => checked,
        Err(why) => return (Fate::Open(why), Vec::new()),
    };
    let fate = match considered {
        CallDecision::Call => called(hook, attributes),
        CallDecision::Skip(skip) => Fate::Skipped(skip.into()),
        CallDecision::Refuse(status) => Fate::Refuses(status, Step::Selection),
    };
    (fate, conditions)
}

/// Evaluates the conditions on the objects in the kind that the hook would be told, and asks the
/// policy what they ask.
///
/// # Errors
/// Says what the answer depends on.
fn check_conditions<'a>(
    cluster: &Cluster,
    attributes: &Attributes<'a>,
    found: &HookMatch<'a, 'a>,
    decisions: &mut AuthorizerDecisions,
) -> Result<(CallDecision<'a>, Vec<ExplainedCondition<'a>>), String> {
    let HookMatch { hook, matched_resource: identity, .. } = found;
    let kind = identity.kind.unwrap_or(attributes.kind);
    let object = converted(attributes.object, attributes, &kind)?;
    let old_object = converted(attributes.old_object, attributes, &kind)?;
    let objects =
        Attributes { object: object.as_deref(), old_object: old_object.as_deref(), ..*attributes };
    let input = ConditionInput::new(attributes, &objects, kind, identity.resource);
    // One more than there are questions, for the evaluation that asks none.
    for _ in 0..=AUTHORIZER_CHECKS_MAX {
        match hook.evaluate_conditions(attributes, &input, Some(decisions)) {
            Ok(considered) => {
                return Ok((considered, hook.match_conditions.explain(&input, Some(decisions))));
            }
            Err(question) => {
                let asked = question.attributes(attributes.user);
                let decision = cluster.policy.ask(&asked, Recorder::off()).decision;
                if is_unanswered(decision.error.as_ref()) {
                    let why = "its conditions ask the authorizer, which would call a webhook";
                    return Err(why.to_owned());
                }
                decisions.record(*question, &decision);
            }
        }
    }
    Err("its conditions ask the authorizer too often".to_owned())
}

/// An object in the kind that a hook is told.
fn converted<'t>(
    tree: Option<&'t Tree>,
    attributes: &Attributes<'_>,
    kind: &GroupVersionKind<'_>,
) -> Result<Option<Cow<'t, Tree>>, String> {
    match tree {
        Some(tree) if attributes.kind != *kind => {
            let converted = UntypedKinds.convert(tree, kind).map_err(|error| error.to_string());
            converted.map(|tree| Some(Cow::Owned(tree)))
        }
        tree => Ok(tree.map(Cow::Borrowed)),
    }
}

/// What becomes of a hook that is to be called: some calls fail before anybody is asked.
fn called(hook: &Hook, attributes: &Attributes<'_>) -> Fate {
    let name = go_compat::quote(&hook.name);
    if attributes.is_dry_run {
        match hook.side_effects {
            Some(SideEffects::None | SideEffects::NoneOnDryRun) => {}
            Some(SideEffects::Some | SideEffects::Unknown) => {
                let why = format!("admission webhook {name} does not support dry run");
                return Fate::Refuses(Status::bad_request(why), Step::Call);
            }
            None => return failed(hook, "Webhook SideEffects is nil"),
        }
    }
    if hook.review_versions.is_empty() {
        let why = "webhook does not accept known AdmissionReview versions (v1, v1beta1)";
        return failed(hook, why);
    }
    match admission_hooks::hook_target(&hook.client_config, SOME_PORT) {
        Ok(_) => Fate::Called,
        Err(error) => failed(hook, &error.to_string()),
    }
}

/// What the failure policy makes of a call that fails.
fn failed(hook: &Hook, why: &str) -> Fate {
    match hook.failure_policy {
        FailurePolicy::Ignore => Fate::FailsOpen(why.to_owned()),
        FailurePolicy::Fail => {
            let name = go_compat::quote(&hook.name);
            let status = Status::internal(&format!("failed calling webhook {name}: {why}"));
            Fate::Refuses(status, Step::Call)
        }
    }
}

impl From<SkipCause<'_>> for Reason {
    fn from(skip: SkipCause<'_>) -> Self {
        match skip {
            SkipCause::NamespaceSelector => Self::NamespaceSelector,
            SkipCause::ObjectSelector => Self::ObjectSelector,
            SkipCause::Condition { name } => Self::Condition(name.to_owned()),
            SkipCause::ConditionError(cause) => Self::ConditionError(cause),
        }
    }
}
