//! YAML that is about no particular kind: the tree that its first document is in JSON's terms.

use serde_json::Value;

use crate::node::Limits;
use crate::source::Source;
use crate::yaml;

/// The most values in such a tree: room for every object that a server would store, while a body
/// of nothing but brackets stays affordable.
pub const YAML_TREE_NODES_MAX: usize = 400_000;

/// The most text in such a tree after its aliases are expanded, in bytes.
const EXPANDED_BYTES_MAX: usize = 16 << 20;

/// The most duplicate keys that are noted; Kubernetes notes as many.
const DUPLICATES_MAX: usize = 100;

/// What a document holds.
#[derive(Debug, Clone, PartialEq)]
pub struct YamlTree {
    /// The document; `null` if it is empty.
    pub value: Value,
    /// The paths of keys that stand twice, such as `data.a`; the last one counts.
    pub duplicates: Vec<String>,
}

/// Reads the first document of a text, as Kubernetes reads YAML.
///
/// # Errors
///
/// Why the text is not YAML, or not YAML that JSON can express, in Kubernetes' words.
pub fn yaml_tree(bytes: &[u8]) -> Result<YamlTree, String> {
    let limits = Limits {
        nodes_max: YAML_TREE_NODES_MAX,
        expanded_bytes_max: EXPANDED_BYTES_MAX,
        duplicates_max: DUPLICATES_MAX,
    };
    let (text, malformed) = Source { name: "-", bytes }.decode();
    match yaml::documents(&text, malformed, limits).next() {
        None => Ok(YamlTree { value: Value::Null, duplicates: Vec::new() }),
        Some(Err(error)) => Err(error.message),
        Some(Ok(composed)) => Ok(YamlTree {
            value: composed.root.to_json(),
            duplicates: composed.duplicates.into_iter().map(|found| found.path).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_keep_their_value() {
        let tree = yaml_tree(b"a: 9223372036854775807\nb: 0x10\nc: 1.5\nd: 18446744073709551615\n");
        let want = json!({"a": i64::MAX, "b": 16, "c": 1.5, "d": u64::MAX});
        assert_eq!(tree.unwrap().value, want);
    }

    #[test]
    fn duplicates_have_paths_and_the_last_one_counts() {
        let tree = yaml_tree(b"data:\n  a: 1\n  a: 2\nl:\n- {x: 1, x: 2}\n").unwrap();
        assert_eq!(tree.value, json!({"data": {"a": 2}, "l": [{"x": 2}]}));
        assert_eq!(tree.duplicates, ["data.a", "l[0].x"]);
    }

    #[test]
    fn what_is_not_yaml_is_refused() {
        assert!(yaml_tree(b"a: b: c").unwrap_err().starts_with("yaml: "));
        assert_eq!(yaml_tree(b"\xff").unwrap_err(), "yaml: invalid UTF-8");
        assert_eq!(yaml_tree(b"").unwrap().value, Value::Null);
    }

    #[test]
    fn values_are_counted() {
        let wide = |n: usize| format!("[{}1]", "1,".repeat(n - 1));
        assert!(yaml_tree(wide(YAML_TREE_NODES_MAX - 2).as_bytes()).is_ok());
        assert!(yaml_tree(wide(YAML_TREE_NODES_MAX + 1).as_bytes()).is_err());
    }
}
