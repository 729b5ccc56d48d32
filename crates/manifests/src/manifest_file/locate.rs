//! From the path of a fault to its place in a file.

use document::{Node, Span, Value};
use field_errors::{BadValue, FieldError};

/// Where a field is.
pub(super) struct Located<'n> {
    /// The place of the value, or of what it is missing in.
    pub(super) span: Span,
    /// The value, if it is there.
    pub(super) value: Option<&'n Node>,
}

/// Finds a field of the object `root` by its path, such as `rules[0].verbs`.
pub(super) fn locate<'n>(root: &'n Node, path: &str) -> Located<'n> {
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
            None => return Located { span: here.span, value: None },
        }
    }
    Located { span: here.span, value: Some(here) }
}

/// The place of the key of a field, or of what the field is missing in.
pub(super) fn locate_key(root: &Node, path: &str) -> Span {
    let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
    let parent = match parent {
        "" => Located { span: root.span, value: Some(root) },
        parent => locate(root, parent),
    };
    let Some(Node { value: Value::Object(entries), .. }) = parent.value else { return parent.span };
    let entry = entries.iter().rev().find(|entry| entry.key == name);
    entry.map_or(parent.span, |entry| entry.key_span)
}

/// Finds what an error is about. Kubernetes gives the path of a map and not that of its entry;
/// where the entry can be found by the value at fault, it is the place.
pub(super) fn locate_fault<'n>(root: &'n Node, error: &FieldError) -> Located<'n> {
    let located = locate(root, &error.path);
    let (Some(Node { value: Value::Object(entries), .. }), BadValue::Text(text)) =
        (located.value, &error.value)
    else {
        return located;
    };
    let is_value = |node: &Node| matches!(&node.value, Value::Text(own) if own.as_str() == text);
    let by_key = entries.iter().find(|entry| entry.key == *text).map(|entry| entry.key_span);
    let by_value = || entries.iter().find(|it| is_value(&it.value)).map(|it| it.value.span);
    match by_key.or_else(by_value) {
        Some(span) => Located { span, ..located },
        None => located,
    }
}
