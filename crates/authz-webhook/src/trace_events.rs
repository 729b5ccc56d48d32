//! The trace events of a webhook: conditions with the values of their parts, cache hits and calls.

use authz::{TraceEvent, TraceRecorder};
use cel::{COST_LIMIT, ExplainedSubexpression, Map, SubexpressionResult, Value};

use crate::compile_condition::ENVIRONMENT;
use crate::match_conditions::{EvaluationError, MatchCondition};
use crate::observer::CallRejection;
use crate::review_spec::ReviewSpec;
use crate::webhook_call::CallResult;

/// Records an event `condition`, and below it an event `value` for each part that was evaluated.
///
/// The parts are compiled and evaluated again for this: conditions store nothing for traces, which are rare.
#[cold]
pub(crate) fn trace_condition(
    index: usize,
    condition: &MatchCondition,
    outcome: &Result<bool, EvaluationError>,
    request: &ReviewSpec<'_>,
    recorder: &mut TraceRecorder<'_>,
) {
    let mut below = recorder.record_parent_trace_event(|| {
        let event = TraceEvent::new("condition")
            .with_trace_event_value("index", index)
            .with_trace_event_value("expression", condition.expression());
        match outcome {
            Ok(holds) => event.with_trace_event_value("outcome", *holds),
            Err(error) => event.with_trace_event_value("error", error.to_string()),
        }
    });
    let variables = [Value::Map(Map::Record(request))];
    let Ok(explanation) = ENVIRONMENT.explain(condition.expression(), &variables, COST_LIMIT)
    else {
        return; // Conditions have been compiled before.
    };
    // The first part is the condition itself.
    trace_subexpressions(explanation.subexpressions.get(1..).unwrap_or_default(), &mut below);
    if explanation.n_omitted_subexpressions > 0 {
        below.record_trace_event(|| {
            TraceEvent::new("value")
                .with_trace_event_value("leftOut", explanation.n_omitted_subexpressions)
        });
    }
}

/// Records parts, each with its inner parts below it.
fn trace_subexpressions(mut parts: &[ExplainedSubexpression], recorder: &mut TraceRecorder<'_>) {
    while let Some((part, rest)) = parts.split_first() {
        let n_inside =
            rest.iter().take_while(|inner| inner.nesting_depth > part.nesting_depth).count();
        let (inside, after) = rest.split_at(n_inside);
        let mut below = recorder.record_parent_trace_event(|| {
            let event = TraceEvent::new("value")
                .with_trace_event_value("text", part.source_excerpt.as_str());
            match &part.result {
                SubexpressionResult::Value(value) => {
                    event.with_trace_event_value("value", value.as_str())
                }
                SubexpressionResult::Error(error) => {
                    event.with_trace_event_value("error", error.as_str())
                }
                SubexpressionResult::Skipped => event.with_trace_event_value("skipped", true),
            }
        });
        trace_subexpressions(inside, &mut below);
        parts = after;
    }
}

/// Records that a condition is false, so that the webhook is not called.
pub(crate) fn trace_skipped_webhook(recorder: &mut TraceRecorder<'_>) {
    recorder
        .record_trace_event(|| TraceEvent::new("webhook").with_trace_event_value("skipped", true));
}

/// Records that the cache had the answer.
pub(crate) fn trace_cache_hit(recorder: &mut TraceRecorder<'_>) {
    recorder
        .record_trace_event(|| TraceEvent::new("webhook").with_trace_event_value("cache", "hit"));
}

/// Records a call, which may be that of another check.
pub(crate) fn trace_call(end: &CallResult, is_joined: bool, recorder: &mut TraceRecorder<'_>) {
    recorder.record_trace_event(|| {
        let duration = i64::try_from(end.call_duration.as_micros()).unwrap_or(i64::MAX);
        let mut event = TraceEvent::new("webhook")
            .with_trace_event_value("cache", "miss")
            .with_trace_event_value("joined", is_joined)
            .with_trace_event_value("attempts", i64::from(end.n_attempts))
            .with_trace_event_value("tookMicros", duration);
        if let Some(status) = end.status {
            event = event.with_trace_event_value("status", i64::from(status));
        }
        match &end.review_result {
            Ok(_) => event,
            Err(error) => event.with_trace_event_value("error", error.to_string()),
        }
    });
}

/// Records why the webhook was not called.
pub(crate) fn trace_call_rejection(why: CallRejection, recorder: &mut TraceRecorder<'_>) {
    recorder.record_trace_event(|| {
        TraceEvent::new("webhook")
            .with_trace_event_value("cache", "miss")
            .with_trace_event_value("called", false)
            .with_trace_event_value("why", why.name())
    });
}
