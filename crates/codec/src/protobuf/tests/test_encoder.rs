//! An encoder that is independent of the decoder. It writes what a tree contains, and no zeros for unset fields.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::Value;

use crate::field_tables;
use crate::field_types::{FieldType, Message, SchemaAlternative, ValueType};

/// Writes a body as clients do.
pub(super) fn encode(
    api_version: &str,
    kind: &str,
    message: &'static Message,
    value: &Value,
) -> Vec<u8> {
    let mut type_meta = Vec::new();
    put_bytes(&mut type_meta, 1, api_version.as_bytes());
    put_bytes(&mut type_meta, 2, kind.as_bytes());
    let mut out = b"k8s\0".to_vec();
    put_bytes(&mut out, 1, &type_meta);
    put_bytes(&mut out, 2, &encode_message(message, value));
    out
}

fn encode_message(message: &'static Message, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    for field in message.fields.iter().filter(|field| field.protobuf_number > 0) {
        match (field.field_type, &value[field.name]) {
            (FieldType::Inline(inner), _) => {
                put_bytes(&mut out, field.protobuf_number, &encode_message(inner.message(), value));
            }
            (_, Value::Null) => {}
            (FieldType::List(value_type), Value::Array(items)) => {
                items
                    .iter()
                    .for_each(|item| put(&mut out, field.protobuf_number, value_type, item));
            }
            (FieldType::Map(value_type), Value::Object(members)) => {
                for (key, value) in members {
                    let mut entry = Vec::new();
                    put_bytes(&mut entry, 1, key.as_bytes());
                    put(&mut entry, 2, value_type, value);
                    put_bytes(&mut out, field.protobuf_number, &entry);
                }
            }
            (FieldType::One(value_type), value) => {
                put(&mut out, field.protobuf_number, value_type, value)
            }
            (FieldType::List(_) | FieldType::Map(_), value) => panic!("{}: {value}", field.name),
        }
    }
    out
}

fn put(out: &mut Vec<u8>, number: u32, value_type: ValueType, value: &Value) {
    let mut inner = Vec::new();
    match value_type {
        ValueType::Text => inner = value.as_str().unwrap().into(),
        ValueType::Bytes => inner = STANDARD.decode(value.as_str().unwrap()).unwrap(),
        ValueType::Bool => return put_varint_field(out, number, value.as_bool().unwrap().into()),
        ValueType::Int32 | ValueType::Int64 => {
            return put_varint_field(out, number, value.as_i64().unwrap());
        }
        ValueType::Double => {
            put_varint(out, u64::from(number) << 3 | 1);
            out.extend(value.as_f64().unwrap().to_le_bytes());
            return;
        }
        ValueType::Time | ValueType::MicroTime => {
            let time: Timestamp = value.as_str().unwrap().parse().unwrap();
            put_varint_field(&mut inner, 1, time.as_second());
            put_varint_field(&mut inner, 2, time.subsec_nanosecond().into());
        }
        ValueType::Quantity => put_bytes(&mut inner, 1, value.as_str().unwrap().as_bytes()),
        ValueType::Json => put_bytes(&mut inner, 1, value.to_string().as_bytes()),
        ValueType::IntOrString => match value {
            Value::String(text) => {
                put_varint_field(&mut inner, 1, 1);
                put_bytes(&mut inner, 3, text.as_bytes());
            }
            _ => put_varint_field(&mut inner, 2, value.as_i64().unwrap()),
        },
        ValueType::WrappedTexts => {
            for item in value.as_array().unwrap() {
                put_bytes(&mut inner, 1, item.as_str().unwrap().as_bytes());
            }
        }
        ValueType::SchemaOr(alternative) => put_schema_or(&mut inner, alternative, value),
        ValueType::Object(message) => inner = encode_message(message.message(), value),
    }
    put_bytes(out, number, &inner);
}

fn put_schema_or(out: &mut Vec<u8>, alternative: SchemaAlternative, value: &Value) {
    let schema_type = ValueType::Object(field_tables::json_schema_fields());
    match (alternative, value) {
        (SchemaAlternative::Bool, Value::Bool(is_allowed)) => {
            put_varint_field(out, 1, i64::from(*is_allowed));
        }
        (SchemaAlternative::Bool, schema) => {
            put_varint_field(out, 1, 1);
            put(out, 2, schema_type, schema);
        }
        (SchemaAlternative::Schemas, Value::Array(schemas)) => {
            schemas.iter().for_each(|schema| put(out, 2, schema_type, schema));
        }
        (SchemaAlternative::Texts, Value::Array(texts)) => {
            texts.iter().for_each(|text| put(out, 2, ValueType::Text, text));
        }
        (SchemaAlternative::Schemas | SchemaAlternative::Texts, schema) => {
            put(out, 1, schema_type, schema);
        }
    }
}

fn put_varint_field(out: &mut Vec<u8>, number: u32, value: i64) {
    put_varint(out, u64::from(number) << 3);
    put_varint(out, value.cast_unsigned());
}

pub(super) fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_varint(out, u64::from(number) << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
