//! Columns of definitions, and those that definitions give their resources.

use api_object::Tree;
use jiff::Timestamp;
use serde_json::Value;

use super::{
    AGE, CREATED_AT, Column, NAME, Table, age_of, column, creation, name_of, text_column,
    wide_column,
};
use crate::custom::PrinterColumn;
use crate::human_age::age;
use crate::json_path::JsonPath;
use crate::tree::{at, flag, items, text, texts};

pub(super) static DEFINITION: Table = Table {
    columns: &[
        NAME,
        text_column("Scope", "Whether objects live in namespaces."),
        text_column("Versions", "The versions that are served."),
        CREATED_AT,
        wide_column("Group", "The group of the resource."),
        wide_column("Kind", "The kind of its objects."),
        wide_column("ShortNames", "Shorter names for people."),
        column("Established", "boolean", "Whether the resource is served.", 1),
    ],
    cells: |tree, _| {
        let spec = at(tree, &["spec"]);
        let names = at(spec, &["names"]);
        vec![
            name_of(tree),
            text(spec, "scope").into(),
            versions(spec).into(),
            creation(tree).map_or(Value::Null, Value::from),
            text(spec, "group").into(),
            text(names, "kind").into(),
            texts(names, "shortNames").join(",").into(),
            is_established(tree).into(),
        ]
    },
};

fn versions(spec: &Value) -> String {
    let served = items(spec, "versions").iter().filter(|it| flag(*it, "served"));
    let mut shown: Vec<String> = served
        .map(|it| match flag(it, "storage") {
            true => format!("{}(storage)", text(it, "name")),
            false => text(it, "name").to_owned(),
        })
        .collect();
    shown.sort_unstable();
    shown.join(",")
}

fn is_established(tree: &Tree) -> bool {
    let conditions = items(at(tree, &["status"]), "conditions").iter();
    let mut established = conditions.filter(|it| text(*it, "type") == "Established");
    established.any(|it| text(it, "status") == "True")
}

/// The table of a custom resource.
#[derive(Debug, Clone)]
pub(crate) struct CustomTable {
    pub(super) columns: Vec<Column>,
    /// How the columns after the name are filled; `None` if the path is not understood. Empty for a
    /// resource without columns of its own, whose second column is the age.
    paths: Vec<Option<JsonPath>>,
}

impl CustomTable {
    pub(crate) fn new(columns: &[PrinterColumn]) -> Self {
        if columns.is_empty() {
            let age = Column { r#type: "date".into(), ..AGE };
            return Self { columns: vec![NAME, age], paths: Vec::new() };
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
                format: column.format.clone().into(),
                description: description.into(),
                priority: column.priority,
            }
        });
        Self {
            columns: std::iter::once(NAME).chain(more).collect(),
            paths: columns.iter().map(|column| JsonPath::parse(&column.json_path)).collect(),
        }
    }

    pub(super) fn cells(&self, tree: &Tree, now: Timestamp) -> Vec<Value> {
        let mut cells = vec![name_of(tree)];
        if self.paths.is_empty() {
            cells.push(age_of(tree, now));
        }
        for (column, path) in self.columns.iter().skip(1).zip(&self.paths) {
            let value = path.as_ref().and_then(|path| path.first(tree));
            cells.push(value.map_or(Value::Null, |it| cell(&column.r#type, it, now)));
        }
        cells
    }
}

/// A value as its column wants it; null if it is of another type.
fn cell(r#type: &str, value: &Value, now: Timestamp) -> Value {
    match (r#type, value) {
        (_, Value::Null) => Value::Null,
        ("string", Value::String(text)) => text.as_str().into(),
        ("string", value) => value.to_string().into(),
        ("integer", value) => integer(value).map_or(Value::Null, Value::from),
        ("number", value) => value.as_f64().map_or(Value::Null, Value::from),
        ("boolean", Value::Bool(truth)) => (*truth).into(),
        ("date", Value::String(text)) => match text.parse::<Timestamp>() {
            Ok(_) => age(now, Some(text)).into(),
            Err(_) => "<invalid>".into(),
        },
        (_, _) => Value::Null,
    }
}

/// A whole number, or a fraction without what follows the point.
fn integer(value: &Value) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "the fraction is to be cut off")]
    let whole = || value.as_f64().map(|it| it as i64);
    value.as_i64().or_else(whole)
}
