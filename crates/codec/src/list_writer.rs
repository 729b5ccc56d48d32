//! Writes a list or a table item by item, in every format of a response.
//!
//! A list can be far larger than its largest item. The server therefore writes it while it is sent, and never holds
//! more than a few items in their encoded form.

use serde_json::{Map, Value};

use crate::encode::{RESPONSE_NESTING_MAX, write_pretty_json};
use crate::json_parser::parse_json_with_nesting_limit;
use crate::lists_and_tables::{ListMetadata, TableColumn, write_list_head, write_table_head};
use crate::response_format::{MetaVersion, ResponseBodyFormat, ResponseEncoding};
use crate::yaml_writer;

/// The levels of indentation around an item of a pretty list.
const ITEM_INDENT: &[u8] = b"    ";

/// Writes the parts of one list or table, in the order [`write_list_start`](Self::write_list_start), any number of
/// [`write_list_item`](Self::write_list_item), [`write_list_end`](Self::write_list_end).
#[derive(Debug)]
pub struct ListWriter {
    list_layout: ListLayout,
    /// Compact JSON from the opening brace up to the member of the items.
    list_head: Vec<u8>,
    /// The member of the items: `items` or `rows`.
    items_member_name: &'static str,
    has_written_items: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListLayout {
    CompactJson,
    PrettyJson,
    Yaml,
}

impl ListWriter {
    /// A list of this kind.
    #[must_use]
    pub fn for_list(
        api_version: &str,
        kind: &str,
        metadata: &ListMetadata,
        encoding: &ResponseEncoding,
    ) -> Self {
        let mut head = Vec::new();
        write_list_head(api_version, kind, metadata, &mut head);
        Self {
            list_layout: ListLayout::of(encoding),
            list_head: head,
            items_member_name: "items",
            has_written_items: false,
        }
    }

    /// A table with these columns, whose items are rows.
    #[must_use]
    pub fn for_table(
        version: MetaVersion,
        metadata: &ListMetadata,
        columns: &[TableColumn],
        encoding: &ResponseEncoding,
    ) -> Self {
        let mut head = Vec::new();
        write_table_head(version, metadata, Some(columns), &mut head);
        Self {
            list_layout: ListLayout::of(encoding),
            list_head: head,
            items_member_name: "rows",
            has_written_items: false,
        }
    }

    /// Writes everything before the items.
    pub fn write_list_start(&mut self, out: &mut Vec<u8>) {
        match self.list_layout {
            ListLayout::CompactJson => {
                out.extend_from_slice(&self.list_head);
                out.extend_from_slice(b",\"");
                out.extend_from_slice(self.items_member_name.as_bytes());
                out.extend_from_slice(b"\":[");
            }
            ListLayout::PrettyJson => {
                let begin = out.len();
                write_pretty_json(out, &self.list_head_members());
                // The closing brace and the line feed before it follow after the items.
                out.truncate(out.len().saturating_sub(2).max(begin));
                out.extend_from_slice(b",\n  \"");
                out.extend_from_slice(self.items_member_name.as_bytes());
                out.extend_from_slice(b"\": [");
            }
            ListLayout::Yaml => self.write_yaml_members(out, |name, member| name < member),
        }
    }

    /// Writes an item, which `write` appends as compact JSON. If `write` fails, the item is left out.
    pub fn write_list_item(&mut self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> bool) {
        if self.list_layout == ListLayout::CompactJson {
            let before = out.len();
            if self.has_written_items {
                out.push(b',');
            }
            match write(out) {
                true => self.has_written_items = true,
                false => out.truncate(before),
            }
            return;
        }
        let mut json = Vec::new();
        if !write(&mut json) {
            return;
        }
        let parsed =
            parse_json_with_nesting_limit(&json, RESPONSE_NESTING_MAX).map(|parsed| parsed.value);
        match self.list_layout {
            ListLayout::CompactJson | ListLayout::PrettyJson => {
                out.extend_from_slice(if self.has_written_items { b",\n" } else { b"\n" });
                out.extend_from_slice(ITEM_INDENT);
                let mut pretty = Vec::new();
                match &parsed {
                    Ok(value) => write_pretty_json(&mut pretty, value),
                    Err(_) => pretty = json,
                }
                // A text of JSON has no line feed, so each one begins a line.
                for (idx, line) in pretty.split(|byte| *byte == b'\n').enumerate() {
                    if idx > 0 {
                        out.push(b'\n');
                        out.extend_from_slice(ITEM_INDENT);
                    }
                    out.extend_from_slice(line);
                }
            }
            ListLayout::Yaml => {
                if !self.has_written_items {
                    out.extend_from_slice(self.items_member_name.as_bytes());
                    out.extend_from_slice(b":\n");
                }
                let item = Value::Array(vec![parsed.unwrap_or_default()]);
                out.extend_from_slice(yaml_writer::write_yaml(&item).as_bytes());
            }
        }
        self.has_written_items = true;
    }

    /// Writes everything after the items.
    pub fn write_list_end(&mut self, out: &mut Vec<u8>) {
        match (self.list_layout, self.has_written_items) {
            (ListLayout::CompactJson, _) => out.extend_from_slice(b"]}\n"),
            (ListLayout::PrettyJson, true) => out.extend_from_slice(b"\n  ]\n}\n"),
            (ListLayout::PrettyJson, false) => out.extend_from_slice(b"]\n}\n"),
            (ListLayout::Yaml, has_items) => {
                if !has_items {
                    out.extend_from_slice(self.items_member_name.as_bytes());
                    out.extend_from_slice(b": []\n");
                }
                self.write_yaml_members(out, |name, member| name > member);
            }
        }
    }

