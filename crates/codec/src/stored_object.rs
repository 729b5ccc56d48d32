//! The form of stored objects, and how they are sent without decoding.
//!
//! Objects are read more often than written, and their resourceVersion is known only after the
//! write. A stored object is therefore compact JSON that begins with `apiVersion`, `kind` and
//! `metadata` and has no `resourceVersion`, which is inserted on the way out.

use api_object::Tree;
use serde_json::Value;

use crate::encode::write_json;
use crate::json_parser::{JsonError, parse_json};
use crate::response_format::MetaVersion;

/// The bytes are not a stored object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the stored bytes are not an object as this server stores it")]
pub struct MalformedStoredObject;

/// Whether an encoded object contains `apiVersion` and `kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IncludeTypeMeta {
    /// They are kept: for single objects, in watch events, and in lists of custom resources.
    Keep,
    /// They are dropped: in lists of built-in kinds, where the list itself has them.
    Drop,
}

/// Metadata that is never stored.
const METADATA_NOT_STORED: [&str; 2] = ["resourceVersion", "selfLink"];

/// Decodes a stored object. All readers of stored objects use this function, so that one limit applies: an
/// object may be nested as deeply as the objects that clients send ([`NESTING_MAX`](crate::NESTING_MAX)),
/// which is deeper than the limit of the JSON library.
///
/// # Errors
/// The bytes are not an object, or nested too deeply.
pub fn decode_stored_object(bytes: &[u8]) -> Result<Tree, JsonError> {
    if let Ok(tree) = serde_json::from_slice(bytes) {
        return Ok(tree);
    }
    match parse_json(bytes)?.value {
        Value::Object(tree) => Ok(tree),
        _ => Err(JsonError::not_an_object_error()),
    }
}

/// Encodes an object for the store.
#[must_use]
pub fn encode_stored_object(tree: &Tree) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    out.push(b'{');
    for name in ["apiVersion", "kind"] {
        write_member(
            &mut out,
            name,
            &Value::String(api_object::string_member(tree, name).to_owned()),
        );
    }
    out.extend_from_slice(b",\"metadata\":{");
    let metadata = api_object::metadata(tree).iter();
    for (name, value) in metadata.filter(|(name, _)| !METADATA_NOT_STORED.contains(&name.as_str()))
    {
        write_member(&mut out, name, value);
    }
    out.push(b'}');
    for (name, value) in tree {
        if !["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
            write_member(&mut out, name, value);
        }
    }
    out.push(b'}');
    out
}

/// Writes a member, after a comma unless it is the first.
fn write_member(out: &mut Vec<u8>, name: &str, value: &Value) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    write_json(out, name);
    out.push(b':');
    write_json(out, value);
}

/// Writes a stored object with its version.
///
/// # Errors
///
/// The bytes are not a stored object. Nothing is then written.
pub fn splice_resource_version(
    stored: &[u8],
    resource_version: u64,
    type_meta: IncludeTypeMeta,
    out: &mut Vec<u8>,
) -> Result<(), MalformedStoredObject> {
    StoredObjectLayout::parse(stored)?.write_with_resource_version(
        resource_version,
        type_meta,
        out,
    );
    Ok(())
}

/// Writes stored objects with their versions, one after the other. The objects of a list mostly begin with the same
/// `apiVersion` and `kind`, so it remembers the beginning of the last one and compares the next one with it.
#[derive(Debug, Default)]
pub struct ObjectSplicer {
    /// The last object up to the opening brace of its metadata.
    last_object_start: Vec<u8>,
    /// The bytes of `beginning` before `metadata`.
    type_meta_len: usize,
}

