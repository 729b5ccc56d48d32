//! The trace of a decision.
//!
//! A recorder that is disabled runs no code that describes events, so that traces do not slow down other decisions.

use std::borrow::Cow;

use crate::decision::Decision;

/// The maximum number of entries in a trace. Later ones are counted and dropped, so that the trace of one request is
/// bounded.
pub const TRACE_ENTRIES_MAX: usize = 10_000;

/// The events of one decision, in order.
///
/// The tree of events is a list with depths: the parent of an entry is the nearest earlier entry of lesser depth.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    trace_entries: Vec<TraceEntry>,
    n_dropped_trace_entries: usize,
}

/// An event and its depth in the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceEntry {
    /// The number of events that enclose this one.
    pub trace_depth: usize,
    /// The recorded step of the authorizer.
    pub trace_event: TraceEvent,
}

/// One step of a decision: a kind and named values.
///
/// Kinds are open, so that plugins can add their own. Common ones are `authorizer` (its own events lie below it),
/// `condition`, `rule` and `verdict`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceEvent {
    /// The kind of the event.
    pub kind: Cow<'static, str>,
    /// The named values, in the order in which they are shown.
    pub trace_event_values: Vec<(Cow<'static, str>, Value)>,
}

/// A value in an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A boolean, such as whether a rule matched.
    Bool(bool),
    /// A count or a position.
    Integer(i64),
    /// A text, such as a name.
    Text(String),
    /// Several texts, such as the groups of a user.
    List(Vec<String>),
}

impl Trace {
    /// The entries in the order in which they were recorded.
    pub fn trace_entries(&self) -> &[TraceEntry] {
        &self.trace_entries
    }

    /// The number of entries that were dropped because the trace was full.
    pub fn n_dropped_trace_entries(&self) -> usize {
        self.n_dropped_trace_entries
    }

    fn push(&mut self, depth: usize, event: impl FnOnce() -> TraceEvent) {
        if self.trace_entries.len() < TRACE_ENTRIES_MAX {
            self.trace_entries.push(TraceEntry { trace_depth: depth, trace_event: event() });
        } else {
            self.n_dropped_trace_entries += 1;
        }
    }
}

