//! Converts YAML of any kind to JSON.

use serde_json::Value;

use crate::node::DocumentLimits;
use crate::source::Source;
use crate::yaml::{self, YamlError};

/// The maximum number of values in a converted document. The limit leaves room for every object that a server would
/// store, and bounds the cost of a body that consists of brackets.
pub const YAML_TO_JSON_NODES_MAX: usize = 400_000;

/// The maximum size of all texts of a converted document after its aliases are expanded, in bytes.
const EXPANDED_BYTES_MAX: usize = 16 << 20;

/// The maximum number of duplicate keys that are reported. Kubernetes has the same limit.
const DUPLICATES_MAX: usize = 100;

/// The first document of a YAML text as JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct YamlAsJson {
    /// The document; `null` if it is empty.
    pub value: Value,
    /// The paths of duplicate keys, such as `data.a`; the last value counts.
    pub duplicate_keys: Vec<String>,
}

/// Reads the first document of a text, as Kubernetes reads YAML.
///
/// # Errors
///
/// The text is not YAML, or JSON cannot express it. The message is that of Kubernetes.
pub fn yaml_to_json(bytes: &[u8]) -> Result<YamlAsJson, YamlError> {
    let limits = DocumentLimits {
        nodes_max: YAML_TO_JSON_NODES_MAX,
        expanded_bytes_max: EXPANDED_BYTES_MAX,
        duplicate_keys_max: DUPLICATES_MAX,
    };
    let (text, malformed) = Source { name: "-", file_bytes: bytes }.decode_text();
    match yaml::read_documents(&text, malformed, limits).next() {
        None => Ok(YamlAsJson { value: Value::Null, duplicate_keys: Vec::new() }),
        Some(Err(error)) => Err(error),
        Some(Ok(composed)) => Ok(YamlAsJson {
            value: composed.root_node.to_json_value(),
            duplicate_keys: composed.duplicate_keys.into_iter().map(|found| found.path).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_keep_their_value() {
        let tree =
            yaml_to_json(b"a: 9223372036854775807\nb: 0x10\nc: 1.5\nd: 18446744073709551615\n");
        let want = json!({"a": i64::MAX, "b": 16, "c": 1.5, "d": u64::MAX});
        assert_eq!(tree.unwrap().value, want);
    }

    #[test]
    fn duplicates_have_paths_and_the_last_one_counts() {
        let tree = yaml_to_json(b"data:\n  a: 1\n  a: 2\nl:\n- {x: 1, x: 2}\n").unwrap();
        assert_eq!(tree.value, json!({"data": {"a": 2}, "l": [{"x": 2}]}));
        assert_eq!(tree.duplicate_keys, ["data.a", "l[0].x"]);
    }

    #[test]
    fn malformed_yaml_is_refused() {
        assert!(yaml_to_json(b"a: b: c").unwrap_err().message.starts_with("yaml: "));
        assert_eq!(yaml_to_json(b"\xff").unwrap_err().message, "yaml: invalid UTF-8");
        assert_eq!(yaml_to_json(b"").unwrap().value, Value::Null);
    }

    #[test]
    fn the_number_of_values_is_limited() {
        let wide = |n: usize| format!("[{}1]", "1,".repeat(n - 1));
        assert!(yaml_to_json(wide(YAML_TO_JSON_NODES_MAX - 2).as_bytes()).is_ok());
        assert!(yaml_to_json(wide(YAML_TO_JSON_NODES_MAX + 1).as_bytes()).is_err());
    }
}
