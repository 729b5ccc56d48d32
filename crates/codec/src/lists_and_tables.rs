//! Lists and tables of encoded objects.

use std::borrow::Cow;

use api_object::Tree;
use serde_json::Value;

use crate::encode::write_json;
use crate::response_format::MetaVersion;

/// The metadata of a list or a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListMetadata {
    /// The resourceVersion of the list; `None` omits it.
    pub resource_version: Option<u64>,
    /// The token of the next page; an empty one is omitted.
    pub continue_token: String,
    /// The number of objects on later pages, if it is known.
    pub remaining_item_count: Option<u64>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableColumn {
    /// The heading of the column.
    pub name: Cow<'static, str>,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub kind: Cow<'static, str>,
    /// `name` for the column with the name of the object; otherwise mostly empty.
    pub column_format: Cow<'static, str>,
    /// A sentence about the column, for users.
    pub description: Cow<'static, str>,
    /// Clients show columns with a priority above 0 only in wide output.
    pub column_priority: i32,
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TableRow {
    /// The cells, one for each column.
    pub cells: Vec<Value>,
    /// The JSON of the object, or of its metadata; `None` omits it.
    pub object_json: Option<Vec<u8>>,
}

/// Encodes a table. Only the first event of a watch has columns.
pub fn encode_table(
    version: MetaVersion,
    metadata: &ListMetadata,
    columns: Option<&[TableColumn]>,
    rows: &[TableRow],
    out: &mut Vec<u8>,
) {
    write_table_head(version, metadata, columns, out);
    out.extend_from_slice(b",\"rows\":");
    write_json_array(rows, out, write_table_row);
    out.push(b'}');
}

/// Writes a table from its opening brace to the end of its columns.
pub(crate) fn write_table_head(
    version: MetaVersion,
    metadata: &ListMetadata,
    columns: Option<&[TableColumn]>,
    out: &mut Vec<u8>,
) {
    write_list_head(version.api_version(), "Table", metadata, out);
    out.extend_from_slice(b",\"columnDefinitions\":");
    match columns {
        None => out.extend_from_slice(b"null"),
        Some(columns) => write_json_array(columns, out, write_table_column),
    }
}

/// An object reduced to its metadata.
#[must_use]
pub fn to_partial_metadata(tree: &Tree, version: MetaVersion) -> Tree {
    let mut partial = Tree::new();
    partial.insert("kind".to_owned(), "PartialObjectMetadata".into());
    partial.insert("apiVersion".to_owned(), version.api_version().into());
    partial.insert("metadata".to_owned(), Value::Object(api_object::metadata(tree).clone()));
    partial
}

/// Writes a list or table from its opening brace to the end of its metadata.
pub(crate) fn write_list_head(
    api_version: &str,
    kind: &str,
    metadata: &ListMetadata,
    out: &mut Vec<u8>,
) {
    let mut members = Tree::new();
    if let Some(version) = metadata.resource_version {
        members.insert("resourceVersion".to_owned(), version.to_string().into());
    }
    if !metadata.continue_token.is_empty() {
        members.insert("continue".to_owned(), metadata.continue_token.as_str().into());
    }
    if let Some(count) = metadata.remaining_item_count {
        members.insert("remainingItemCount".to_owned(), count.into());
    }
    out.extend_from_slice(b"{\"kind\":");
    write_json(out, kind);
    out.extend_from_slice(b",\"apiVersion\":");
    write_json(out, api_version);
    out.extend_from_slice(b",\"metadata\":");
    write_json(out, &members);
}

fn write_json_array<T>(items: &[T], out: &mut Vec<u8>, write: fn(&T, &mut Vec<u8>)) {
    out.push(b'[');
    for (idx, item) in items.iter().enumerate() {
        if idx > 0 {
            out.push(b',');
        }
        write(item, out);
    }
    out.push(b']');
}

fn write_table_column(column: &TableColumn, out: &mut Vec<u8>) {
    let texts = [
        (&b"{\"name\":"[..], &column.name),
        (b",\"type\":", &column.kind),
        (b",\"format\":", &column.column_format),
        (b",\"description\":", &column.description),
    ];
    for (label, text) in texts {
        out.extend_from_slice(label);
        write_json(out, text.as_ref());
    }
    out.extend_from_slice(b",\"priority\":");
    write_json(out, &column.column_priority);
    out.push(b'}');
}

/// Writes a row of a table.
pub fn write_table_row(row: &TableRow, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"cells\":");
    write_json(out, &row.cells);
    if let Some(object) = &row.object_json {
        out.extend_from_slice(b",\"object\":");
        out.extend_from_slice(object);
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn name_column() -> TableColumn {
        TableColumn {
            name: "Name".into(),
            kind: "string".into(),
            column_format: "name".into(),
            description: "what \"it\" is called".into(),
            column_priority: 0,
        }
    }

    fn table(columns: Option<&[TableColumn]>, rows: &[TableRow]) -> Value {
        let metadata = ListMetadata {
            resource_version: Some(253),
            continue_token: "abc".to_owned(),
            remaining_item_count: Some(7),
        };
        let mut out = Vec::new();
        encode_table(MetaVersion::V1, &metadata, columns, rows, &mut out);
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn a_table_holds_columns_cells_and_objects() {
        let object = json!({"kind": "PartialObjectMetadata", "metadata": {}});
        let with_object = TableRow {
            cells: vec![json!("a"), json!(1), json!("46s")],
            object_json: Some(object.to_string().into_bytes()),
        };
        let without = TableRow { cells: vec![json!(null)], object_json: None };
        let want = json!({
            "kind": "Table", "apiVersion": "meta.k8s.io/v1",
            "metadata": {"resourceVersion": "253", "continue": "abc", "remainingItemCount": 7},
            "columnDefinitions": [{
                "name": "Name", "type": "string", "format": "name",
                "description": "what \"it\" is called", "priority": 0,
            }],
            "rows": [{"cells": ["a", 1, "46s"], "object": object}, {"cells": [null]}],
        });
        assert_eq!(table(Some(&[name_column()]), &[with_object, without]), want);
    }

    #[test]
    fn an_empty_table_has_rows_and_a_later_event_no_columns() {
        let empty = table(None, &[]);
        assert_eq!(empty["rows"], json!([]));
        assert_eq!(empty["columnDefinitions"], Value::Null);
    }

    #[test]
    fn partial_metadata_contains_only_metadata() {
        let tree = json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "a"}, "data": {}});
        let partial = to_partial_metadata(tree.as_object().unwrap(), MetaVersion::V1);
        let want = json!({
            "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "a"},
        });
        assert_eq!(Value::Object(partial), want);
    }
}
