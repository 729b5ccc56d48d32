//! Decodes protobuf bodies of Kubernetes clients to JSON trees, by the field tables.
//!
//! A body is a magic number and an envelope with the kind and the bytes of the object. The field tables
//! bound the nesting, so there is no other limit. The tree is at most a small multiple of the body.

mod wire_reader;

use api_object::Tree;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::Value;

use crate::field_types::{Field, FieldType, Message};
use crate::json;
use wire_reader::{WireReader, WireValue};

/// The reason why the bytes are not an object in protobuf.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProtobufError {
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    Magic,
    #[error("proto: unexpected end of data")]
    Truncated,
    #[error("proto: integer overflow")]
    Overflow,
    #[error("proto: illegal tag {0}")]
    IllegalTag(u64),
    #[error("proto: wrong wire type for field {0}")]
    WrongWireType(&'static str),
    #[error("proto: field {0} contains invalid UTF-8")]
    Utf8(&'static str),
    #[error("proto: field {0} is not a time")]
    Time(&'static str),
    #[error("proto: field {0} does not contain JSON")]
    Json(&'static str),
}

/// The magic number at the start of protobuf bodies.
const MAGIC: &[u8] = b"k8s\0";

/// Decodes a body to the object, with `apiVersion` and `kind` if the envelope has them.
pub(crate) fn decode(bytes: &[u8], message: &'static Message) -> Result<Tree, ProtobufError> {
    let envelope = bytes.strip_prefix(MAGIC).ok_or(ProtobufError::Magic)?;
    let mut tree = Tree::new();
    let mut raw: &[u8] = &[];
    for entry in WireReader::new(envelope) {
        match entry? {
            (1, WireValue::Bytes(type_meta)) => read_type_meta(type_meta, &mut tree)?,
            (2, WireValue::Bytes(bytes)) => raw = bytes,
            (1 | 2, _) => return Err(ProtobufError::WrongWireType("Unknown")),
            // Clients never set the fields about the encoding of the content.
            _ => {}
        }
    }
    read_message(raw, message, &mut tree)?;
    Ok(tree)
}

fn read_type_meta(bytes: &[u8], tree: &mut Tree) -> Result<(), ProtobufError> {
    for entry in WireReader::new(bytes) {
        let (name, content) = match entry? {
            (1, content) => ("apiVersion", content),
            (2, content) => ("kind", content),
            _ => continue,
        };
        let text = read_text(content, name)?;
        if !text.is_empty() {
            tree.insert(name.to_owned(), text.into());
        }
    }
    Ok(())
}

/// Reads the fields of a message into an object. Fields with unknown numbers are skipped.
fn read_message(
    bytes: &[u8],
    message: &'static Message,
    tree: &mut Tree,
) -> Result<(), ProtobufError> {
    for entry in WireReader::new(bytes) {
        let (number, content) = entry?;
        if let Some(field) = message.field_by_number(number) {
            read_field(content, field, tree)?;
        }
    }
    Ok(())
}

/// Reads one occurrence of a field.
///
/// Lists and maps grow with every occurrence, and messages merge. Of other fields the last occurrence
/// counts.
/// Encoders write zeros for fields that are unset, so a zero is dropped unless the table says that
/// it is a value.
fn read_field(content: WireValue<'_>, field: &Field, tree: &mut Tree) -> Result<(), ProtobufError> {
    let name = field.name;
    match field.field_type {
        FieldType::Inline(message) => return read_message(content.as_bytes(name)?, message, tree),
        FieldType::Object(message) => {
            return read_message(
                content.as_bytes(name)?,
                message,
                api_object::object_member_mut(tree, name),
            );
        }
        FieldType::List(field_type) => {
            let item = read_element(content, *field_type, name)?;
            if let Value::Array(items) = tree.entry(name).or_insert_with(|| Value::Array(vec![])) {
                items.push(item);
            }
        }
        FieldType::Map(field_type) => {
            let (key, value) = read_map_entry(content.as_bytes(name)?, *field_type, name)?;
            api_object::object_member_mut(tree, name).insert(key, value);
        }
        field_type => {
            let found = read_scalar(content, field_type, name)?;
            match found.filter(|value| field.keeps_zero || !is_zero(value, field_type)) {
                Some(value) => tree.insert(name.to_owned(), value),
                None => tree.shift_remove(name),
            };
        }
    }
    Ok(())
}

/// Reports whether a value is the zero value of its scalar type, which encoders write for an unset field.
/// Returns false for messages, lists and maps.
fn is_zero(value: &Value, field_type: FieldType) -> bool {
    match field_type {
        FieldType::Text | FieldType::Bytes => value.as_str() == Some(""),
        FieldType::Bool => value == &Value::Bool(false),
        FieldType::Int32 | FieldType::Int64 => value.as_i64() == Some(0),
        _ => false,
    }
}

/// Reads an item of a list or a value of a map, where zeros are values.
fn read_element(
    content: WireValue<'_>,
    field_type: FieldType,
    name: &'static str,
) -> Result<Value, ProtobufError> {
    match field_type {
        FieldType::Object(message) | FieldType::Inline(message) => {
            let mut tree = Tree::new();
            read_message(content.as_bytes(name)?, message, &mut tree)?;
            Ok(Value::Object(tree))
        }
        _ => Ok(read_scalar(content, field_type, name)?.unwrap_or(Value::Null)),
    }
}

fn read_map_entry(
    bytes: &[u8],
    field_type: FieldType,
    name: &'static str,
) -> Result<(String, Value), ProtobufError> {
    let mut key = String::new();
    // An entry without a value has the zero value of its type, which empty bytes decode to.
    let mut value = read_element(WireValue::Bytes(&[]), field_type, name)?;
    for entry in WireReader::new(bytes) {
        match entry? {
            (1, content) => key = read_text(content, name)?,
            (2, content) => value = read_element(content, field_type, name)?,
            _ => {}
        }
    }
    Ok((key, value))
}

/// Reads a value that is not an object; `None` if the message contains no value.
fn read_scalar(
    content: WireValue<'_>,
    field_type: FieldType,
    name: &'static str,
) -> Result<Option<Value>, ProtobufError> {
    Ok(Some(match field_type {
        FieldType::Text => read_text(content, name)?.into(),
        FieldType::Bytes => STANDARD.encode(content.as_bytes(name)?).into(),
        FieldType::Bool => (content.as_int64(name)? != 0).into(),
        FieldType::Int32 => content.as_int32(name)?.into(),
        FieldType::Int64 => content.as_int64(name)?.into(),
        FieldType::Time | FieldType::MicroTime => {
            return read_time(content.as_bytes(name)?, field_type, name);
        }
        FieldType::Json => return read_wrapped_json(content.as_bytes(name)?, name),
        FieldType::IntOrString => read_int_or_string(content.as_bytes(name)?, name)?,
        FieldType::WrappedTexts => read_wrapped_strings(content.as_bytes(name)?, name)?,
        // INVARIANT: the callers handle these types themselves.
        FieldType::Object(_) | FieldType::Inline(_) | FieldType::List(_) | FieldType::Map(_) => {
            return Err(ProtobufError::WrongWireType(name));
        }
    }))
}

fn read_text(content: WireValue<'_>, name: &'static str) -> Result<String, ProtobufError> {
    let bytes = content.as_bytes(name)?;
    let text = std::str::from_utf8(bytes).map_err(|_| ProtobufError::Utf8(name))?;
    Ok(text.to_owned())
}

/// Reads a time; `None` if the message is empty, which is how encoders write an unset time.
///
/// Fractions of a second that JSON does not show are dropped, as in Kubernetes, so that both formats decode
/// to the same object.
fn read_time(
    bytes: &[u8],
    field_type: FieldType,
    name: &'static str,
) -> Result<Option<Value>, ProtobufError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let (mut seconds, mut nanos) = (0, 0);
    for entry in WireReader::new(bytes) {
        match entry? {
            (1, content) => seconds = content.as_int64(name)?,
            (2, content) => nanos = content.as_int32(name)?,
            _ => {}
        }
    }
    let time = |nanos| Timestamp::new(seconds, nanos).map_err(|_| ProtobufError::Time(name));
    Ok(Some(match field_type {
        FieldType::MicroTime => api_object::rfc3339_micro(time(nanos)?).into(),
        _ => api_object::rfc3339(time(0)?).into(),
    }))
}

fn read_wrapped_json(bytes: &[u8], name: &'static str) -> Result<Option<Value>, ProtobufError> {
    let mut raw: &[u8] = &[];
    for entry in WireReader::new(bytes) {
        if let (1, content) = entry? {
            raw = content.as_bytes(name)?;
        }
    }
    if raw.is_empty() {
        return Ok(None);
    }
    let read = json::parse_json(raw).map_err(|_| ProtobufError::Json(name))?;
    Ok(Some(read.value))
}

fn read_int_or_string(bytes: &[u8], name: &'static str) -> Result<Value, ProtobufError> {
    let (mut is_text, mut number, mut words) = (false, 0, String::new());
    for entry in WireReader::new(bytes) {
        match entry? {
            (1, content) => is_text = content.as_int64(name)? != 0,
            (2, content) => number = content.as_int32(name)?,
            (3, content) => words = read_text(content, name)?,
            _ => {}
        }
    }
    Ok(if is_text { words.into() } else { number.into() })
}

fn read_wrapped_strings(bytes: &[u8], name: &'static str) -> Result<Value, ProtobufError> {
    let mut items = Vec::new();
    for entry in WireReader::new(bytes) {
        if let (1, content) = entry? {
            items.push(Value::String(read_text(content, name)?));
        }
    }
    Ok(Value::Array(items))
}

#[cfg(test)]
mod tests;
