//! The table columns of events.

use api_object::Tree;
use serde_json::Value;

use super::{BuiltInTable, Column, NAME, name_cell, text_column, wide_column};
use crate::human_age::format_age;
use crate::json_members::{integer_member, string_member, value_at_path};

pub(super) static EVENT: BuiltInTable = BuiltInTable {
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
        Column { column_priority: 1, ..NAME },
    ],
    make_cells: |tree, now| {
        let time = |key: &str| tree.get(key).and_then(Value::as_str);
        let first = format_age(now, time("firstTimestamp").or(time("eventTime")));
        let series = value_at_path(tree, &["series"]);
        let last = match (series, time("lastTimestamp")) {
            (Value::Null, None) => first.clone(),
            (Value::Null, last) => format_age(now, last),
            (series, _) => format_age(now, series.get("lastObservedTime").and_then(Value::as_str)),
        };
        let count = match series {
            // An event without a count happened once.
            Value::Null if integer_member(tree, "count") == 0 => 1,
            Value::Null => integer_member(tree, "count"),
            series => integer_member(series, "count"),
        };
        let object = value_at_path(tree, &["involvedObject"]);
        vec![
            last.into(),
            string_member(tree, "type").into(),
            string_member(tree, "reason").into(),
            render_involved_object(object).into(),
            string_member(object, "fieldPath").into(),
            render_event_source(tree).into(),
            string_member(tree, "message").trim().into(),
            first.into(),
            count.into(),
            name_cell(tree),
        ]
    },
};

fn render_involved_object(object: &Value) -> String {
    let kind = string_member(object, "kind").to_lowercase();
    match string_member(object, "name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

fn render_event_source(tree: &Tree) -> String {
    let source = value_at_path(tree, &["source"]);
    let component = match string_member(source, "component") {
        "" => string_member(tree, "reportingComponent"),
        component => component,
    };
    let instance = match string_member(source, "host") {
        "" => string_member(tree, "reportingInstance"),
        host => host,
    };
    if instance.is_empty() { component.to_owned() } else { format!("{component}, {instance}") }
}
