//! A trace as a tree and as JSON.

use std::iter::Peekable;
use std::slice::Iter;

use authz::{Trace, TraceEntry, TraceEvent, TraceRecorder, Value};
use authz_chain::Chain;
use serde_json::{Map, Value as Json};

/// Upper bound on the nesting; deeper events are shown at this depth, so that a plugin cannot exhaust the stack.
const DEPTH_MAX: usize = 32;

/// An event and the events below it.
#[derive(Debug)]
pub struct TraceNode<'t> {
    /// The event that the node shows.
    pub trace_event: &'t TraceEvent,
    /// The events below it, in order.
    pub child_nodes: Vec<TraceNode<'t>>,
}

/// The events of a trace, outermost first.
pub fn build_trace_tree(trace: &Trace) -> Vec<TraceNode<'_>> {
    build_trace_nodes_at_depth(&mut trace.trace_entries().iter().peekable(), 0)
}

/// The trace as JSON. An event has a `kind`, its values as `fields`, and the events below it as `children`.
pub fn trace_to_json(trace: &Trace) -> Json {
    build_trace_tree(trace).iter().map(trace_node_to_json).collect()
}

/// Reads a trace that [`trace_to_json`] wrote, such as one that a server sends. Parts that are no events are left out.
pub fn trace_from_json(json: &Json) -> Trace {
    let mut trace = Trace::default();
    record_json_level(json, &mut TraceRecorder::new(&mut trace), 0);
    trace
}

fn record_json_level(json: &Json, recorder: &mut TraceRecorder<'_>, depth: usize) {
    let Some(nodes) = json.as_array().filter(|_| depth < DEPTH_MAX) else { return };
    for node in nodes {
        let Some(kind) = node.get("kind").and_then(Json::as_str) else { continue };
        let mut event = TraceEvent::new(kind.to_owned());
        for (name, value) in node.get("fields").and_then(Json::as_object).into_iter().flatten() {
            if let Some(value) = trace_value_from_json(value) {
                event = event.with_trace_event_value(name.clone(), value);
            }
        }
        let mut inner = recorder.record_parent_trace_event(|| event);
        if let Some(children) = node.get("children") {
            record_json_level(children, &mut inner, depth + 1);
        }
    }
}

fn trace_value_from_json(value: &Json) -> Option<Value> {
    match value {
        Json::Bool(truth) => Some((*truth).into()),
        Json::Number(number) => number.as_i64().map(Into::into),
        Json::String(text) => Some(text.clone().into()),
        Json::Array(texts) => {
            let texts = texts.iter().filter_map(Json::as_str).map(ToOwned::to_owned);
            Some(texts.collect::<Vec<String>>().into())
        }
        Json::Null | Json::Object(_) => None,
    }
}

/// The authorizers that were not consulted, because an earlier one decided.
pub fn authorizers_not_consulted<'c>(chain: &'c Chain, trace: &Trace) -> Vec<&'c str> {
    let outermost = trace.trace_entries().iter().filter(|entry| entry.trace_depth == 0);
    let asked: Vec<&str> =
        outermost.filter_map(|entry| authorizer_name(&entry.trace_event)).collect();
    let names = chain.chain_members().map(|member| member.name());
    names.filter(|name| !asked.contains(name)).collect()
}

fn authorizer_name(event: &TraceEvent) -> Option<&str> {
    let (_, value) = event.trace_event_values.iter().find(|(name, _)| name == "name")?;
    match value {
        Value::Text(text) if event.kind == "authorizer" => Some(text),
        Value::Text(_) | Value::Bool(_) | Value::Integer(_) | Value::List(_) => None,
    }
}

/// Takes the entries at `depth` or deeper, up to the first entry of lesser depth.
fn build_trace_nodes_at_depth<'t>(
    entries: &mut Peekable<Iter<'t, TraceEntry>>,
    depth: usize,
) -> Vec<TraceNode<'t>> {
    let mut nodes = Vec::new();
    while let Some(entry) = entries.next_if(|entry| entry.trace_depth.min(DEPTH_MAX) >= depth) {
        let children = if depth < DEPTH_MAX {
            build_trace_nodes_at_depth(entries, depth + 1)
        } else {
            Vec::new()
        };
        nodes.push(TraceNode { trace_event: &entry.trace_event, child_nodes: children });
    }
    nodes
}

