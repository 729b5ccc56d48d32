//! Columns of events.

use api_object::Tree;
use serde_json::Value;

use super::{Column, NAME, Table, name_of, text_column, wide_column};
use crate::human_age::age;
use crate::tree::{at, number, text};

pub(super) static EVENT: Table = Table {
    columns: &[
        text_column("Last Seen", "How long ago it last happened."),
        text_column("Type", "Normal or Warning."),
        text_column("Reason", "What happened, for programs."),
        text_column("Object", "What it happened to."),
        wide_column("Subobject", "Which part of that."),
        wide_column("Source", "Who says so."),
        text_column("Message", "What happened, for people."),
        wide_column("First Seen", "How long ago it first happened."),
        wide_column("Count", "How often it happened."),
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
