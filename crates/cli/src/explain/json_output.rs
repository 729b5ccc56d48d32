//! Writes explanations of decisions as JSON.

use std::io::{self, Write};

use access_reviews::trace_to_json;
use serde_json::Value;

use super::ExplainedDecision;

/// Writes the answer, the hints and the trace as one line of JSON. The trace has the form of a server's
/// SubjectAccessExplanation.
///
/// # Errors
/// Fails if it cannot be written.
pub(super) fn write_json_explanation(
    out: &mut dyn Write,
    explanation: &ExplainedDecision<'_>,
) -> io::Result<()> {
    let mut map = explanation.access_answer.to_json_map();
    if explanation.access_answer.is_undecided {
        map.insert("open".to_owned(), true.into());
    }
    map.insert("trace".to_owned(), trace_to_json(&explanation.decision_trace));
    let n_dropped = explanation.decision_trace.n_dropped_trace_entries();
    if n_dropped > 0 {
        map.insert("droppedEvents".to_owned(), n_dropped.into());
    }
    if !explanation.uncalled_authorizers.is_empty() {
        map.insert("notAsked".to_owned(), explanation.uncalled_authorizers.clone().into());
    }
    if !explanation.hints.is_empty() {
        map.insert("hints".to_owned(), explanation.hints.clone().into());
    }
    serde_json::to_writer(&mut *out, &Value::Object(map))?;
    writeln!(out)
}
