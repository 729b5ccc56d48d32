//! Who touched my object: what became of each hook, for the audit log and for those who may ask.

use std::fmt::Write as _;

use admission_hooks::{CallVerdict, HookEvent, HookOutcome, Phase, SessionReport, SkipReason};
use authz::{Attributes, Target};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value, json};

use crate::authorize::Authorized;

/// Asks for the trace, and carries it.
pub(crate) const TRACE: HeaderName = HeaderName::from_static("portcullis-admission-trace");
/// Says which state of the configuration a write was admitted by.
pub(crate) const REVISION: HeaderName = HeaderName::from_static("portcullis-admission-revision");
/// Under which key the audit log has the trace, without patches.
pub(crate) const TRACE_ANNOTATION: &str = "admission.portcullis.io/hooks";

/// Who may `get` this path may see what hooks do to their requests.
const TRACE_PATH: &str = "/portcullis/admission/trace";
/// The longest trace in a header; proxies and clients do not take much more.
const TRACE_BYTES_MAX: usize = 8 << 10;
/// The longest trace in the audit log.
const AUDIT_BYTES_MAX: usize = 64 << 10;

/// How much of an event is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// With what was patched.
    Full,
    /// Without.
    Short,
}

/// Whether the client asks for the trace and may have it.
pub(crate) async fn is_wanted(headers: &HeaderMap, authorized: &Authorized) -> bool {
    let asks = headers.get(TRACE).is_some_and(|value| value == "true" || value == "1");
    if !asks {
        return false;
    }
    let attributes =
        Attributes { user: Some(authorized.user()), verb: "get", target: Target::Path(TRACE_PATH) };
    let chain = &authorized.snapshot().chain;
    let outcome = chain.authorize(&attributes, authz::Recorder::off()).await;
    outcome.decision.verdict == authz::Verdict::Allow
}

/// The trace as the value of a header: the patches go first when it is too long, then the last
/// events.
pub(crate) fn header(notes: &[SessionReport]) -> Option<HeaderValue> {
    let full = text(notes, Detail::Full, TRACE_BYTES_MAX);
    let text = full.or_else(|| shortened(notes, TRACE_BYTES_MAX))?;
    HeaderValue::from_str(&text).ok()
}

/// The trace for the audit log; `None` if no hook was looked at.
pub(crate) fn annotation(notes: &[SessionReport]) -> Option<String> {
    let is_empty = notes.iter().all(|own| own.events.is_empty());
    if is_empty { None } else { shortened(notes, AUDIT_BYTES_MAX) }
}

fn shortened(notes: &[SessionReport], bytes_max: usize) -> Option<String> {
    let mut n_events: usize = notes.iter().map(|own| own.events.len()).sum();
    loop {
        let events = notes.iter().flat_map(|own| &own.events).take(n_events);
        let mut shown: Vec<Value> = events.map(|event| told(event, Detail::Short)).collect();
        let n_all: usize = notes.iter().map(|own| own.events.len()).sum();
        if n_events < n_all {
            shown.push(json!({"omitted": n_all - n_events}));
        }
        let text = ascii(&Value::Array(shown));
        if text.len() <= bytes_max {
            return Some(text);
        }
        n_events = n_events.checked_sub((n_events / 4).max(1))?;
    }
}

fn text(notes: &[SessionReport], detail: Detail, bytes_max: usize) -> Option<String> {
    let events = notes.iter().flat_map(|own| &own.events);
    let text = ascii(&Value::Array(events.map(|event| told(event, detail)).collect()));
    (text.len() <= bytes_max).then_some(text)
}