impl ObjectSplicer {
    /// Writes a stored object as [`splice_resource_version`] does.
    ///
    /// # Errors
    ///
    /// The bytes are not a stored object. Nothing is then written.
    pub fn write(
        &mut self,
        stored: &[u8],
        resource_version: u64,
        type_meta: IncludeTypeMeta,
        out: &mut Vec<u8>,
    ) -> Result<(), MalformedStoredObject> {
        let known = stored.strip_prefix(self.last_object_start.as_slice());
        let layout = match (known, self.last_object_start.get(..self.type_meta_len)) {
            (Some(rest), Some(type_meta)) if self.type_meta_len > 0 => {
                StoredObjectLayout { type_meta, metadata_and_rest: rest }
            }
            _ => {
                let layout = StoredObjectLayout::parse(stored)?;
                let beginning_bytes = stored.len() - layout.metadata_and_rest.len();
                self.last_object_start.clear();
                self.last_object_start.extend(stored.iter().take(beginning_bytes));
                self.type_meta_len = layout.type_meta.len();
                layout
            }
        };
        layout.write_with_resource_version(resource_version, type_meta, out);
        Ok(())
    }
}

/// Writes a stored object with its version, reduced to its metadata.
///
/// # Errors
///
/// The bytes are not a stored object. Nothing is then written.
pub fn splice_partial_metadata(
    stored: &[u8],
    resource_version: u64,
    version: MetaVersion,
    out: &mut Vec<u8>,
) -> Result<(), MalformedStoredObject> {
    let layout = StoredObjectLayout::parse(stored)?;
    let metadata = layout
        .metadata_and_rest
        .get(..json_object_length(layout.metadata_and_rest)?)
        .ok_or(MalformedStoredObject)?;
    out.extend_from_slice(b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"");
    out.extend_from_slice(version.api_version().as_bytes());
    out.extend_from_slice(b"\",");
    write_metadata_start(out, resource_version, metadata);
    out.extend_from_slice(metadata);
    out.push(b'}');
    Ok(())
}

/// The parts of a stored object. INVARIANT: `"metadata":{` is between them.
pub(crate) struct StoredObjectLayout<'s> {
    /// From the opening brace to the comma before `metadata`.
    type_meta: &'s [u8],
    /// From the first member of `metadata` to the end.
    pub(crate) metadata_and_rest: &'s [u8],
}

impl<'s> StoredObjectLayout<'s> {
    pub(crate) fn parse(stored: &'s [u8]) -> Result<Self, MalformedStoredObject> {
        let rest = stored.strip_prefix(b"{\"apiVersion\":\"").ok_or(MalformedStoredObject)?;
        let rest = skip_string(rest)?.strip_prefix(b",\"kind\":\"").ok_or(MalformedStoredObject)?;
        let rest = skip_string(rest)?.strip_prefix(b",").ok_or(MalformedStoredObject)?;
        let type_meta = stored.get(..stored.len() - rest.len()).ok_or(MalformedStoredObject)?;
        let rest = rest.strip_prefix(b"\"metadata\":{").ok_or(MalformedStoredObject)?;
        Ok(Self { type_meta, metadata_and_rest: rest })
    }

    fn write_with_resource_version(
        &self,
        resource_version: u64,
        type_meta: IncludeTypeMeta,
        out: &mut Vec<u8>,
    ) {
        let type_meta = match type_meta {
            IncludeTypeMeta::Keep => self.type_meta,
            IncludeTypeMeta::Drop => b"{",
        };
        out.reserve(type_meta.len() + VERSION_BYTES_MAX + self.metadata_and_rest.len());
        out.extend_from_slice(type_meta);
        write_metadata_start(out, resource_version, self.metadata_and_rest);
        out.extend_from_slice(self.metadata_and_rest);
    }
}

/// The maximum number of bytes that [`write_metadata_start`] writes.
const VERSION_BYTES_MAX: usize = METADATA_START.len() + U64_DIGITS_MAX + 2;
const METADATA_START: &[u8] = b"\"metadata\":{\"resourceVersion\":\"";
const U64_DIGITS_MAX: usize = 20;