impl TraceEvent {
    /// Makes an event of this kind without named values.
    pub fn new(kind: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: kind.into(), trace_event_values: Vec::new() }
    }

    /// The event with one more value.
    pub fn with_trace_event_value(
        mut self,
        name: impl Into<Cow<'static, str>>,
        value: impl Into<Value>,
    ) -> Self {
        self.trace_event_values.push((name.into(), value.into()));
        self
    }

    /// The event of kind `verdict`: the decision of an authorizer or of a chain. An empty reason and an absent error are
    /// omitted.
    pub fn verdict_trace_event(decision: &Decision) -> Self {
        let mut event =
            Self::new("verdict").with_trace_event_value("decision", decision.verdict.name());
        if !decision.reason.is_empty() {
            event = event.with_trace_event_value("reason", decision.reason.to_string());
        }
        if let Some(error) = &decision.error {
            event = event.with_trace_event_value("error", error.to_string());
        }
        event
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Bool(truth)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<usize> for Value {
    fn from(count: usize) -> Self {
        Self::Integer(i64::try_from(count).unwrap_or(i64::MAX))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<String>> for Value {
    fn from(texts: Vec<String>) -> Self {
        Self::List(texts)
    }
}

/// Records the steps of authorizers in a trace. It is disabled unless a client requests an explanation.
///
/// ```
/// use authz::{TraceEvent, TraceRecorder, Trace};
///
/// fn decide(recorder: &mut TraceRecorder<'_>) {
///     let mut inner = recorder.record_parent_trace_event(|| TraceEvent::new("authorizer").with_trace_event_value("name", "rbac"));
///     inner.record_trace_event(|| TraceEvent::new("rule").with_trace_event_value("role", "reader").with_trace_event_value("matches", true));
/// }
///
/// decide(&mut TraceRecorder::disabled_recorder()); // Runs none of the closures.
///
/// let mut trace = Trace::default();
/// decide(&mut TraceRecorder::new(&mut trace));
/// assert_eq!(trace.trace_entries()[1].trace_depth, 1);
/// assert_eq!(trace.trace_entries()[1].trace_event.kind, "rule");
/// ```
#[derive(Debug)]
pub struct TraceRecorder<'a> {
    trace: Option<&'a mut Trace>,
    trace_depth: usize,
}

impl<'a> TraceRecorder<'a> {
    /// A recorder that ignores every event.
    pub const fn disabled_recorder() -> Self {
        Self { trace: None, trace_depth: 0 }
    }

    /// A recorder that writes to `trace`.
    pub const fn new(trace: &'a mut Trace) -> Self {
        Self { trace: Some(trace), trace_depth: 0 }
    }

    /// Reports whether events are recorded. Callers need this only if they prepare an event outside of its
    /// closure.
    pub const fn is_recording(&self) -> bool {
        self.trace.is_some()
    }

    /// Records an event. The closure runs only if the event is recorded.
    #[inline]
    pub fn record_trace_event(&mut self, event: impl FnOnce() -> TraceEvent) {
        if let Some(trace) = self.trace.as_deref_mut() {
            trace.push(self.trace_depth, event);
        }
    }

    /// Records an event, and returns a recorder for the events below it.
    #[inline]
    pub fn record_parent_trace_event(
        &mut self,
        event: impl FnOnce() -> TraceEvent,
    ) -> TraceRecorder<'_> {
        self.record_trace_event(event);
        TraceRecorder { trace_depth: self.trace_depth + 1, trace: self.trace.as_deref_mut() }
    }

    /// A recorder at the same depth, for a callee that takes one by value.
    pub fn reborrow_recorder(&mut self) -> TraceRecorder<'_> {
        TraceRecorder { trace_depth: self.trace_depth, trace: self.trace.as_deref_mut() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::EvaluationErrors;

    #[test]
    fn a_disabled_recorder_runs_no_closure() {
        let mut recorder = TraceRecorder::disabled_recorder();
        recorder.record_trace_event(|| panic!("ran"));
        let mut inner = recorder.record_parent_trace_event(|| panic!("ran"));
        inner.record_trace_event(|| panic!("ran"));
        assert!(!inner.is_recording());
    }

    #[test]
    fn depths_follow_the_nesting() {
        let mut trace = Trace::default();
        let mut recorder = TraceRecorder::new(&mut trace);
        recorder.record_trace_event(|| TraceEvent::new("a"));
        {
            let mut inner = recorder.record_parent_trace_event(|| TraceEvent::new("b"));
            inner.reborrow_recorder().record_trace_event(|| TraceEvent::new("c"));
            inner
                .record_parent_trace_event(|| TraceEvent::new("d"))
                .record_trace_event(|| TraceEvent::new("e"));
        }
        recorder.record_trace_event(|| TraceEvent::new("f"));
        let shape: Vec<_> = trace
            .trace_entries()
            .iter()
            .map(|entry| (entry.trace_depth, entry.trace_event.kind.as_ref()))
            .collect();
        assert_eq!(shape, [(0, "a"), (0, "b"), (1, "c"), (1, "d"), (2, "e"), (0, "f")]);
    }

    #[test]
    fn a_full_trace_counts_dropped_entries() {
        let mut trace = Trace::default();
        let mut recorder = TraceRecorder::new(&mut trace);
        for _ in 0..TRACE_ENTRIES_MAX {
            recorder.record_trace_event(|| TraceEvent::new("kept"));
        }
        recorder.record_trace_event(|| panic!("ran"));
        assert_eq!(
            (trace.trace_entries().len(), trace.n_dropped_trace_entries()),
            (TRACE_ENTRIES_MAX, 1)
        );
    }

    #[test]
    fn verdict_events_omit_empty_fields() {
        let bare = TraceEvent::verdict_trace_event(&Decision::allow(""));
        assert_eq!(bare.trace_event_values, [("decision".into(), Value::from("allow"))]);
        let full = TraceEvent::verdict_trace_event(
            &Decision::deny("no").with_error(EvaluationErrors::message("broke")),
        );
        let names: Vec<_> = full.trace_event_values.iter().map(|(name, _)| name.as_ref()).collect();
        assert_eq!(names, ["decision", "reason", "error"]);
    }
}
