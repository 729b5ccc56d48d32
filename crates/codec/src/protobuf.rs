//! Protobuf as Kubernetes' clients send it, read with the tables of fields into a tree.
//!
//! A body is a magic number and an envelope that names the kind and holds the bytes of the object.
//! Nesting is that of the tables, so it needs no limit of its own; what is read is never larger than
//! a small multiple of the body.

mod reader;

use api_object::Tree;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::Value;

use crate::field_shape::{Field, Message, Shape};
use crate::json;
use reader::{Reader, WireValue};

/// Why bytes are not an object in protobuf.
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

/// Reads a body: the object, with `apiVersion` and `kind` if the envelope has them.
pub(crate) fn decode(bytes: &[u8], message: &'static Message) -> Result<Tree, ProtobufError> {
    let envelope = bytes.strip_prefix(MAGIC).ok_or(ProtobufError::Magic)?;
    let mut tree = Tree::new();
    let mut raw: &[u8] = &[];
    for entry in Reader::new(envelope) {
        match entry? {
            (1, WireValue::Bytes(type_meta)) => read_type_meta(type_meta, &mut tree)?,
            (2, WireValue::Bytes(bytes)) => raw = bytes,
            (1 | 2, _) => return Err(ProtobufError::WrongWireType("Unknown")),
            // How the content is encoded is never said by clients.
            _ => {}
        }
    }
    read_message(raw, message, &mut tree)?;
    Ok(tree)
}

