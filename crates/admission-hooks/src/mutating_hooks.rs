//! Calls the mutating hooks one after the other. Each hook reviews the object as the hooks before it left it.

use std::borrow::Cow;
use std::time::Duration;

use admission::{Attributes, AuthorizerDecisions, Hook, HookMatch};
use api_object::Tree;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::audit_annotations::HookPosition;
use crate::call_failure::{CallFailure, HookFailureCause};
use crate::call_timeout::SessionDeadline;
use crate::failure_policy::{apply_failure_policy, metric_code_and_cause};
use crate::hook_call::{CallError, HookCall};
use crate::hook_connections::LimitedConnection;
use crate::hook_denial::HookDenial;
use crate::hook_observer::{CallReport, Phase, RejectionCause};
use crate::hook_refusal::HookRefusal;
use crate::hook_response::HookResponse;
use crate::hook_session::HookRequest;
use crate::immutable_metadata;
use crate::json_patch;
use crate::object_converter::convert_unless_same_kind;
use crate::reinvocation::ReinvocationState;
use crate::select_hook::{ConvertedRequest, HookSelection, select_hook};
use crate::session_report::{CallVerdict, HookOutcome, SessionReportBuilder, SkipReason};

const PHASE: Phase = Phase::Mutating;

/// The decision of one mutating hook about an object.
enum MutatingVerdict {
    /// The hook allows the object unchanged.
    Allow,
    /// The hook allows the object with this patch; `object` is converted back to the kind of the request.
    Patch { patch: Value, object: Tree, has_changed: bool },
    /// The hook denies the request.
    Deny(HookDenial),
}

/// Runs one round of the mutating hooks.
///
/// For each matched hook in order:
/// 1. Evaluate its selectors and conditions on the object as it is now.
/// 2. In the second round, skip it unless another hook changed the object after its first call.
/// 3. Call it and apply its patch.
/// 4. The first hook that refuses ends the round.
pub(crate) async fn run_mutating_round(
    request: &HookRequest<'_>,
    mut object: Option<Tree>,
    deadline: SessionDeadline,
    reinvocation: &mut ReinvocationState,
    report: &mut SessionReportBuilder,
    decisions: &mut AuthorizerDecisions,
) -> Result<Option<Tree>, HookRefusal> {
    for matched in request.matched_hooks.mutating_hooks(&request.attributes) {
        let (index, hook) = (matched.hook_list_position, matched.hook);
        let at = HookPosition { round: reinvocation.round_number(), index };
        let attributes = Attributes { object: object.as_ref(), ..request.attributes };
        let selection = select_hook(request, PHASE, &matched, &attributes, deadline.at, decisions);
        let converted_request = match selection.await? {
            HookSelection::Skip(skip) => {
                if let SkipReason::ConditionError(_) = &skip {
                    let cause = HookFailureCause::MatchCondition;
                    report.record_fail_open(request.hook_observer, PHASE, at, hook, cause);
                }
                report.record_hook_event(PHASE, at, hook, HookOutcome::Skipped(skip));
                continue;
            }
            HookSelection::Call(_) if !reinvocation.should_call_hook(index) => {
                report.record_hook_event(
                    PHASE,
                    at,
                    hook,
                    HookOutcome::Skipped(SkipReason::NotAgain),
                );
                continue;
            }
            HookSelection::Call(converted_request) => converted_request,
        };
        if deadline.has_deadline_passed(Instant::now()) {
            return Err(HookRefusal::DeadlineExceeded);
        }
        let began = Instant::now();
        let outcome =
            call_hook(request, &matched, &attributes, &converted_request, deadline, report).await;
        let duration = began.elapsed();
        request.hook_observer.on_call(&build_call_report(request, hook, duration, &outcome));

        let has_changed = matches!(&outcome, Ok(MutatingVerdict::Patch { has_changed: true, .. }));
        reinvocation.record_call(index, hook, has_changed);
        if let Ok(MutatingVerdict::Patch { patch, .. }) = &outcome {
            report.annotations.add_patch_annotation(
                at,
                &hook.configuration_name,
                &hook.name,
                patch,
            );
        }
        report.annotations.add_mutation_annotation(
            at,
            &hook.configuration_name,
            &hook.name,
            has_changed,
        );
        let (verdict, patched) = evaluate_call_result(hook, outcome);
        if let CallVerdict::FailOpen { cause, .. } = &verdict {
            report.record_fail_open(request.hook_observer, PHASE, at, hook, *cause);
        }
        report.record_hook_event(PHASE, at, hook, HookOutcome::Called { duration, verdict });
        if let Some(patched) = patched? {
            object = Some(patched);
        }
    }
    reinvocation.record_object_after_round(object.as_ref());
    Ok(object)
}

