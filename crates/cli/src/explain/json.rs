//! Explanations for programs.

use std::io::{self, Write};

use authz::Value;
use serde_json::{Map, Value as Json, json};

use super::Explanation;
use super::tree::{Node, tree};

/// Writes the answer, the hints and the trace as one line. An event of the trace has a `kind`, its
/// particulars as `fields`, and what happened as part of it as `children`.
///
/// # Errors
/// Fails if it can not be written.
pub(super) fn write(out: &mut dyn Write, explanation: &Explanation<'_>) -> io::Result<()> {
    let mut map = explanation.answer.to_map();
    if explanation.answer.is_open {
        map.insert("open".to_owned(), true.into());
    }
    map.insert("trace".to_owned(), tree(&explanation.trace).iter().map(event).collect());
    let n_dropped = explanation.trace.n_dropped();
    if n_dropped > 0 {
        map.insert("droppedEvents".to_owned(), n_dropped.into());
    }
    if !explanation.not_asked.is_empty() {
        map.insert("notAsked".to_owned(), explanation.not_asked.clone().into());
    }
    if !explanation.hints.is_empty() {
        map.insert("hints".to_owned(), explanation.hints.clone().into());
    }
    serde_json::to_writer(&mut *out, &Json::Object(map))?;
    writeln!(out)
}

fn event(node: &Node<'_>) -> Json {
    let fields =
        node.event.fields.iter().map(|(name, value)| (name.to_string(), particular(value)));
    let mut shown = json!({ "kind": node.event.kind, "fields": fields.collect::<Map<_, _>>() });
    if !node.children.is_empty() {
        shown["children"] = node.children.iter().map(event).collect();
    }
    shown
}

fn particular(value: &Value) -> Json {
    match value {
        Value::Bool(truth) => (*truth).into(),
        Value::Integer(number) => (*number).into(),
        Value::Text(text) => text.as_str().into(),
        Value::List(texts) => texts.clone().into(),
    }
}
