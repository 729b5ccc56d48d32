//! The well-known protocol buffer messages. Expressions write them as message literals; they
//! evaluate to ordinary values.

use std::sync::Arc;

use crate::function::{EvalError, EvalResult};
use crate::static_type::Type;
use crate::value::{Map, OwnedMap, Timestamp, Value};

/// A protocol buffer message that every environment declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WellKnownMessage {
    BoolValue,
    BytesValue,
    DoubleValue,
    FloatValue,
    Int32Value,
    Int64Value,
    StringValue,
    Uint32Value,
    Uint64Value,
    Duration,
    Timestamp,
    Struct,
    ListValue,
    Value,
}

/// The names of messages, sorted.
const NAMES: &[(&str, WellKnownMessage)] = &[
    ("google.protobuf.BoolValue", WellKnownMessage::BoolValue),
    ("google.protobuf.BytesValue", WellKnownMessage::BytesValue),
    ("google.protobuf.DoubleValue", WellKnownMessage::DoubleValue),
    ("google.protobuf.Duration", WellKnownMessage::Duration),
    ("google.protobuf.FloatValue", WellKnownMessage::FloatValue),
    ("google.protobuf.Int32Value", WellKnownMessage::Int32Value),
    ("google.protobuf.Int64Value", WellKnownMessage::Int64Value),
    ("google.protobuf.ListValue", WellKnownMessage::ListValue),
    ("google.protobuf.StringValue", WellKnownMessage::StringValue),
    ("google.protobuf.Struct", WellKnownMessage::Struct),
    ("google.protobuf.Timestamp", WellKnownMessage::Timestamp),
    ("google.protobuf.UInt32Value", WellKnownMessage::Uint32Value),
    ("google.protobuf.UInt64Value", WellKnownMessage::Uint64Value),
    ("google.protobuf.Value", WellKnownMessage::Value),
];

impl WellKnownMessage {
    pub(crate) fn find_message_by_name(name: &str) -> Option<Self> {
        let index = NAMES.binary_search_by_key(&name, |(n, _)| n).ok()?;
        NAMES.get(index).map(|(_, message)| *message)
    }

    /// The type of a message literal of this kind.
    pub(crate) fn result_type(self) -> Type {
        let wrapper = |ty| Type::Wrapper(Arc::new(ty));
        match self {
            Self::BoolValue => wrapper(Type::Bool),
            Self::BytesValue => wrapper(Type::Bytes),
            Self::DoubleValue | Self::FloatValue => wrapper(Type::Double),
            Self::Int32Value | Self::Int64Value => wrapper(Type::Int),
            Self::StringValue => wrapper(Type::String),
            Self::Uint32Value | Self::Uint64Value => wrapper(Type::Uint),
            Self::Duration => Type::Duration,
            Self::Timestamp => Type::Timestamp,
            Self::Struct => Type::map_type_of(Type::String, Type::Dyn),
            Self::ListValue => Type::list_type_of(Type::Dyn),
            Self::Value => Type::Dyn,
        }
    }

    /// The type of a field.
    pub(crate) fn field(self, name: &str) -> Option<Type> {
        match (self, name) {
            (Self::Duration | Self::Timestamp, "seconds" | "nanos") => Some(Type::Int),
            (Self::Struct, "fields") => Some(Type::map_type_of(Type::String, Type::Dyn)),
            (Self::ListValue, "values") => Some(Type::list_type_of(Type::Dyn)),
            (Self::Value, "null_value") => Some(Type::Int),
            (Self::Value, "number_value") => Some(Type::Double),
            (Self::Value, "string_value") => Some(Type::String),
            (Self::Value, "bool_value") => Some(Type::Bool),
            (Self::Value, "struct_value") => Some(Type::map_type_of(Type::String, Type::Dyn)),
            (Self::Value, "list_value") => Some(Type::list_type_of(Type::Dyn)),
            (
                Self::Duration | Self::Timestamp | Self::Struct | Self::ListValue | Self::Value,
                _,
            ) => None,
            (
                Self::BoolValue
                | Self::BytesValue
                | Self::DoubleValue
                | Self::FloatValue
                | Self::Int32Value
                | Self::Int64Value
                | Self::StringValue
                | Self::Uint32Value
                | Self::Uint64Value,
                name,
            ) => match self.result_type() {
                Type::Wrapper(inner) if name == "value" => Some((*inner).clone()),
                _ => None,
            },
        }
    }

