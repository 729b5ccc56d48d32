//! Checks of stored bytes that may be damaged, and recovery of metadata.
//!
//! This server writes well-formed objects only. Other bytes appear if another program, another
//! version or a damaged disk wrote to the store.

use api_object::Tree;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::json_parser::{NESTING_MAX, parse_json};
use crate::stored_object::{
    MalformedStoredObject, StoredObjectLayout, json_object_length, skip_string,
};

/// Checks that stored bytes have the layout that splicing a version needs, are JSON, and are not nested
/// more deeply than [`decode_stored_object`](crate::decode_stored_object) reads. It reads the bytes without making a tree.
///
/// # Errors
/// The bytes cannot be sent as they are.
pub fn check_stored_object(stored: &[u8]) -> Result<(), MalformedStoredObject> {
    StoredObjectLayout::parse(stored)?;
    // `IgnoredAny` checks neither UTF-8 nor the nesting.
    std::str::from_utf8(stored).map_err(|_| MalformedStoredObject)?;
    serde_json::from_slice::<IgnoredAny>(stored).map_err(|_| MalformedStoredObject)?;
    match nesting_depth(stored)? <= NESTING_MAX {
        true => Ok(()),
        false => Err(MalformedStoredObject),
    }
}

/// The nesting depth of JSON, counted without recursion. Most objects have too few brackets to be
/// nested too deeply, so their strings are not scanned.
fn nesting_depth(json: &[u8]) -> Result<usize, MalformedStoredObject> {
    let n_opened = json.iter().filter(|byte| matches!(byte, b'{' | b'[')).count();
    if n_opened <= NESTING_MAX {
        return Ok(n_opened);
    }
    let (mut open, mut deepest) = (0_usize, 0_usize);
    let mut rest = json;
    while let [byte, after @ ..] = rest {
        rest = after;
        match byte {
            b'"' => rest = skip_string(rest)?,
            b'{' | b'[' => open += 1,
            b'}' | b']' => open = open.checked_sub(1).ok_or(MalformedStoredObject)?,
            _ => {}
        }
        deepest = deepest.max(open);
    }
    Ok(deepest)
}

/// Returns the metadata of an object that cannot be decoded, if the metadata itself is readable.
#[must_use]
pub fn salvage_metadata(stored: &[u8]) -> Option<Tree> {
    let rest = StoredObjectLayout::parse(stored).ok()?.metadata_and_rest;
    let members = rest.get(..json_object_length(rest).ok()?)?;
    let metadata = parse_json(&[b"{", members].concat()).ok()?.value;
    match metadata {
        Value::Object(tree) => Some(tree),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::testing::tree;
    use crate::{decode_stored_object, encode_stored_object};

    fn nested(depth: usize) -> Vec<u8> {
        let (open, close) = ("[".repeat(depth - 1), "]".repeat(depth - 1));
        let head = r#"{"apiVersion":"v1","kind":"K","metadata":{"name":"n","labels":{"a":"}"}}"#;
        format!("{head},\"spec\":{open}{close}}}").into_bytes()
    }

    #[test]
    fn damaged_objects_are_refused() {
        let sound = String::from_utf8(nested(3)).unwrap();
        for (bytes, is_sound) in [
            (nested(3), true),
            (nested(NESTING_MAX), true),
            (nested(NESTING_MAX + 1), false),
            (nested(600), false),
            (vec![b'['; 100_000], false),
            (Vec::new(), false),
            (b"{}".to_vec(), false),
            (b"{garbage".to_vec(), false),
            (sound.as_bytes()[..sound.len() - 1].to_vec(), false),
            (format!("{sound}}}").into_bytes(), false),
            (sound.replace("[[]]", "tru").into_bytes(), false),
            (sound.replace("}\"}", "\u{1}\"}").into_bytes(), false),
            ([&sound.as_bytes()[..sound.len() - 5], b"\"\xff\"}"].concat(), false),
        ] {
            let text = String::from_utf8_lossy(&bytes).chars().take(200).collect::<String>();
            assert_eq!(check_stored_object(&bytes).is_ok(), is_sound, "{text}");
            assert_eq!(decode_stored_object(&bytes).is_ok(), is_sound || bytes == b"{}", "{text}");
        }
    }

    #[test]
    fn metadata_is_salvaged_from_damaged_objects() {
        let want = json!({"name": "n", "labels": {"a": "}"}});
        for cut in [3, 600] {
            let bytes = nested(cut);
            let found = salvage_metadata(&bytes[..bytes.len() - 2]).map(Value::Object);
            assert_eq!(found, Some(want.clone()));
        }
        for lost in [&b"{garbage"[..], br#"{"apiVersion":"v1","kind":"K","metadata":{"name":"n""#] {
            assert_eq!(salvage_metadata(lost), None);
        }
    }

    proptest! {
        #[test]
        fn encoded_objects_pass_the_check(tree in tree()) {
            let whole = Tree::from_iter([("spec".to_owned(), tree)]);
            prop_assert!(check_stored_object(&encode_stored_object(&whole)).is_ok());
        }

        /// Every object that passes the check can be decoded, except for numbers and escapes that a tree cannot
        /// represent.
        #[test]
        fn objects_that_pass_can_be_decoded(bytes in "[ -~]{0,24}") {
            let stored =
                format!(r#"{{"apiVersion":"v1","kind":"K","metadata":{{}},"a":{bytes}}}"#);
            let is_odd = bytes.contains("\\u") || bytes.contains(['e', 'E']);
            if check_stored_object(stored.as_bytes()).is_ok() && !is_odd {
                prop_assert!(decode_stored_object(stored.as_bytes()).is_ok(), "{}", stored);
            }
            let _ = salvage_metadata(bytes.as_bytes());
        }
    }
}
