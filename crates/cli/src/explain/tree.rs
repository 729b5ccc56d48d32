//! The trace as a tree.

use authz::{Entry, Event, Trace, Value};

/// The deepest nesting that is shown; what lies deeper is shown there. Authorizers nest a few
/// levels, and a plugin may not exhaust the stack.
const DEPTH_MAX: usize = 32;

/// An event and what happened as part of it.
#[derive(Debug)]
pub(super) struct Node<'t> {
    pub(super) event: &'t Event,
    pub(super) children: Vec<Node<'t>>,
}

/// The events of a trace, outermost first.
pub(super) fn tree(trace: &Trace) -> Vec<Node<'_>> {
    let mut entries = trace.entries().iter().peekable();
    level(&mut entries, 0)
}

/// Takes the entries at `depth` or below, up to the first that lies above.
fn level<'t>(
    entries: &mut std::iter::Peekable<std::slice::Iter<'t, Entry>>,
    depth: usize,
) -> Vec<Node<'t>> {
    let mut nodes = Vec::new();
    while let Some(entry) = entries.next_if(|entry| entry.depth.min(DEPTH_MAX) >= depth) {
        let children = if depth < DEPTH_MAX { level(entries, depth + 1) } else { Vec::new() };
        nodes.push(Node { event: &entry.event, children });
    }
    nodes
}

/// The names of the authorizers that were asked.
pub(super) fn asked(trace: &Trace) -> Vec<&str> {
    let outermost = trace.entries().iter().filter(|entry| entry.depth == 0);
    let authorizers = outermost.filter(|entry| entry.event.kind == "authorizer");
    authorizers.filter_map(|entry| text(&entry.event, "name")).collect()
}

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

    use authz::Recorder;

    fn shape(nodes: &[Node<'_>]) -> String {
        let shown = nodes.iter().map(|node| match node.children.as_slice() {
            [] => node.event.kind.to_string(),
            children => format!("{}({})", node.event.kind, shape(children)),
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn entries_lie_below_the_nearest_of_lesser_depth() {
        let mut trace = Trace::default();
        let mut recorder = Recorder::on(&mut trace);
        recorder.note(|| Event::new("a"));
        let mut inner = recorder.enter(|| Event::new("b"));
        inner.note(|| Event::new("c"));
        inner.enter(|| Event::new("d")).note(|| Event::new("e"));
        inner.note(|| Event::new("f"));
        recorder.note(|| Event::new("g"));
        assert_eq!(shape(&tree(&trace)), "a b(c d(e) f) g");
    }

    #[test]
    fn depth_is_limited() {
        fn nest(mut recorder: Recorder<'_>, n: usize) {
            if n > 0 {
                nest(recorder.enter(|| Event::new("x")), n - 1);
            }
        }
        let mut trace = Trace::default();
        nest(Recorder::on(&mut trace), 1000);
        let tree = tree(&trace);
        let (mut node, mut depth) = (&tree[0], 0);
        while let Some(child) = node.children.first() {
            (node, depth) = (child, depth + 1);
        }
        assert_eq!(depth, DEPTH_MAX);
    }

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
