//! Encoding of objects, statuses and watch events.

use api_object::{Status, Tree};
use serde::Serialize;
use serde_json::Value;

use crate::json_parser::{NESTING_MAX, parse_json_with_nesting_limit};
use crate::response_format::{ResponseBodyFormat, ResponseEncoding};
use crate::yaml_writer;

/// The deepest nesting of a response: that of the deepest object, plus the levels that lists, tables and events
/// add.
pub(crate) const RESPONSE_NESTING_MAX: usize = NESTING_MAX + 8;

/// The type of a watch event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchEventType {
    /// An object was added.
    Added,
    /// An object was changed.
    Modified,
    /// An object was deleted.
    Deleted,
    /// All events up to a resourceVersion were sent.
    Bookmark,
    /// The stream ends with a Status.
    Error,
}

impl WatchEventType {
    /// The name in the JSON of an event.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark => "BOOKMARK",
            Self::Error => "ERROR",
        }
    }
}

/// Encodes an object as a response body.
#[must_use]
pub fn encode_object(tree: &Tree, answer: &ResponseEncoding) -> Vec<u8> {
    encode_value(tree, answer)
}

/// Encodes a status as a response body, without transformation.
#[must_use]
pub fn encode_status(status: &Status, answer: &ResponseEncoding) -> Vec<u8> {
    encode_value(status, answer)
}

/// Converts compact JSON of this server to the response format.
///
/// INVARIANT: `json` was written by this server. Other bytes stay as they are.
#[must_use]
pub fn reencode_json(mut json: Vec<u8>, answer: &ResponseEncoding) -> Vec<u8> {
    if (answer.response_body_format == ResponseBodyFormat::Yaml || answer.is_pretty)
        && let Ok(tree) = parse_json_with_nesting_limit(&json, RESPONSE_NESTING_MAX)
    {
        return encode_value(&tree.value, answer);
    }
    json.push(b'\n');
    json
}

/// Writes an event up to its object, which the caller appends.
pub fn write_watch_event_start(event: WatchEventType, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(event.name().as_bytes());
    out.extend_from_slice(b"\",\"object\":");
}

/// Ends an event after its object.
pub fn write_watch_event_end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"}\n");
}

fn encode_value<T: Serialize>(value: &T, answer: &ResponseEncoding) -> Vec<u8> {
    let mut out = Vec::new();
    match answer.response_body_format {
        ResponseBodyFormat::Json if answer.is_pretty => write_pretty_json(&mut out, value),
        ResponseBodyFormat::Json => write_json(&mut out, value),
        ResponseBodyFormat::Yaml => {
            let mut json = Vec::new();
            write_json(&mut json, value);
            let tree = parse_json_with_nesting_limit(&json, RESPONSE_NESTING_MAX);
            let tree = tree.map_or(Value::Null, |tree| tree.value);
            return yaml_writer::write_yaml(&tree).into_bytes();
        }
    }
    out.push(b'\n');
    out
}

/// Appends a value as compact JSON.
#[expect(clippy::expect_used, reason = "neither memory nor a tree of texts can fail to be written")]
pub(crate) fn write_json<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(out, value).expect("memory takes every tree");
}

#[expect(clippy::expect_used, reason = "neither memory nor a tree of texts can fail to be written")]
pub(crate) fn write_pretty_json<T: Serialize>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer_pretty(out, value).expect("memory takes every tree");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const COMPACT: ResponseEncoding = ResponseEncoding {
        response_body_format: ResponseBodyFormat::Json,
        is_pretty: false,
        object_transform: None,
    };
    const PRETTY: ResponseEncoding = ResponseEncoding { is_pretty: true, ..COMPACT };
    const YAML: ResponseEncoding =
        ResponseEncoding { response_body_format: ResponseBodyFormat::Yaml, ..COMPACT };

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn bodies_end_with_a_newline() {
        let tree = json!({"kind": "K", "items": [], "spec": {"a": [1]}});
        let tree = tree.as_object().unwrap();
        assert_eq!(
            text(encode_object(tree, &COMPACT)),
            "{\"kind\":\"K\",\"items\":[],\"spec\":{\"a\":[1]}}\n"
        );
        let pretty = "{\n  \"kind\": \"K\",\n  \"items\": [],\n  \"spec\": {\n    \"a\": [\n      \
                      1\n    ]\n  }\n}\n";
        assert_eq!(text(encode_object(tree, &PRETTY)), pretty);
        let yaml = "items: []\nkind: K\nspec:\n  a:\n  - 1\n";
        assert_eq!(text(encode_object(tree, &YAML)), yaml);
        let compact = serde_json::to_vec(tree).unwrap();
        assert_eq!(
            text(reencode_json(compact.clone(), &COMPACT)),
            text(encode_object(tree, &COMPACT))
        );
        assert_eq!(text(reencode_json(compact.clone(), &PRETTY)), pretty);
        assert_eq!(text(reencode_json(compact, &YAML)), yaml);
    }

    /// Attack A14: the deepest object that the server accepts does not break the encoding of a list that contains
    /// it.
    #[test]
    fn lists_of_the_deepest_objects_are_written_in_every_form() {
        let (open, close) = ("{\"a\":".repeat(NESTING_MAX), "}".repeat(NESTING_MAX));
        let list = format!("{{\"items\":[{{\"object\":{open}1{close}}}]}}").into_bytes();
        assert!(text(reencode_json(list.clone(), &PRETTY)).starts_with("{\n  \"items\": [\n"));
        assert!(text(reencode_json(list, &YAML)).starts_with("items:\n- object:\n    a:\n"));
    }

    #[test]
    fn statuses_have_the_response_format() {
        let status = Status::bad_request("no");
        let yaml = "apiVersion: v1\ncode: 400\nkind: Status\nmessage: \"no\"\nmetadata: {}\n\
                    reason: BadRequest\nstatus: Failure\n";
        assert_eq!(text(encode_status(&status, &YAML)), yaml);
        assert!(text(encode_status(&status, &COMPACT)).starts_with("{\"kind\":\"Status\","));
    }

    #[test]
    fn an_event_is_a_line() {
        let mut out = Vec::new();
        write_watch_event_start(WatchEventType::Added, &mut out);
        out.extend_from_slice(b"{}");
        write_watch_event_end(&mut out);
        assert_eq!(text(out), "{\"type\":\"ADDED\",\"object\":{}}\n");
    }
}
