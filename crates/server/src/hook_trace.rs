//! The trace of a write: which hooks were called or skipped, and their results. It goes to the audit log and,
//! on request, to clients that may see it.

use std::fmt::Write as _;

use admission_hooks::{CallVerdict, HookEvent, HookOutcome, Phase, SessionReport, SkipReason};
use authz::{Attributes, Target, Verb};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value, json};

use crate::authorize::Authorized;

/// The request header that asks for the trace, and the response header that carries it.
pub(crate) const TRACE_HEADER: HeaderName = HeaderName::from_static("portcullis-admission-trace");
/// The response header with the revision of the admission configuration that a write was admitted by.
pub(crate) const REVISION_HEADER: HeaderName =
    HeaderName::from_static("portcullis-admission-revision");
/// The audit annotation with the trace, without patches.
pub(crate) const TRACE_ANNOTATION: &str = "admission.portcullis.io/hooks";

/// Users who may `get` this path may see the traces of their requests.
const TRACE_PATH: &str = "/portcullis/admission/trace";
/// The longest trace in a header; proxies and clients do not accept much more.
const HEADER_BYTES_MAX: usize = 8 << 10;
/// The longest trace in the audit log.
const ANNOTATION_BYTES_MAX: usize = 64 << 10;

/// Whether a trace contains the patches of hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HookTraceDetail {
    WithPatches,
    WithoutPatches,
}

/// Whether the client asks for the trace.
pub(crate) fn is_hook_trace_requested(headers: &HeaderMap) -> bool {
    headers.get(TRACE_HEADER).is_some_and(|value| value == "true" || value == "1")
}

/// Whether the client may see the trace.
pub(crate) async fn may_see_hook_trace(authorized: &Authorized) -> bool {
    let attributes = Attributes {
        user: Some(authorized.user()),
        verb: Verb::GET,
        target: Target::Path(TRACE_PATH),
    };
    let chain = &authorized.authorization_snapshot().authorizer_chain;
    let outcome = chain.authorize(&attributes, authz::TraceRecorder::disabled_recorder()).await;
    outcome.decision.verdict == authz::Verdict::Allow
}

/// The trace as the value of a header. If it is too long, the patches are left out, then the last events.
pub(crate) fn hook_trace_header_value(notes: &[SessionReport]) -> Option<HeaderValue> {
    let full = hook_trace_with_patches(notes);
    let text = full.or_else(|| truncated_hook_trace(notes, HEADER_BYTES_MAX))?;
    HeaderValue::from_str(&text).ok()
}

/// The trace for the audit log; `None` if no hook matched.
pub(crate) fn hook_trace_annotation(notes: &[SessionReport]) -> Option<String> {
    let is_empty = notes.iter().all(|notes| notes.hook_events.is_empty());
    if is_empty { None } else { truncated_hook_trace(notes, ANNOTATION_BYTES_MAX) }
}

/// The trace without patches, and without the last events that do not fit.
fn truncated_hook_trace(notes: &[SessionReport], bytes_max: usize) -> Option<String> {
    let mut n_events: usize = notes.iter().map(|notes| notes.hook_events.len()).sum();
    loop {
        let events = notes.iter().flat_map(|notes| &notes.hook_events).take(n_events);
        let mut shown: Vec<Value> =
            events.map(|event| hook_event_json(event, HookTraceDetail::WithoutPatches)).collect();
        let n_all: usize = notes.iter().map(|notes| notes.hook_events.len()).sum();
        if n_events < n_all {
            shown.push(json!({"omitted": n_all - n_events}));
        }
        let text = to_ascii_json(&Value::Array(shown));
        if text.len() <= bytes_max {
            return Some(text);
        }
        n_events = n_events.checked_sub((n_events / 4).max(1))?;
    }
}

/// The trace with patches, if it fits into a header.
fn hook_trace_with_patches(notes: &[SessionReport]) -> Option<String> {
    let events = notes.iter().flat_map(|notes| &notes.hook_events);
    let events = events.map(|event| hook_event_json(event, HookTraceDetail::WithPatches));
    let text = to_ascii_json(&Value::Array(events.collect()));
    (text.len() <= HEADER_BYTES_MAX).then_some(text)
}