    fn list_head_members(&self) -> Map<String, Value> {
        let json = [self.list_head.as_slice(), b"}"].concat();
        match parse_json_with_nesting_limit(&json, RESPONSE_NESTING_MAX).map(|parsed| parsed.value)
        {
            Ok(Value::Object(members)) => members,
            Ok(_) | Err(_) => Map::new(),
        }
    }

    /// Writes the members of the head that come before or after the items, because YAML sorts them.
    fn write_yaml_members(&self, out: &mut Vec<u8>, is_wanted: impl Fn(&str, &str) -> bool) {
        let mut members = self.list_head_members();
        members.retain(|name, _| is_wanted(name, self.items_member_name));
        if !members.is_empty() {
            out.extend_from_slice(yaml_writer::write_yaml(&Value::Object(members)).as_bytes());
        }
    }
}

impl ListLayout {
    fn of(encoding: &ResponseEncoding) -> Self {
        match (encoding.response_body_format, encoding.is_pretty) {
            (ResponseBodyFormat::Yaml, _) => Self::Yaml,
            (ResponseBodyFormat::Json, true) => Self::PrettyJson,
            (ResponseBodyFormat::Json, false) => Self::CompactJson,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{TableRow, encode_table, reencode_json, write_table_row};

    const COMPACT: ResponseEncoding = ResponseEncoding {
        response_body_format: ResponseBodyFormat::Json,
        is_pretty: false,
        object_transform: None,
    };

    fn encodings() -> [ResponseEncoding; 3] {
        [
            COMPACT,
            ResponseEncoding { is_pretty: true, ..COMPACT },
            ResponseEncoding { response_body_format: ResponseBodyFormat::Yaml, ..COMPACT },
        ]
    }

    fn write_all(mut writer: ListWriter, items: &[Option<Vec<u8>>]) -> String {
        let mut out = Vec::new();
        writer.write_list_start(&mut out);
        for item in items {
            writer.write_list_item(&mut out, |out| {
                // The bytes of an item that failed are removed again.
                out.extend_from_slice(item.as_deref().unwrap_or(b"{\"half\":"));
                item.is_some()
            });
        }
        writer.write_list_end(&mut out);
        String::from_utf8(out).unwrap()
    }

    /// Written item by item, a list is what it is when it is encoded whole.
    #[test]
    fn the_parts_of_a_list_are_the_whole() {
        let items = [
            json!({"metadata": {"name": "a"}, "data": {"k": "two\nlines", "e": {}, "n": null}}),
            json!({"list": [[], [1, 2.5, {"a": "b"}], "x: y"], "empty": ""}),
            json!({}),
        ];
        let metadatas = [
            ListMetadata::default(),
            ListMetadata {
                resource_version: Some(253),
                continue_token: "abc".to_owned(),
                remaining_item_count: Some(7),
            },
        ];
        for encoding in encodings() {
            for metadata in &metadatas {
                for n_items in 0..=items.len() {
                    let items = &items[..n_items];
                    let mut whole = Vec::new();
                    write_list_head("v1", "ConfigMapList", metadata, &mut whole);
                    let texts: Vec<String> = items.iter().map(Value::to_string).collect();
                    whole.extend_from_slice(
                        format!(",\"items\":[{}]}}", texts.join(",")).as_bytes(),
                    );
                    let whole = String::from_utf8(reencode_json(whole, &encoding)).unwrap();
                    let writer = ListWriter::for_list("v1", "ConfigMapList", metadata, &encoding);
                    let mut parts: Vec<_> =
                        texts.into_iter().map(|own| Some(own.into_bytes())).collect();
                    // Items that fail, first, last and in between, leave no trace.
                    for at in [0, parts.len().div_ceil(2)] {
                        parts.insert(at, None);
                    }
                    parts.push(None);
                    assert_eq!(write_all(writer, &parts), whole, "{encoding:?}");
                }
            }
        }
    }

    #[test]
    fn the_parts_of_a_table_are_the_whole() {
        let columns = [TableColumn {
            name: "Name".into(),
            kind: "string".into(),
            column_format: "name".into(),
            description: "what \"it\" is called".into(),
            column_priority: 0,
        }];
        let rows = [
            TableRow {
                cells: vec![json!("a"), json!(null)],
                object_json: Some(b"{\"kind\":\"K\"}".to_vec()),
            },
            TableRow { cells: vec![json!("b")], object_json: None },
        ];
        let metadata = ListMetadata { resource_version: Some(2), ..ListMetadata::default() };
        for encoding in encodings() {
            for n_rows in 0..=rows.len() {
                let rows = &rows[..n_rows];
                let mut whole = Vec::new();
                encode_table(MetaVersion::V1, &metadata, Some(&columns), rows, &mut whole);
                let whole = String::from_utf8(reencode_json(whole, &encoding)).unwrap();
                let writer = ListWriter::for_table(MetaVersion::V1, &metadata, &columns, &encoding);
                let parts: Vec<_> = rows
                    .iter()
                    .map(|row| {
                        let mut out = Vec::new();
                        write_table_row(row, &mut out);
                        Some(out)
                    })
                    .collect();
                assert_eq!(write_all(writer, &parts), whole, "{encoding:?}");
            }
        }
    }
}
