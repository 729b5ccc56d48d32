//! The memory that a JSON text takes as a tree, estimated before it is decoded.

use serde_json::Value;

/// The memory of one value: itself, the name and the hash of a member, and the room that lists keep for more. The bytes of
/// texts come on top.
const VALUE_BYTES: usize = size_of::<(u64, String, Value)>() + 24;

/// About as many bytes as the tree of a JSON text takes.
pub fn estimate_tree_bytes(json: &[u8]) -> usize {
    let n_values = count_json_values(json, usize::MAX);
    n_values.saturating_mul(VALUE_BYTES).saturating_add(json.len())
}

/// Counts the values of a JSON text without decoding it, and stops at `count_max`.
pub fn count_json_values(json: &[u8], count_max: usize) -> usize {
    let mut n_values = 1;
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => skip_json_string(&mut bytes),
            // Each member but the first follows a comma, and each first one the beginning of its list or object.
            b',' | b'[' | b'{' => {
                n_values += 1;
                if n_values >= count_max {
                    return n_values;
                }
            }
            _ => {}
        }
    }
    n_values
}

/// Moves to the end of a text, whose quotation marks may be escaped.
fn skip_json_string(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A20: the values of a patch are counted without memory for them.
    #[test]
    fn a20_values_are_counted_without_decoding() {
        for (json, n_values) in [
            ("1", 1),
            ("[]", 2),
            ("[1,2]", 3),
            (r#"{"a":[1,{"b":"[,,,"}],"c":"\",d":"\\"}"#, 6),
            (r#"  "a,b,c"  "#, 1),
            (r#""unfinished, \"#, 1),
        ] {
            assert_eq!(count_json_values(json.as_bytes(), usize::MAX), n_values, "{json}");
        }
        let operations = format!("[{}1]", "{},".repeat(1_000_000));
        assert_eq!(count_json_values(operations.as_bytes(), 1_001), 1_001);
    }

    /// A16: many short values weigh more than one long text of as many bytes.
    #[test]
    fn a16_short_values_weigh_more_than_their_bytes() {
        let values = format!("[{}1]", "1,".repeat(50_000));
        let text = format!("\"{}\"", ",".repeat(100_000));
        assert!(estimate_tree_bytes(values.as_bytes()) > 50_000 * size_of::<Value>());
        assert!(estimate_tree_bytes(text.as_bytes()) < 101_000);
    }
}
