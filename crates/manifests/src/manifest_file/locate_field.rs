//! Finds the span of a field by its path.

use document::{Node, Span, Value};
use field_errors::{BadValue, FieldError};

/// The location of a field.
pub(super) struct LocatedField<'n> {
    /// Span of the value, or of the object that lacks it.
    pub(super) span: Span,
    /// The value, if it is there.
    pub(super) value: Option<&'n Node>,
}

/// Finds a field of the object `root` by its path, such as `rules[0].verbs`.
pub(super) fn locate_field<'n>(root: &'n Node, path: &str) -> LocatedField<'n> {
    let mut here = root;
    for step in path.split(['.', '[']) {
        let next = match (&here.value, step.strip_suffix(']')) {
            (Value::Object(entries), None) => {
                let entry = entries.iter().rev().find(|entry| entry.key == step);
                entry.map(|entry| &entry.value)
            }
            (Value::List(items), Some(idx)) => {
                idx.parse().ok().and_then(|idx: usize| items.get(idx))
            }
            _ => None,
        };
        match next {
            Some(next) => here = next,
            None => return LocatedField { span: here.span, value: None },
        }
    }
    LocatedField { span: here.span, value: Some(here) }
}

/// Finds the span of a field's key, or of the object that lacks the field.
pub(super) fn locate_field_key(root: &Node, path: &str) -> Span {
    let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
    let parent = match parent {
        "" => LocatedField { span: root.span, value: Some(root) },
        parent => locate_field(root, parent),
    };
    let Some(Node { value: Value::Object(entries), .. }) = parent.value else { return parent.span };
    let entry = entries.iter().rev().find(|entry| entry.key == name);
    entry.map_or(parent.span, |entry| entry.key_span)
}

/// Finds the value that an error is about. Kubernetes reports the path of a map and not that of its
/// entry; if an entry has the value at fault, its span is returned.
pub(super) fn locate_faulty_value<'n>(root: &'n Node, error: &FieldError) -> LocatedField<'n> {
    let located = locate_field(root, &error.path);
    let (Some(Node { value: Value::Object(entries), .. }), BadValue::Text(text)) =
        (located.value, &error.value)
    else {
        return located;
    };
    let is_value = |node: &Node| matches!(&node.value, Value::Text(own) if own.as_str() == text);
    let by_key = entries.iter().find(|entry| entry.key == *text).map(|entry| entry.key_span);
    let by_value = || entries.iter().find(|it| is_value(&it.value)).map(|it| it.value.span);
    match by_key.or_else(by_value) {
        Some(span) => LocatedField { span, ..located },
        None => located,
    }
}