/// Calls a hook and applies its patch.
async fn call_hook(
    request: &HookRequest<'_>,
    matched: &HookMatch<'_, '_>,
    attributes: &Attributes<'_>,
    converted_request: &ConvertedRequest<'_>,
    deadline: SessionDeadline,
    report: &mut SessionReportBuilder,
) -> Result<MutatingVerdict, CallError> {
    let hook = matched.hook;
    let call = HookCall::new(PHASE, hook, attributes, converted_request, deadline)?;
    let target = request.hook_connections.get(PHASE, matched.hook_list_position).cloned();
    let response = send_call_in_task(call, target, deadline).await?;
    report.add_response_warnings_and_annotations(&hook.name, &response);
    if !response.is_allowed {
        return Ok(MutatingVerdict::Deny(HookDenial::new(&hook.name, response.status)));
    }
    let Some(patch) = json_patch::parse_patch(&response.patch)? else {
        return Ok(MutatingVerdict::Allow);
    };
    let Some(object) = &converted_request.object else {
        let name = go_compat::quote(&hook.name);
        return Err(CallError::internal_error(format!(
            "admission webhook {name} attempted to modify the object, which is not supported for \
             this operation"
        )));
    };
    if let Some(patch_type) = &response.unknown_patch_type {
        let message = format!("unsupported patch type {}", go_compat::quote(patch_type));
        let cause = HookFailureCause::BadAnswer;
        return Err(CallFailure { message, code: 400, failure_cause: cause }.into());
    }
    let patched = json_patch::apply_patch(object, &patch)?;
    immutable_metadata::check_identity_unchanged(object, &patched)
        .map_err(|change| CallError::internal_error(change.client_message(&hook.name)))?;
    let patched = request
        .object_converter
        .decode_and_default(patched, &converted_request.kind)
        .map_err(|why| CallError::internal_error(why.to_string()))?;
    let has_changed = patched != **object;
    let patched = Cow::Owned(patched);
    let patched = convert_unless_same_kind(
        request.object_converter,
        patched,
        &converted_request.kind,
        &attributes.kind,
    )
    .map_err(|why| CallError::internal_error(why.to_string()))?;
    Ok(MutatingVerdict::Patch { patch, object: patched.into_owned(), has_changed })
}

/// Sends a call in a task of its own: a request that waits for a CPU slot is not polled, but the timeout of its
/// call runs. Dropping this future aborts the call.
async fn send_call_in_task(
    call: HookCall,
    target: Option<LimitedConnection>,
    deadline: SessionDeadline,
) -> Result<HookResponse, CallError> {
    let mut tasks = JoinSet::new();
    tasks.spawn(call.send(target, deadline));
    match tasks.join_next().await {
        Some(Ok(outcome)) => outcome,
        // A task returns a result even if it panics, so a missing one means that the server stops.
        Some(Err(_)) | None => Err(CallError::ServerFault(HookRefusal::ShuttingDown)),
    }
}

/// The verdict for the report, and the patched object or the refusal for the request.
fn evaluate_call_result(
    hook: &Hook,
    outcome: Result<MutatingVerdict, CallError>,
) -> (CallVerdict, Result<Option<Tree>, HookRefusal>) {
    match outcome {
        Ok(MutatingVerdict::Allow) => (CallVerdict::Allow, Ok(None)),
        Ok(MutatingVerdict::Patch { patch, object, has_changed }) => {
            (CallVerdict::Patch { patch, changed: has_changed }, Ok(Some(object)))
        }
        Ok(MutatingVerdict::Deny(denial)) => {
            (CallVerdict::Deny(denial.message.clone()), Err(HookRefusal::Denied(denial)))
        }
        Err(error) => {
            let (verdict, end) = apply_failure_policy(hook, error);
            (verdict, end.map(|()| None))
        }
    }
}

fn build_call_report<'a>(
    request: &HookRequest<'_>,
    hook: &'a Hook,
    duration: Duration,
    outcome: &Result<MutatingVerdict, CallError>,
) -> CallReport<'a> {
    let (code, rejection) = match outcome {
        Ok(MutatingVerdict::Allow | MutatingVerdict::Patch { .. }) => (200, None),
        Ok(MutatingVerdict::Deny(denial)) => (denial.code, Some(RejectionCause::Denial)),
        Err(error) => metric_code_and_cause(hook, error),
    };
    let operation = request.attributes.operation;
    CallReport::new(hook, PHASE, operation, duration, code, rejection)
}