fn told(event: &HookEvent, detail: Detail) -> Value {
    let mut members = Map::new();
    let mut tell = |member: &str, value: Value| {
        members.insert(member.to_owned(), value);
    };
    tell("phase", phase(event.phase).into());
    tell("round", event.round.into());
    tell("index", event.index.into());
    tell("configuration", event.configuration.as_str().into());
    tell("webhook", event.webhook.as_str().into());
    match &event.outcome {
        HookOutcome::Skipped(reason) => {
            tell("outcome", "skipped".into());
            tell("why", skip_reason(reason).into());
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
            tell("outcome", outcome.into());
            tell("micros", u64::try_from(duration.as_micros()).unwrap_or(u64::MAX).into());
            if let Some(why) = why {
                tell("why", why.as_str().into());
            }
            if let (CallVerdict::Patch { patch, .. }, Detail::Full) = (verdict, detail) {
                tell("patch", patch.clone());
            }
        }
    }
    Value::Object(members)
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Mutating => "mutating",
        Phase::Validating => "validating",
    }
}

fn skip_reason(reason: &SkipReason) -> String {
    match reason {
        SkipReason::NamespaceSelector => "namespaceSelector does not match".to_owned(),
        SkipReason::ObjectSelector => "objectSelector does not match".to_owned(),
        SkipReason::Condition(name) => format!("match condition {name:?} is false"),
        SkipReason::ConditionError(why) => format!("match conditions failed: {why}"),
        SkipReason::NotAgain => "nothing changed since it was called".to_owned(),
    }
}

/// JSON that any header takes.
fn ascii(value: &Value) -> String {
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
            // A String takes whatever is written to it.
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
            configuration: "c".to_owned(),
            webhook: webhook.to_owned(),
            outcome: HookOutcome::Called { duration: Duration::from_micros(7), verdict },
        }
    }

    fn notes(events: Vec<HookEvent>) -> SessionReport {
        SessionReport { events, ..SessionReport::default() }
    }

    #[test]
    fn a_trace_says_who_did_what() {
        let patch = json!([{"op": "add", "path": "/metadata/labels/x", "value": "ä"}]);
        let patched = called("p.x.y", CallVerdict::Patch { patch: patch.clone(), changed: true });
        let skipped = HookEvent {
            outcome: HookOutcome::Skipped(SkipReason::Condition("c1".to_owned())),
            ..called("s.x.y", CallVerdict::Allow)
        };
        let header = header(&[notes(vec![patched, skipped])]).unwrap();
        let text = header.to_str().unwrap();
        assert!(text.contains("\\u00e4"), "{text}");
        let told: Value = serde_json::from_str(text).unwrap();
        let want = json!([
            {"phase": "mutating", "round": 0, "index": 3, "configuration": "c",
             "webhook": "p.x.y", "outcome": "patched", "micros": 7, "patch": patch},
            {"phase": "mutating", "round": 0, "index": 3, "configuration": "c",
             "webhook": "s.x.y", "outcome": "skipped", "why": "match condition \"c1\" is false"},
        ]);
        assert_eq!(told, want);
    }

    #[test]
    fn a_trace_fits_into_a_header() {
        let large = json!([{"op": "add", "path": "/x", "value": "y".repeat(TRACE_BYTES_MAX)}]);
        let patched = called("p.x.y", CallVerdict::Patch { patch: large, changed: true });
        let text = header(&[notes(vec![patched.clone()])]).unwrap();
        let told: Value = serde_json::from_slice(text.as_bytes()).unwrap();
        assert_eq!(told[0]["outcome"], "patched");
        assert!(told[0]["patch"].is_null());
        let many = notes(vec![called("d.x.y", CallVerdict::Deny("n".repeat(100))); 200]);
        let text = header(std::slice::from_ref(&many)).unwrap();
        assert!(text.len() <= TRACE_BYTES_MAX);
        let told: Value = serde_json::from_slice(text.as_bytes()).unwrap();
        let told = told.as_array().unwrap();
        assert_eq!(told.last().unwrap()["omitted"], 200 - (told.len() - 1));
        assert!(annotation(std::slice::from_ref(&many)).unwrap().len() > TRACE_BYTES_MAX);
        assert_eq!(annotation(&[SessionReport::default()]), None);
    }
}