fn read_type_meta(bytes: &[u8], tree: &mut Tree) -> Result<(), ProtobufError> {
    for entry in Reader::new(bytes) {
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

/// Reads the fields of a message into an object. Fields of unknown numbers are skipped.
fn read_message(
    bytes: &[u8],
    message: &'static Message,
    tree: &mut Tree,
) -> Result<(), ProtobufError> {
    for entry in Reader::new(bytes) {
        let (number, content) = entry?;
        if let Some(field) = message.field_by_number(number) {
            read_field(content, field, tree)?;
        }
    }
    Ok(())
}

/// Reads one occurrence of a field.
///
/// Lists and maps grow with every occurrence, messages merge, of anything else the last one counts.
/// Encoders write zeros for fields that are unset, so a zero is dropped unless the table says that
/// it is a value.
fn read_field(content: WireValue<'_>, field: &Field, tree: &mut Tree) -> Result<(), ProtobufError> {
    let name = field.name;
    match field.shape {
        Shape::Inline(message) => return read_message(content.bytes(name)?, message, tree),
        Shape::Object(message) => {
            return read_message(content.bytes(name)?, message, api_object::object_mut(tree, name));
        }
        Shape::List(shape) => {
            let item = read_element(content, *shape, name)?;
            if let Value::Array(items) = tree.entry(name).or_insert_with(|| Value::Array(vec![])) {
                items.push(item);
            }
        }
        Shape::Map(shape) => {
            let (key, value) = read_map_entry(content.bytes(name)?, *shape, name)?;
            api_object::object_mut(tree, name).insert(key, value);
        }
        shape => {
            let found = read_scalar(content, shape, name)?;
            match found.filter(|value| field.keeps_zero || !is_zero(value, shape)) {
                Some(value) => tree.insert(name.to_owned(), value),
                None => tree.shift_remove(name),
            };
        }
    }
    Ok(())
}

/// Whether a value is the zero value of its scalar type, which encoders write for an unset field.
/// Returns false for messages, lists and maps.
fn is_zero(value: &Value, shape: Shape) -> bool {
    match shape {
        Shape::Text | Shape::Bytes => value.as_str() == Some(""),
        Shape::Bool => value == &Value::Bool(false),
        Shape::Int32 | Shape::Int64 => value.as_i64() == Some(0),
        _ => false,
    }
}

/// An item of a list or a value of a map, where zeros are values.
fn read_element(
    content: WireValue<'_>,
    shape: Shape,
    name: &'static str,
) -> Result<Value, ProtobufError> {
    match shape {
        Shape::Object(message) | Shape::Inline(message) => {
            let mut tree = Tree::new();
            read_message(content.bytes(name)?, message, &mut tree)?;
            Ok(Value::Object(tree))
        }
        _ => Ok(read_scalar(content, shape, name)?.unwrap_or(Value::Null)),
    }
}

fn read_map_entry(
    bytes: &[u8],
    shape: Shape,
    name: &'static str,
) -> Result<(String, Value), ProtobufError> {
    let mut key = String::new();
    // An entry without value has the zero of its type, which is what no bytes are read as.
    let mut value = read_element(WireValue::Bytes(&[]), shape, name)?;
    for entry in Reader::new(bytes) {
        match entry? {
            (1, content) => key = read_text(content, name)?,
            (2, content) => value = read_element(content, shape, name)?,
            _ => {}
        }
    }
    Ok((key, value))
}

/// A value that is no object; `None` where the message says that there is none.
fn read_scalar(
    content: WireValue<'_>,
    shape: Shape,
    name: &'static str,
) -> Result<Option<Value>, ProtobufError> {
    Ok(Some(match shape {
        Shape::Text => read_text(content, name)?.into(),
        Shape::Bytes => STANDARD.encode(content.bytes(name)?).into(),
        Shape::Bool => (content.int64(name)? != 0).into(),
        Shape::Int32 => content.int32(name)?.into(),
        Shape::Int64 => content.int64(name)?.into(),
        Shape::Time | Shape::MicroTime => return read_time(content.bytes(name)?, shape, name),
        Shape::Json => return read_wrapped_json(content.bytes(name)?, name),
        Shape::IntOrString => read_int_or_string(content.bytes(name)?, name)?,
        Shape::WrappedTexts => read_wrapped_strings(content.bytes(name)?, name)?,
        // INVARIANT on the callers: these have functions of their own.
        Shape::Object(_) | Shape::Inline(_) | Shape::List(_) | Shape::Map(_) => {
            return Err(ProtobufError::WrongWireType(name));
        }
    }))
}

fn read_text(content: WireValue<'_>, name: &'static str) -> Result<String, ProtobufError> {
    let bytes = content.bytes(name)?;
    let text = std::str::from_utf8(bytes).map_err(|_| ProtobufError::Utf8(name))?;
    Ok(text.to_owned())
}

/// A time; `None` if the message is empty, which is how encoders write an unset one.
///
/// Kubernetes drops what JSON does not show, so both forms of a body say the same.
fn read_time(
    bytes: &[u8],
    shape: Shape,
    name: &'static str,
) -> Result<Option<Value>, ProtobufError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let (mut seconds, mut nanos) = (0, 0);
    for entry in Reader::new(bytes) {
        match entry? {
            (1, content) => seconds = content.int64(name)?,
            (2, content) => nanos = content.int32(name)?,
            _ => {}
        }
    }
    let time = |nanos| Timestamp::new(seconds, nanos).map_err(|_| ProtobufError::Time(name));
    Ok(Some(match shape {
        Shape::MicroTime => api_object::rfc3339_micro(time(nanos)?).into(),
        _ => api_object::rfc3339(time(0)?).into(),
    }))
}

fn read_wrapped_json(bytes: &[u8], name: &'static str) -> Result<Option<Value>, ProtobufError> {
    let mut raw: &[u8] = &[];
    for entry in Reader::new(bytes) {
        if let (1, content) = entry? {
            raw = content.bytes(name)?;
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
    for entry in Reader::new(bytes) {
        match entry? {
            (1, content) => is_text = content.int64(name)? != 0,
            (2, content) => number = content.int32(name)?,
            (3, content) => words = read_text(content, name)?,
            _ => {}
        }
    }
    Ok(if is_text { words.into() } else { number.into() })
}

fn read_wrapped_strings(bytes: &[u8], name: &'static str) -> Result<Value, ProtobufError> {
    let mut items = Vec::new();
    for entry in Reader::new(bytes) {
        if let (1, content) = entry? {
            items.push(Value::String(read_text(content, name)?));
        }
    }
    Ok(Value::Array(items))
}

#[cfg(test)]
mod tests;
