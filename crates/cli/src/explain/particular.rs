//! The particulars of an event, by name.

use authz::{Event, Value};

/// A particular of an event.
pub(super) fn field<'e>(event: &'e Event, name: &str) -> Option<&'e Value> {
    event.fields.iter().find(|(own, _)| own == name).map(|(_, value)| value)
}

/// A particular that is a text.
pub(super) fn text<'e>(event: &'e Event, name: &str) -> Option<&'e str> {
    match field(event, name)? {
        Value::Text(text) => Some(text),
        Value::Bool(_) | Value::Integer(_) | Value::List(_) => None,
    }
}

/// A particular that is yes or no.
pub(super) fn flag(event: &Event, name: &str) -> Option<bool> {
    match field(event, name)? {
        Value::Bool(truth) => Some(*truth),
        Value::Text(_) | Value::Integer(_) | Value::List(_) => None,
    }
}

/// A particular that is a number.
pub(super) fn number(event: &Event, name: &str) -> Option<i64> {
    match field(event, name)? {
        Value::Integer(number) => Some(*number),
        Value::Text(_) | Value::Bool(_) | Value::List(_) => None,
    }
}

/// A particular that is several texts; none if it is something else.
pub(super) fn list<'e>(event: &'e Event, name: &str) -> &'e [String] {
    match field(event, name) {
        Some(Value::List(texts)) => texts,
        Some(Value::Text(_) | Value::Bool(_) | Value::Integer(_)) | None => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn particulars_are_found_by_name_and_type() {
        let event = Event::new("x").with("t", "a").with("b", true).with("n", 7usize);
        let event = event.with("l", vec!["q".to_owned()]);
        assert_eq!((text(&event, "t"), text(&event, "b")), (Some("a"), None));
        assert_eq!((flag(&event, "b"), flag(&event, "t")), (Some(true), None));
        assert_eq!((number(&event, "n"), number(&event, "l")), (Some(7), None));
        assert_eq!(list(&event, "l"), ["q"]);
        assert!(list(&event, "missing").is_empty());
    }
}
