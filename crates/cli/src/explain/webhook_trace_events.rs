//! Describes the trace events of webhooks as text.

use authz::TraceEvent;

use super::trace_event_fields::{
    trace_event_bool_field, trace_event_integer_field, trace_event_text_field,
};

/// Describes the call of a webhook. The verdict line contains the cause of a failure.
pub(super) fn describe_webhook_call(event: &TraceEvent) -> Option<String> {
    if trace_event_bool_field(event, "skipped") == Some(true) {
        return Some("not called, because a match condition is false".to_owned());
    }
    if trace_event_text_field(event, "cache") == Some("hit") {
        return Some("not called, because its answer is cached".to_owned());
    }
    if trace_event_bool_field(event, "called") == Some(false) {
        let why = match trace_event_text_field(event, "why")? {
            "too_many_in_flight" => "too many calls are in flight",
            "too_many_in_flight_of_user" => "too many calls of the user are in flight",
            other => other,
        };
        return Some(format!("not called, because {why}; the request is answered 429"));
    }
    let n_attempts = trace_event_integer_field(event, "attempts")?;
    let mut shown = match trace_event_bool_field(event, "joined") {
        Some(true) => "joined the call of another request".to_owned(),
        Some(false) | None => "called".to_owned(),
    };
    if n_attempts > 1 {
        shown.push_str(&format!(", {n_attempts} attempts"));
    }
    if let Some(took) = trace_event_integer_field(event, "tookMicros") {
        let took = go_compat::format_duration(took.saturating_mul(1000));
        shown.push_str(&format!(", took {took}"));
    }
    if let Some(status) = trace_event_integer_field(event, "status") {
        shown.push_str(&format!(", HTTP status {status}"));
    }
    if trace_event_text_field(event, "error").is_some() {
        shown.push_str(", failed; its failurePolicy decides");
    }
    Some(shown)
}

/// Describes the assumed answer of a webhook.
pub(super) fn describe_assumed_answer(event: &TraceEvent) -> Option<String> {
    let answer = trace_event_text_field(event, "answer")?;
    Some(match trace_event_text_field(event, "failurePolicy") {
        Some(policy) => format!("it is assumed to fail, and its failurePolicy is {policy}"),
        None => format!("its answer is assumed to be {answer}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(cache: &str) -> TraceEvent {
        TraceEvent::new("webhook").with_trace_event_value("cache", cache)
    }

    #[test]
    fn a_call_is_described_with_all_known_fields() {
        let called = event("miss")
            .with_trace_event_value("joined", false)
            .with_trace_event_value("attempts", 1i64);
        let called = called.with_trace_event_value("tookMicros", 1_250i64);
        let refused = |why: &str| {
            event("miss").with_trace_event_value("called", false).with_trace_event_value("why", why)
        };
        for (event, want) in [
            (event("hit"), "not called, because its answer is cached"),
            (
                TraceEvent::new("webhook").with_trace_event_value("skipped", true),
                "not called, because a match condition is false",
            ),
            (
                called.clone().with_trace_event_value("status", 200i64),
                "called, took 1.25ms, HTTP status 200",
            ),
            (
                called.with_trace_event_value("error", "no"),
                "called, took 1.25ms, failed; its failurePolicy decides",
            ),
            (
                event("miss")
                    .with_trace_event_value("joined", true)
                    .with_trace_event_value("attempts", 5i64),
                "joined the call of another request, 5 attempts",
            ),
            (
                refused("too_many_in_flight"),
                "not called, because too many calls are in flight; the request is answered 429",
            ),
            (
                refused("too_many_in_flight_of_user"),
                "not called, because too many calls of the user are in flight; the request is answered 429",
            ),
        ] {
            assert_eq!(describe_webhook_call(&event).as_deref(), Some(want));
        }
        assert_eq!(describe_webhook_call(&TraceEvent::new("webhook")), None, "an unknown event");
    }
}