fn trace_node_to_json(node: &TraceNode<'_>) -> Json {
    let fields = node
        .trace_event
        .trace_event_values
        .iter()
        .map(|(name, value)| (name.to_string(), trace_value_to_json(value)));
    let mut members = Map::new();
    members.insert("kind".to_owned(), node.trace_event.kind.to_string().into());
    members.insert("fields".to_owned(), Json::Object(fields.collect()));
    if !node.child_nodes.is_empty() {
        members.insert(
            "children".to_owned(),
            node.child_nodes.iter().map(trace_node_to_json).collect(),
        );
    }
    Json::Object(members)
}

fn trace_value_to_json(value: &Value) -> Json {
    match value {
        Value::Bool(truth) => (*truth).into(),
        Value::Integer(number) => (*number).into(),
        Value::Text(text) => text.as_str().into(),
        Value::List(texts) => texts.clone().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use serde_json::json;

    fn shape(nodes: &[TraceNode<'_>]) -> String {
        let shown = nodes.iter().map(|node| match node.child_nodes.as_slice() {
            [] => node.trace_event.kind.to_string(),
            children => format!("{}({})", node.trace_event.kind, shape(children)),
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn entries_lie_below_the_nearest_of_lesser_depth() {
        let mut trace = Trace::default();
        let mut recorder = TraceRecorder::new(&mut trace);
        recorder.record_trace_event(|| TraceEvent::new("a"));
        let mut inner = recorder.record_parent_trace_event(|| TraceEvent::new("b"));
        inner.record_trace_event(|| TraceEvent::new("c"));
        inner
            .record_parent_trace_event(|| TraceEvent::new("d"))
            .record_trace_event(|| TraceEvent::new("e"));
        inner.record_trace_event(|| TraceEvent::new("f"));
        recorder.record_trace_event(|| TraceEvent::new("g"));
        assert_eq!(shape(&build_trace_tree(&trace)), "a b(c d(e) f) g");
    }

    #[test]
    fn depth_is_limited() {
        fn nest(mut recorder: TraceRecorder<'_>, n: usize) {
            if n > 0 {
                nest(recorder.record_parent_trace_event(|| TraceEvent::new("x")), n - 1);
            }
        }
        let mut trace = Trace::default();
        nest(TraceRecorder::new(&mut trace), 1000);
        let tree = build_trace_tree(&trace);
        let (mut node, mut depth) = (&tree[0], 0);
        while let Some(child) = node.child_nodes.first() {
            (node, depth) = (child, depth + 1);
        }
        assert_eq!(depth, DEPTH_MAX);
    }

    #[test]
    fn json_keeps_the_types_of_values() {
        let mut trace = Trace::default();
        let event = TraceEvent::new("x")
            .with_trace_event_value("t", "a")
            .with_trace_event_value("b", true)
            .with_trace_event_value("n", 7usize);
        let event = event.with_trace_event_value("l", vec!["q".to_owned()]);
        TraceRecorder::new(&mut trace)
            .record_parent_trace_event(|| event)
            .record_trace_event(|| TraceEvent::new("y"));
        let want = json!([{
            "kind": "x", "fields": {"t": "a", "b": true, "n": 7, "l": ["q"]},
            "children": [{"kind": "y", "fields": {}}],
        }]);
        assert_eq!(trace_to_json(&trace), want);
        assert_eq!(trace_to_json(&trace_from_json(&want)), want);
        let odd = json!([{"fields": {}}, 7, {"kind": "x", "fields": {"o": {}}, "children": 1}]);
        assert_eq!(trace_to_json(&trace_from_json(&odd)), json!([{"kind": "x", "fields": {}}]));
    }
}