fn hook_event_json(event: &HookEvent, detail: HookTraceDetail) -> Value {
    let mut members = Map::new();
    let mut insert = |member: &str, value: Value| {
        members.insert(member.to_owned(), value);
    };
    insert("phase", hook_phase_name(event.phase).into());
    insert("round", event.round.into());
    insert("index", event.index.into());
    insert("configuration", event.configuration_name.as_str().into());
    insert("webhook", event.webhook_name.as_str().into());
    match &event.hook_outcome {
        HookOutcome::Skipped(reason) => {
            insert("outcome", "skipped".into());
            insert("why", describe_skip_reason(reason).into());
        }
        HookOutcome::Called { duration, verdict } => {
            let (outcome, why) = match verdict {
                CallVerdict::Allow => ("allowed", None),
                CallVerdict::Patch { changed: true, .. } => ("patched", None),
                CallVerdict::Patch { changed: false, .. } => ("allowed", None),
                CallVerdict::Deny(why) => ("denied", Some(why)),
                CallVerdict::FailOpen { message, .. } => ("failed open", Some(message)),
                CallVerdict::FailClosed(why) => ("failed closed", Some(why)),
                CallVerdict::Error(why) => ("error", Some(why)),
            };
            insert("outcome", outcome.into());
            insert("micros", u64::try_from(duration.as_micros()).unwrap_or(u64::MAX).into());
            if let Some(why) = why {
                insert("why", why.as_str().into());
            }
            if let (CallVerdict::Patch { patch, .. }, HookTraceDetail::WithPatches) =
                (verdict, detail)
            {
                insert("patch", patch.clone());
            }
        }
    }
    Value::Object(members)
}

fn hook_phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Mutating => "mutating",
        Phase::Validating => "validating",
    }
}

fn describe_skip_reason(reason: &SkipReason) -> String {
    match reason {
        SkipReason::NamespaceSelector => "namespaceSelector does not match".to_owned(),
        SkipReason::ObjectSelector => "objectSelector does not match".to_owned(),
        SkipReason::Condition(name) => format!("match condition {name:?} is false"),
        SkipReason::ConditionError(why) => format!("match conditions failed: {why}"),
        SkipReason::NotAgain => "nothing changed since it was called".to_owned(),
    }
}

/// Encodes JSON with all characters outside of ASCII escaped, because header values are ASCII.
fn to_ascii_json(value: &Value) -> String {
    let json = value.to_string();
    if json.is_ascii() {
        return json;
    }
    let mut out = String::with_capacity(json.len() * 2);
    for letter in json.chars() {
        if letter.is_ascii() {
            out.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut [0; 2]) {
            // Writing to a String does not fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn called(webhook: &str, verdict: CallVerdict) -> HookEvent {
        HookEvent {
            phase: Phase::Mutating,
            round: 0,
            index: 3,
            configuration_name: "c".to_owned(),
            webhook_name: webhook.to_owned(),
            hook_outcome: HookOutcome::Called { duration: Duration::from_micros(7), verdict },
        }
    }

    fn notes(events: Vec<HookEvent>) -> SessionReport {
        SessionReport { hook_events: events, ..SessionReport::default() }
    }

    #[test]
    fn a_trace_has_the_result_of_each_hook() {
        let patch = json!([{"op": "add", "path": "/metadata/labels/x", "value": "ä"}]);
        let patched = called("p.x.y", CallVerdict::Patch { patch: patch.clone(), changed: true });
        let skipped = HookEvent {
            hook_outcome: HookOutcome::Skipped(SkipReason::Condition("c1".to_owned())),
            ..called("s.x.y", CallVerdict::Allow)
        };
        let header = hook_trace_header_value(&[notes(vec![patched, skipped])]).unwrap();
        let text = header.to_str().unwrap();
        assert!(text.contains("\\u00e4"), "{text}");
        let trace: Value = serde_json::from_str(text).unwrap();
        let want = json!([
            {"phase": "mutating", "round": 0, "index": 3, "configuration": "c",
             "webhook": "p.x.y", "outcome": "patched", "micros": 7, "patch": patch},
            {"phase": "mutating", "round": 0, "index": 3, "configuration": "c",
             "webhook": "s.x.y", "outcome": "skipped", "why": "match condition \"c1\" is false"},
        ]);
        assert_eq!(trace, want);
    }

    #[test]
    fn a_trace_fits_into_a_header() {
        let large = json!([{"op": "add", "path": "/x", "value": "y".repeat(HEADER_BYTES_MAX)}]);
        let patched = called("p.x.y", CallVerdict::Patch { patch: large, changed: true });
        let text = hook_trace_header_value(&[notes(vec![patched.clone()])]).unwrap();
        let trace: Value = serde_json::from_slice(text.as_bytes()).unwrap();
        assert_eq!(trace[0]["outcome"], "patched");
        assert!(trace[0]["patch"].is_null());
        let many = notes(vec![called("d.x.y", CallVerdict::Deny("n".repeat(100))); 200]);
        let text = hook_trace_header_value(std::slice::from_ref(&many)).unwrap();
        assert!(text.len() <= HEADER_BYTES_MAX);
        let trace: Value = serde_json::from_slice(text.as_bytes()).unwrap();
        let trace = trace.as_array().unwrap();
        assert_eq!(trace.last().unwrap()["omitted"], 200 - (trace.len() - 1));
        assert!(
            hook_trace_annotation(std::slice::from_ref(&many)).unwrap().len() > HEADER_BYTES_MAX
        );
        assert_eq!(hook_trace_annotation(&[SessionReport::default()]), None);
    }
}
