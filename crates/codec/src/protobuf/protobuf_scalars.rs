//! Values that contain no messages of the tables.

use jiff::Timestamp;
use serde_json::Value;

use super::ProtobufError;
use super::wire_reader::{WireReader, WireValue};
use crate::field_types::ValueType;

/// Reports whether a value is the zero value of its scalar type, which encoders write for an unset field.
pub(super) fn is_zero(value: &Value, value_type: ValueType) -> bool {
    match value_type {
        ValueType::Text | ValueType::Bytes => value.as_str() == Some(""),
        ValueType::Bool => value == &Value::Bool(false),
        ValueType::Int32 | ValueType::Int64 => value.as_i64() == Some(0),
        ValueType::Double => value.as_f64() == Some(0.0),
        // A field that is JSON null is absent, as in a JSON body.
        ValueType::Json => value.is_null(),
        ValueType::Time
        | ValueType::MicroTime
        | ValueType::Quantity
        | ValueType::IntOrString
        | ValueType::WrappedTexts
        | ValueType::SchemaOr(_)
        | ValueType::Object(_) => false,
    }
}

pub(super) fn read_string_value(
    content: WireValue<'_>,
    name: &'static str,
) -> Result<String, ProtobufError> {
    let bytes = content.as_bytes(name)?;
    let text = std::str::from_utf8(bytes).map_err(|_| ProtobufError::Utf8(name))?;
    Ok(text.to_owned())
}

/// Reads a time; `None` if the message is empty, which is how encoders write an unset time.
///
/// Fractions of a second that JSON does not show are dropped, as in Kubernetes, so that both formats decode
/// to the same object.
pub(super) fn read_time(
    bytes: &[u8],
    value_type: ValueType,
    name: &'static str,
) -> Result<Option<String>, ProtobufError> {
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
    Ok(Some(match value_type {
        ValueType::MicroTime => api_object::format_rfc3339_micro(time(nanos)?),
        _ => api_object::format_rfc3339(time(0)?),
    }))
}

/// Reads a quantity. Encoders write its canonical text, and nothing for the zero.
pub(super) fn read_quantity(bytes: &[u8], name: &'static str) -> Result<Value, ProtobufError> {
    let mut text = String::new();
    for entry in WireReader::new(bytes) {
        if let (1, content) = entry? {
            text = read_string_value(content, name)?;
        }
    }
    Ok(if text.is_empty() { "0".into() } else { text.into() })
}

pub(super) fn read_int_or_string(bytes: &[u8], name: &'static str) -> Result<Value, ProtobufError> {
    let (mut is_text, mut number, mut words) = (false, 0, String::new());
    for entry in WireReader::new(bytes) {
        match entry? {
            (1, content) => is_text = content.as_int64(name)? != 0,
            (2, content) => number = content.as_int32(name)?,
            (3, content) => words = read_string_value(content, name)?,
            _ => {}
        }
    }
    Ok(if is_text { words.into() } else { number.into() })
}

pub(super) fn read_wrapped_strings(
    bytes: &[u8],
    name: &'static str,
) -> Result<Vec<Value>, ProtobufError> {
    let mut items = Vec::new();
    for entry in WireReader::new(bytes) {
        if let (1, content) = entry? {
            items.push(Value::String(read_string_value(content, name)?));
        }
    }
    Ok(items)
}
