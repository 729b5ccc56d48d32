//! Calls the validating hooks, all at once, about the same object.

use std::collections::HashMap;
use std::time::Duration;

use admission::{AuthorizerDecisions, Hook};
use tokio::task::{Id, JoinSet};
use tokio::time::Instant;

use crate::audit_annotations::HookPosition;
use crate::call_failure::HookFailureCause;
use crate::call_timeout::SessionDeadline;
use crate::failure_policy::{apply_failure_policy, metric_code_and_cause};
use crate::hook_call::{CallError, HookCall};
use crate::hook_denial::HookDenial;
use crate::hook_observer::{CallReport, Phase, RejectionCause};
use crate::hook_refusal::HookRefusal;
use crate::hook_response::HookResponse;
use crate::hook_session::HookRequest;
use crate::select_hook::{ConvertedRequest, HookSelection, select_hook};
use crate::session_report::{CallVerdict, HookOutcome, SessionReportBuilder, SkipReason};

const PHASE: Phase = Phase::Validating;

/// A hook that is called. Audit annotations show its index among the called hooks.
struct SelectedHook<'a> {
    index: usize,
    hook: &'a Hook,
    converted_request: Box<ConvertedRequest<'a>>,
}

/// The response of a hook, and how long the call took.
type TimedResponse = (Result<HookResponse, CallError>, Duration);

/// Calls the validating hooks.
///
/// 1. Select the hooks to call, before any call. An error in a selection refuses the request.
/// 2. Call all of them at once, and wait until every call has ended.
/// 3. Refuse with the refusal of the first hook in the list that refuses. The report has the others.
pub(crate) async fn call_validating_hooks(
    request: &HookRequest<'_>,
    deadline: SessionDeadline,
    report: &mut SessionReportBuilder,
    decisions: &mut AuthorizerDecisions,
) -> Result<(), HookRefusal> {
    let mut selected = Vec::new();
    for matched in request.matched_hooks.validating_hooks(&request.attributes) {
        let (index, hook) = (matched.hook_list_position, &**matched.hook);
        let attributes = &request.attributes;
        match select_hook(request, PHASE, &matched, attributes, deadline.at, decisions).await? {
            HookSelection::Call(converted_request) => {
                selected.push(SelectedHook { index, hook, converted_request })
            }
            HookSelection::Skip(skip) => {
                let at = HookPosition { round: 0, index };
                if let SkipReason::ConditionError(_) = &skip {
                    let cause = HookFailureCause::MatchCondition;
                    report.record_fail_open(request.hook_observer, PHASE, at, hook, cause);
                }
                report.record_hook_event(PHASE, at, hook, HookOutcome::Skipped(skip));
            }
        }
    }
    if selected.is_empty() {
        return Ok(());
    }
    if deadline.has_deadline_passed(Instant::now()) {
        return Err(HookRefusal::DeadlineExceeded);
    }
    let mut first_refusal = Ok(());
    let outcomes = call_hooks_in_parallel(request, &selected, deadline).await;
    for (call_index, (called, (outcome, duration))) in selected.iter().zip(outcomes).enumerate() {
        let (verdict, end) =
            evaluate_call_result(request, called, call_index, outcome, duration, report);
        let at = HookPosition { round: 0, index: called.index };
        report.record_hook_event(PHASE, at, called.hook, HookOutcome::Called { duration, verdict });
        first_refusal = first_refusal.and(end);
    }
    first_refusal
}

/// Calls all hooks, each in a task of its own, and waits for all of them. Dropping this future aborts
/// all calls.
async fn call_hooks_in_parallel(
    request: &HookRequest<'_>,
    selected: &[SelectedHook<'_>],
    deadline: SessionDeadline,
) -> Vec<TimedResponse> {
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    let mut index_by_task: HashMap<Id, usize> = HashMap::new();
    let mut outcomes: Vec<Option<TimedResponse>> = Vec::new();
    for (call_index, SelectedHook { index, hook, converted_request }) in selected.iter().enumerate()
    {
        outcomes.push(
            match HookCall::new(PHASE, hook, &request.attributes, converted_request, deadline) {
                Err(error) => Some((Err(error), began.elapsed())),
                Ok(call) => {
                    let target = request.hook_connections.get(PHASE, *index).cloned();
                    let task = async move {
                        let response = call.send(target, deadline).await;
                        (response, began.elapsed())
                    };
                    index_by_task.insert(tasks.spawn(task).id(), call_index);
                    None
                }
            },
        );
    }
    while let Some(ended) = tasks.join_next_with_id().await {
        let (id, outcome) = match ended {
            Ok(ended) => ended,
            Err(error) => (
                error.id(),
                (Err(CallError::ServerFault(HookRefusal::ShuttingDown)), began.elapsed()),
            ),
        };
        if let Some(slot) = index_by_task.get(&id).and_then(|index| outcomes.get_mut(*index)) {
            *slot = Some(outcome);
        }
    }
    // A task returns a result even if it panics, so a missing one means that the server stops.
    let unknown = || (Err(CallError::ServerFault(HookRefusal::ShuttingDown)), began.elapsed());
    outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(unknown)).collect()
}

/// Records the response of a hook, and returns the verdict for the report and the refusal, if any.
fn evaluate_call_result(
    request: &HookRequest<'_>,
    called: &SelectedHook<'_>,
    call_index: usize,
    outcome: Result<HookResponse, CallError>,
    duration: Duration,
    report: &mut SessionReportBuilder,
) -> (CallVerdict, Result<(), HookRefusal>) {
    let hook = called.hook;
    let (code, rejection, verdict, end) = match outcome {
        Ok(response) => {
            report.add_response_warnings_and_annotations(&hook.name, &response);
            if response.is_allowed {
                (200, None, CallVerdict::Allow, Ok(()))
            } else {
                let denial = HookDenial::new(&hook.name, response.status);
                let verdict = CallVerdict::Deny(denial.message.clone());
                let refusal = HookRefusal::Denied(denial);
                (refusal.metric_code(), Some(RejectionCause::Denial), verdict, Err(refusal))
            }
        }
        Err(error) => {
            let (code, rejection) = metric_code_and_cause(hook, &error);
            let (verdict, end) = apply_failure_policy(hook, error);
            (code, rejection, verdict, end)
        }
    };
    let operation = request.attributes.operation;
    let call_report = CallReport::new(hook, PHASE, operation, duration, code, rejection);
    request.hook_observer.on_call(&call_report);
    if let CallVerdict::FailOpen { cause, .. } = &verdict {
        let at = HookPosition { round: 0, index: call_index };
        report.record_fail_open(request.hook_observer, PHASE, at, hook, *cause);
    }
    (verdict, end)
}