    /// Builds the value from the fields of a literal. Absent fields have their zero value.
    pub(crate) fn build_message_value<'a>(self, fields: &[(&str, Value<'a>)]) -> EvalResult<'a> {
        let get = |name: &str| fields.iter().find(|(n, _)| *n == name).map(|(_, v)| v.clone());
        let or = |default: Value<'a>| Ok(get("value").unwrap_or(default));
        match self {
            Self::BoolValue => or(Value::Bool(false)),
            Self::BytesValue => or(Value::Bytes(crate::value::Bytes::Borrowed(&[]))),
            Self::DoubleValue => or(Value::Double(0.0)),
            Self::StringValue => or(Value::borrowed_string("")),
            Self::Int64Value => or(Value::Int(0)),
            Self::Uint64Value => or(Value::Uint(0)),
            Self::FloatValue => match get("value") {
                Some(Value::Double(d)) => Ok(Value::Double(f64::from(d as f32))),
                Some(_) => Err(EvalError::no_such_overload()),
                None => Ok(Value::Double(0.0)),
            },
            Self::Int32Value => match get("value") {
                Some(Value::Int(i)) if i32::try_from(i).is_err() => {
                    Err(EvalError::new("integer overflow"))
                }
                other => Ok(other.unwrap_or(Value::Int(0))),
            },
            Self::Uint32Value => match get("value") {
                Some(Value::Uint(u)) if u32::try_from(u).is_err() => {
                    Err(EvalError::new("unsigned integer overflow"))
                }
                other => Ok(other.unwrap_or(Value::Uint(0))),
            },
            Self::Duration => {
                let (seconds, nanos) =
                    (int_or_zero(get("seconds"))?, read_nanos_field("Duration", get("nanos"))?);
                let total = seconds.saturating_mul(1_000_000_000);
                Ok(Value::Duration(total.saturating_add(i64::from(nanos))))
            }
            Self::Timestamp => {
                let (seconds, nanos) =
                    (int_or_zero(get("seconds"))?, read_nanos_field("Timestamp", get("nanos"))?);
                Timestamp::from_unix_seconds_and_nanos(seconds, nanos)
                    .map(Value::Timestamp)
                    .ok_or_else(|| EvalError::new("timestamp overflow"))
            }
            Self::Struct => {
                Ok(get("fields")
                    .unwrap_or_else(|| Value::Map(Map::from_owned_map(OwnedMap::new()))))
            }
            Self::ListValue => {
                Ok(get("values").unwrap_or_else(|| Value::owned_list_value(Vec::new())))
            }
            Self::Value => match fields.last() {
                Some(("null_value", _)) | None => Ok(Value::Null),
                Some((_, value)) => Ok(value.clone()),
            },
        }
    }
}

fn int_or_zero(value: Option<Value<'_>>) -> Result<i64, EvalError> {
    match value {
        None => Ok(0),
        Some(Value::Int(i)) => Ok(i),
        Some(_) => Err(EvalError::no_such_overload()),
    }
}

/// Reads the field `nanos`, which has 32 bits.
fn read_nanos_field(message: &str, value: Option<Value<'_>>) -> Result<i32, EvalError> {
    i32::try_from(int_or_zero(value)?).map_err(|_| {
        EvalError::new(format!(
            "field type conversion error for google.protobuf.{message}.nanos value type: integer \
             overflow"
        ))
    })
}