/// Writes `"metadata":{` and the version, and a comma if a member follows.
fn write_metadata_start(out: &mut Vec<u8>, resource_version: u64, rest: &[u8]) {
    out.extend_from_slice(METADATA_START);
    // Without an allocation, since lists do it for every object.
    let mut digits = [b'0'; U64_DIGITS_MAX];
    let mut number = resource_version;
    let mut n_digits = 0;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
        n_digits += 1;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(U64_DIGITS_MAX - n_digits..).unwrap_or_default());
    out.extend_from_slice(if rest.first() == Some(&b'}') { b"\"" } else { b"\"," });
}

/// The bytes after the closing quote of a string whose opening quote was consumed.
pub(crate) fn skip_string(mut rest: &[u8]) -> Result<&[u8], MalformedStoredObject> {
    loop {
        rest = match rest {
            [b'"', rest @ ..] => return Ok(rest),
            [b'\\', _, rest @ ..] | [_, rest @ ..] => rest,
            [] => return Err(MalformedStoredObject),
        };
    }
}

/// The length, including the closing brace, of an object whose opening brace was consumed.
pub(crate) fn json_object_length(bytes: &[u8]) -> Result<usize, MalformedStoredObject> {
    let mut depth = 1_usize;
    let mut rest = bytes;
    while let [byte, after @ ..] = rest {
        rest = after;
        match byte {
            b'"' => rest = skip_string(rest)?,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Ok(bytes.len() - rest.len());
        }
    }
    Err(MalformedStoredObject)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::testing::tree;

    /// Attack A14: every object that the server accepts can be read back from the store, however deeply it is
    /// nested.
    #[test]
    fn deep_objects_are_read_back() {
        for depth in [1, 126, 127, 128, 130, 400, 509] {
            let mut value = json!(1);
            for _ in 0..depth {
                value = json!({ "a": value });
            }
            let stored =
                encode_stored_object(&json!({"spec": value}).as_object().cloned().unwrap());
            assert_eq!(decode_stored_object(&stored).unwrap()["spec"], value, "{depth}");
        }
        assert!(decode_stored_object(b"[]").is_err());
        assert!(decode_stored_object(b"{").is_err());
        let deep = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
        assert!(decode_stored_object(deep.as_bytes()).is_err());
    }

    fn object(value: Value) -> Tree {
        value.as_object().cloned().unwrap_or_default()
    }

    fn read(bytes: &[u8]) -> Tree {
        object(crate::json_parser::parse_json(bytes).unwrap().value)
    }

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn stored_objects_have_a_fixed_layout_without_version() {
        let tree = object(json!({
            "data": {"a": "1"}, "kind": "ConfigMap",
            "metadata": {"selfLink": "/x", "name": "a", "resourceVersion": "7"}, "apiVersion": "v1",
        }));
        let want =
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"1"}}"#;
        assert_eq!(text(encode_stored_object(&tree)), want);
        let bare = r#"{"apiVersion":"","kind":"","metadata":{}}"#;
        assert_eq!(text(encode_stored_object(&Tree::new())), bare);
    }

    #[test]
    fn the_version_is_spliced_in() {
        let stored = br#"{"apiVersion":"v1","kind":"K","metadata":{"name":"}\""},"a":1}"#;
        let splice = |type_meta| {
            let mut out = b"[".to_vec();
            splice_resource_version(stored, 42, type_meta, &mut out).unwrap();
            text(out)
        };
        let want = r#"[{"apiVersion":"v1","kind":"K","metadata":{"resourceVersion":"42","name":"}\""},"a":1}"#;
        assert_eq!(splice(IncludeTypeMeta::Keep), want);
        let want = r#"[{"metadata":{"resourceVersion":"42","name":"}\""},"a":1}"#;
        assert_eq!(splice(IncludeTypeMeta::Drop), want);
        let mut out = Vec::new();
        splice_partial_metadata(stored, 42, MetaVersion::V1, &mut out).unwrap();
        let want = r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"42","name":"}\""}}"#;
        assert_eq!(text(out), want);
    }

    #[test]
    fn malformed_bytes_are_refused() {
        for bytes in [
            &b""[..],
            b"{}",
            br#"{"kind":"K","apiVersion":"v1","metadata":{}}"#,
            br#"{"apiVersion":"v1","kind":"K","spec":{}}"#,
            br#"{"apiVersion":"v1"#,
            b"k8s\0\x0a",
        ] {
            let mut out = Vec::new();
            let spliced = splice_resource_version(bytes, 1, IncludeTypeMeta::Keep, &mut out);
            assert_eq!((spliced, out.len()), (Err(MalformedStoredObject), 0));
        }
        let cut = br#"{"apiVersion":"v1","kind":"K","metadata":{"a":[{}]"#;
        let mut out = Vec::new();
        let spliced = splice_partial_metadata(cut, 1, MetaVersion::V1, &mut out);
        assert_eq!(spliced, Err(MalformedStoredObject));
    }

    #[test]
    fn a_splicer_writes_objects_that_begin_alike_or_not() {
        let stored = [
            &br#"{"apiVersion":"v1","kind":"A","metadata":{"name":"a"}}"#[..],
            br#"{"apiVersion":"v1","kind":"A","metadata":{}}"#,
            br#"{"apiVersion":"v1","kind":"A","metadata":{"name":"b"},"data":{}}"#,
            br#"{"apiVersion":"v1","kind":"AB","metadata":{"name":"b"}}"#,
            br#"{"apiVersion":"v1","kind":"A"","metadata":{"name":"b"}}"#,
            br#"{"apiVersion":"v1","kind":"A","spec":{}}"#,
            b"",
            br#"{"apiVersion":"v1","kind":"A","metadata":{"name":"c"}}"#,
        ];
        for type_meta in [IncludeTypeMeta::Keep, IncludeTypeMeta::Drop] {
            let mut splicer = ObjectSplicer::default();
            for (version, bytes) in [0, 7, 10, u64::MAX].into_iter().cycle().zip(stored) {
                let (mut out, mut want) = (Vec::new(), Vec::new());
                let written = splicer.write(bytes, version, type_meta, &mut out);
                let spliced = splice_resource_version(bytes, version, type_meta, &mut want);
                assert_eq!((written, text(out)), (spliced, text(want)));
            }
        }
    }

    proptest! {
        #[test]
        fn splicing_equals_inserting_a_member(metadata in tree(), spec in tree(), kind in ".{0,8}", version: u64) {
            let mut whole = object(json!({
                "apiVersion": "g/v1", "kind": kind, "metadata": metadata, "spec": spec,
            }));
            let stored = encode_stored_object(&whole);
            let metadata = api_object::metadata_mut(&mut whole);
            metadata.shift_remove("selfLink");
            metadata.insert("resourceVersion".to_owned(), version.to_string().into());
            let mut out = Vec::new();
            splice_resource_version(&stored, version, IncludeTypeMeta::Keep, &mut out).unwrap();
            prop_assert_eq!(&read(&out), &whole);
            let mut out = Vec::new();
            splice_partial_metadata(&stored, version, MetaVersion::V1, &mut out).unwrap();
            let partial = read(&out);
            prop_assert_eq!(&partial["metadata"], &whole["metadata"]);
            whole.shift_remove("apiVersion");
            whole.shift_remove("kind");
            let mut out = Vec::new();
            splice_resource_version(&stored, version, IncludeTypeMeta::Drop, &mut out).unwrap();
            prop_assert_eq!(&read(&out), &whole);
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = splice_resource_version(&bytes, 1, IncludeTypeMeta::Keep, &mut Vec::new());
            let mut framed = br#"{"apiVersion":"v1","kind":"K","metadata":{"#.to_vec();
            framed.extend(bytes);
            let _ = splice_partial_metadata(&framed, 1, MetaVersion::V1, &mut Vec::new());
        }
    }
}
