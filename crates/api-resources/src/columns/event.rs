//! Columns of events.

use api_object::Tree;
use serde_json::Value;

use super::{Column, NAME, Table, name_of, shown, wide};
use crate::age::age;
use crate::tree::{at, number, text};

pub(super) static EVENT: Table = Table {
    columns: &[
        shown("Last Seen", "How long ago it last happened."),
        shown("Type", "Normal or Warning."),
        shown("Reason", "What happened, for programs."),
        shown("Object", "What it happened to."),
        wide("Subobject", "Which part of that."),
        wide("Source", "Who says so."),
        shown("Message", "What happened, for people."),
        wide("First Seen", "How long ago it first happened."),
        wide("Count", "How often it happened."),
        Column { priority: 1, ..NAME },
    ],
    cells: |tree, now| {
        let time = |key: &str| tree.get(key).and_then(Value::as_str);
        let first = age(now, time("firstTimestamp").or(time("eventTime")));
        let series = at(tree, &["series"]);
        let last = match (series, time("lastTimestamp")) {
            (Value::Null, None) => first.clone(),
            (Value::Null, last) => age(now, last),
            (series, _) => age(now, series.get("lastObservedTime").and_then(Value::as_str)),
        };
        let count = match series {
            // An event without a count happened once.
            Value::Null if number(tree, "count") == 0 => 1,
            Value::Null => number(tree, "count"),
            series => number(series, "count"),
        };
        let object = at(tree, &["involvedObject"]);
        vec![
            last.into(),
            text(tree, "type").into(),
            text(tree, "reason").into(),
            target(object).into(),
            text(object, "fieldPath").into(),
            source(tree).into(),
            text(tree, "message").trim().into(),
            first.into(),
            count.into(),
            name_of(tree),
        ]
    },
};

fn target(object: &Value) -> String {
    let kind = text(object, "kind").to_lowercase();
    match text(object, "name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

fn source(tree: &Tree) -> String {
    let source = at(tree, &["source"]);
    let component = match text(source, "component") {
        "" => text(tree, "reportingComponent"),
        component => component,
    };
    let instance = match text(source, "host") {
        "" => text(tree, "reportingInstance"),
        host => host,
    };
    if instance.is_empty() { component.to_owned() } else { format!("{component}, {instance}") }
}
