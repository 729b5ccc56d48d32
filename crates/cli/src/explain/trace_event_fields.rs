//! Reads the fields of a trace event by name.

use authz::{TraceEvent, Value};

/// Returns a field of an event.
pub(super) fn trace_event_field<'e>(event: &'e TraceEvent, name: &str) -> Option<&'e Value> {
    event.trace_event_values.iter().find(|(own, _)| own == name).map(|(_, value)| value)
}

/// Returns a field that is a text.
pub(super) fn trace_event_text_field<'e>(event: &'e TraceEvent, name: &str) -> Option<&'e str> {
    match trace_event_field(event, name)? {
        Value::Text(text) => Some(text),
        Value::Bool(_) | Value::Integer(_) | Value::List(_) => None,
    }
}

/// Returns a field that is a boolean.
pub(super) fn trace_event_bool_field(event: &TraceEvent, name: &str) -> Option<bool> {
    match trace_event_field(event, name)? {
        Value::Bool(truth) => Some(*truth),
        Value::Text(_) | Value::Integer(_) | Value::List(_) => None,
    }
}

/// Returns a field that is an integer.
pub(super) fn trace_event_integer_field(event: &TraceEvent, name: &str) -> Option<i64> {
    match trace_event_field(event, name)? {
        Value::Integer(number) => Some(*number),
        Value::Text(_) | Value::Bool(_) | Value::List(_) => None,
    }
}

/// Returns a field that is a list of texts, or an empty list for any other value.
pub(super) fn trace_event_list_field<'e>(event: &'e TraceEvent, name: &str) -> &'e [String] {
    match trace_event_field(event, name) {
        Some(Value::List(texts)) => texts,
        Some(Value::Text(_) | Value::Bool(_) | Value::Integer(_)) | None => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_name_and_type() {
        let event = TraceEvent::new("x")
            .with_trace_event_value("t", "a")
            .with_trace_event_value("b", true)
            .with_trace_event_value("n", 7usize);
        let event = event.with_trace_event_value("l", vec!["q".to_owned()]);
        assert_eq!(
            (trace_event_text_field(&event, "t"), trace_event_text_field(&event, "b")),
            (Some("a"), None)
        );
        assert_eq!(
            (trace_event_bool_field(&event, "b"), trace_event_bool_field(&event, "t")),
            (Some(true), None)
        );
        assert_eq!(
            (trace_event_integer_field(&event, "n"), trace_event_integer_field(&event, "l")),
            (Some(7), None)
        );
        assert_eq!(trace_event_list_field(&event, "l"), ["q"]);
        assert!(trace_event_list_field(&event, "missing").is_empty());
    }
}
