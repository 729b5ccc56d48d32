//! The table columns of CustomResourceDefinitions and of custom resources.

use api_object::Tree;
use jiff::Timestamp;
use serde_json::Value;

use super::{
    AGE, BuiltInTable, CREATED_AT, Column, NAME, age_cell, creation_timestamp, name_cell,
    new_column, text_column, wide_column,
};
use crate::custom_resources::PrinterColumn;
use crate::human_age::format_age;
use crate::json_members::{
    bool_member, list_member, string_list_member, string_member, value_at_path,
};
use crate::json_path::JsonPath;

pub(super) static DEFINITION: BuiltInTable = BuiltInTable {
    columns: &[
        NAME,
        text_column("Scope", "Whether objects live in namespaces."),
        text_column("Versions", "The versions that are served."),
        CREATED_AT,
        wide_column("Group", "The group of the resource."),
        wide_column("Kind", "The kind of its objects."),
        wide_column("ShortNames", "Shorter names for people."),
        new_column("Established", "boolean", "Whether the resource is served.", 1),
    ],
    make_cells: |tree, _| {
        let spec = value_at_path(tree, &["spec"]);
        let names = value_at_path(spec, &["names"]);
        vec![
            name_cell(tree),
            string_member(spec, "scope").into(),
            render_definition_versions(spec).into(),
            creation_timestamp(tree).map_or(Value::Null, Value::from),
            string_member(spec, "group").into(),
            string_member(names, "kind").into(),
            string_list_member(names, "shortNames").join(",").into(),
            is_established(tree).into(),
        ]
    },
};

fn render_definition_versions(spec: &Value) -> String {
    let served = list_member(spec, "versions").iter().filter(|it| bool_member(*it, "served"));
    let mut shown: Vec<String> = served
        .map(|it| match bool_member(it, "storage") {
            true => format!("{}(storage)", string_member(it, "name")),
            false => string_member(it, "name").to_owned(),
        })
        .collect();
    shown.sort_unstable();
    shown.join(",")
}

fn is_established(tree: &Tree) -> bool {
    let conditions = list_member(value_at_path(tree, &["status"]), "conditions").iter();
    let mut established = conditions.filter(|it| string_member(*it, "type") == "Established");
    established.any(|it| string_member(it, "status") == "True")
}

/// The table of a custom resource.
#[derive(Debug, Clone)]
pub(crate) struct CustomResourceTable {
    pub(super) columns: Vec<Column>,
    /// The path of the value of each column after the name; `None` if the path is not supported. Empty
    /// for a resource without printer columns, whose second column is the age.
    json_paths: Vec<Option<JsonPath>>,
}

impl CustomResourceTable {
    pub(crate) fn new(columns: &[PrinterColumn]) -> Self {
        if columns.is_empty() {
            let age = Column { r#type: "date".into(), ..AGE };
            return Self { columns: vec![NAME, age], json_paths: Vec::new() };
        }
        let more = columns.iter().map(|column| {
            let path = &column.json_path;
            let description = match column.description.as_str() {
                "" => format!("Custom resource definition column (in JSONPath format): {path}"),
                description => description.to_owned(),
            };
            Column {
                name: column.name.clone().into(),
                r#type: column.r#type.clone().into(),
                column_format: column.column_format.clone().into(),
                description: description.into(),
                column_priority: column.column_priority,
            }
        });
        Self {
            columns: std::iter::once(NAME).chain(more).collect(),
            json_paths: columns.iter().map(|column| JsonPath::parse(&column.json_path)).collect(),
        }
    }

    pub(super) fn custom_resource_cells(&self, tree: &Tree, now: Timestamp) -> Vec<Value> {
        let mut cells = vec![name_cell(tree)];
        if self.json_paths.is_empty() {
            cells.push(age_cell(tree, now));
        }
        for (column, path) in self.columns.iter().skip(1).zip(&self.json_paths) {
            let value = path.as_ref().and_then(|path| path.find_first_value(tree));
            cells.push(value.map_or(Value::Null, |it| cell_value(&column.r#type, it, now)));
        }
        cells
    }
}

/// Converts a value to the type of its column; null if the value has another type.
fn cell_value(r#type: &str, value: &Value, now: Timestamp) -> Value {
    match (r#type, value) {
        (_, Value::Null) => Value::Null,
        ("string", Value::String(text)) => text.as_str().into(),
        ("string", value) => value.to_string().into(),
        ("integer", value) => truncate_to_integer(value).map_or(Value::Null, Value::from),
        ("number", value) => value.as_f64().map_or(Value::Null, Value::from),
        ("boolean", Value::Bool(truth)) => (*truth).into(),
        ("date", Value::String(text)) => match text.parse::<Timestamp>() {
            Ok(_) => format_age(now, Some(text)).into(),
            Err(_) => "<invalid>".into(),
        },
        (_, _) => Value::Null,
    }
}

/// Converts a number to an integer; a fraction is truncated.
fn truncate_to_integer(value: &Value) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "the fraction is to be cut off")]
    let whole = || value.as_f64().map(|it| it as i64);
    value.as_i64().or_else(whole)
}
