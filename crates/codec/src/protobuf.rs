//! Decodes protobuf bodies of Kubernetes clients to JSON trees, by the field tables.
//!
//! A body is a magic number and an envelope with the kind and the bytes of the object. A few bytes can stand for a long
//! name, so the limits are those of the JSON that the tree would be written as: its bytes and its nesting.

mod protobuf_scalars;
mod wire_reader;

use api_object::{GroupVersion, Tree};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Number, Value};

use crate::field_tables;
use crate::field_types::{Field, FieldType, Message, SchemaAlternative, ValueType};
use crate::json_parser;
use protobuf_scalars::{
    is_zero, read_int_or_string, read_quantity, read_string_value, read_time, read_wrapped_strings,
};
use wire_reader::{WireReader, WireValue, packed_varints};

/// Upper bound on the JSON bytes of an object that is sent as protobuf: those that a JSON body may have.
pub const JSON_BYTES_MAX: usize = 3 << 20;

/// Upper bound on the nesting of an object that is sent as protobuf. The decoder recurses, which the JSON reader does not, so
/// this is half of what a JSON body may have.
const NESTING_MAX: usize = json_parser::NESTING_MAX / 2;

/// The reason why the bytes are not an object in protobuf. The texts are those of Kubernetes where it has the same fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProtobufError {
    #[error("empty data")]
    NoData,
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    Magic,
    #[error("empty body")]
    NoBody,
    #[error("unexpected EOF")]
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
    #[error("proto: field {0} is not a finite number")]
    NotFinite(&'static str),
    #[error("proto: field {0} does not contain JSON")]
    Json(&'static str),
    #[error("exceeded max depth of {NESTING_MAX}")]
    TooDeep,
    #[error("the object is longer than {JSON_BYTES_MAX} bytes of JSON")]
    TooLong,
}

/// The magic number at the start of protobuf bodies.
const MAGIC: &[u8] = b"k8s\0";

/// A body whose object is not decoded yet.
#[derive(Debug)]
pub(crate) struct ProtobufEnvelope<'b> {
    /// `apiVersion` and `kind`, if the client sent them.
    pub(crate) type_meta: Tree,
    /// The bytes of the object.
    object_bytes: &'b [u8],
}

impl<'b> ProtobufEnvelope<'b> {
    /// Reads the envelope of a body.
    pub(crate) fn read(body: &'b [u8]) -> Result<Self, ProtobufError> {
        if body.is_empty() {
            return Err(ProtobufError::NoData);
        }
        let unknown = body.strip_prefix(MAGIC).ok_or(ProtobufError::Magic)?;
        if unknown.is_empty() {
            return Err(ProtobufError::NoBody);
        }
        let mut envelope = ProtobufEnvelope { type_meta: Tree::new(), object_bytes: &[] };
        for entry in WireReader::new(unknown) {
            match entry? {
                (1, WireValue::Bytes(bytes)) => read_type_meta(bytes, &mut envelope.type_meta)?,
                (2, WireValue::Bytes(bytes)) => envelope.object_bytes = bytes,
                (1 | 2, _) => return Err(ProtobufError::WrongWireType("Unknown")),
                // Clients never set the fields about the encoding of the content.
                _ => {}
            }
        }
        Ok(envelope)
    }

    /// Adds the fields of the object to a tree.
    pub(crate) fn read_object(
        &self,
        message: &'static Message,
        tree: &mut Tree,
    ) -> Result<(), ProtobufError> {
        let mut reader = ProtobufObjectReader { json_bytes_left: JSON_BYTES_MAX };
        reader.read_message(self.object_bytes, message, 1, tree)
    }
}

fn read_type_meta(bytes: &[u8], tree: &mut Tree) -> Result<(), ProtobufError> {
    for entry in WireReader::new(bytes) {
        let (name, content) = match entry? {
            (1, content) => ("apiVersion", content),
            (2, content) => ("kind", content),
            _ => continue,
        };
        let text = read_string_value(content, name)?;
        if !text.is_empty() {
            tree.insert(name.to_owned(), text.into());
        }
    }
    Ok(())
}

/// Reads the fields of an object. `depth` is the JSON nesting of the object or list that the fields are in.
struct ProtobufObjectReader {
    json_bytes_left: usize,
}

impl ProtobufObjectReader {
    /// Reads the fields of a message into an object. Fields with unknown numbers are skipped.
    fn read_message(
        &mut self,
        bytes: &[u8],
        message: &'static Message,
        depth: usize,
        tree: &mut Tree,
    ) -> Result<(), ProtobufError> {
        if depth > NESTING_MAX {
            return Err(ProtobufError::TooDeep);
        }
        self.charge_json_bytes("{}".len())?;
        for entry in WireReader::new(bytes) {
            let (number, content) = entry?;
            if let Some(field) = message.field_by_number(number) {
                self.read_field(content, field, depth, tree)?;
            }
        }
        Ok(())
    }

    /// Reads one occurrence of a field.
    ///
    /// Lists and maps grow with every occurrence, and messages merge. Of other fields the last occurrence
    /// counts. The functions for these cases are separate, so that the frames of nested messages are small.
    fn read_field(
        &mut self,
        content: WireValue<'_>,
        field: &Field,
        depth: usize,
        tree: &mut Tree,
    ) -> Result<(), ProtobufError> {
        let name = field.name;
        match field.field_type {
            FieldType::Inline(message) => {
                self.read_message(content.as_bytes(name)?, message.message(), depth, tree)
            }
            FieldType::One(ValueType::Object(message)) => {
                self.charge_name_bytes(name)?;
                let member = api_object::object_member_mut(tree, name);
                self.read_message(content.as_bytes(name)?, message.message(), depth + 1, member)
            }
            FieldType::One(value_type) => {
                self.read_single_value(content, value_type, field, depth, tree)
            }
            FieldType::List(value_type) => {
                self.read_list_items(content, value_type, name, depth + 1, tree)
            }
            FieldType::Map(value_type) => {
                self.read_map_entry(content.as_bytes(name)?, value_type, name, depth + 1, tree)
            }
        }
    }

    /// Reads a field with one value. Encoders write zeros for fields that are unset, so a zero is dropped unless the
    /// table says that it is a value.
    fn read_single_value(
        &mut self,
        content: WireValue<'_>,
        value_type: ValueType,
        field: &Field,
        depth: usize,
        tree: &mut Tree,
    ) -> Result<(), ProtobufError> {
        let name = field.name;
        self.charge_name_bytes(name)?;
        let found = self.read_value(content, value_type, name, depth)?;
        match found.filter(|value| field.keeps_zero_value || !is_zero(value, value_type)) {
            Some(value) => tree.insert(name.to_owned(), value),
            None => tree.shift_remove(name),
        };
        Ok(())
    }

    fn read_list_items(
        &mut self,
        content: WireValue<'_>,
        value_type: ValueType,
        name: &'static str,
        depth: usize,
        tree: &mut Tree,
    ) -> Result<(), ProtobufError> {
        if !tree.contains_key(name) {
            self.charge_name_bytes(name)?;
            tree.insert(name.to_owned(), Value::Array(Vec::new()));
        }
        let Some(Value::Array(items)) = tree.get_mut(name) else { return Ok(()) };
        match (content, value_type) {
            (WireValue::Bytes(bytes), ValueType::Int32 | ValueType::Int64 | ValueType::Bool) => {
                for item in packed_varints(bytes) {
                    items.push(self.read_element(item?, value_type, name, depth)?);
                }
            }
            _ => items.push(self.read_element(content, value_type, name, depth)?),
        }
        Ok(())
    }

    /// Reads an item of a list or a value of a map, where zeros are values.
    fn read_element(
        &mut self,
        content: WireValue<'_>,
        value_type: ValueType,
        name: &'static str,
        depth: usize,
    ) -> Result<Value, ProtobufError> {
        self.charge_json_bytes(",".len())?;
        Ok(self.read_value(content, value_type, name, depth)?.unwrap_or(Value::Null))
    }

    fn read_map_entry(
        &mut self,
        bytes: &[u8],
        value_type: ValueType,
        name: &'static str,
        depth: usize,
        tree: &mut Tree,
    ) -> Result<(), ProtobufError> {
        if !tree.contains_key(name) {
            self.charge_name_bytes(name)?;
        }
        let (mut key, mut value) = (String::new(), None);
        for entry in WireReader::new(bytes) {
            match entry? {
                (1, content) => key = read_string_value(content, name)?,
                (2, content) => value = Some(content),
                _ => {}
            }
        }
        self.charge_name_bytes(&key)?;
        // An entry without a value has the zero value of its type.
        let content = value.unwrap_or_else(|| WireValue::zero_of_type(value_type));
        let value = self.read_element(content, value_type, name, depth)?;
        api_object::object_member_mut(tree, name).insert(key, value);
        Ok(())
    }

    /// Reads a value; `None` if the message stands for no value, such as a time that is not set.
    fn read_value(
        &mut self,
        content: WireValue<'_>,
        value_type: ValueType,
        name: &'static str,
        depth: usize,
    ) -> Result<Option<Value>, ProtobufError> {
        match value_type {
            ValueType::Object(message) => {
                let mut tree = Tree::new();
                let bytes = content.as_bytes(name)?;
                self.read_message(bytes, message.message(), depth + 1, &mut tree)?;
                Ok(Some(Value::Object(tree)))
            }
            ValueType::SchemaOr(alternative) => {
                self.read_schema_or_alternative(content.as_bytes(name)?, alternative, name, depth)
            }
            ValueType::Json => self.read_wrapped_json(content.as_bytes(name)?, name, depth),
            _ => self.read_scalar(content, value_type, name),
        }
    }

    /// Reads a value that contains no other values but texts.
    fn read_scalar(
        &mut self,
        content: WireValue<'_>,
        value_type: ValueType,
        name: &'static str,
    ) -> Result<Option<Value>, ProtobufError> {
        let value = match value_type {
            ValueType::Text => read_string_value(content, name)?.into(),
            ValueType::Bytes => STANDARD.encode(content.as_bytes(name)?).into(),
            ValueType::Bool => (content.as_int64(name)? != 0).into(),
            ValueType::Int32 => content.as_int32(name)?.into(),
            ValueType::Int64 => content.as_int64(name)?.into(),
            ValueType::Double => {
                let number = Number::from_f64(content.as_double(name)?);
                Value::Number(number.ok_or(ProtobufError::NotFinite(name))?)
            }
            ValueType::Time | ValueType::MicroTime => {
                match read_time(content.as_bytes(name)?, value_type, name)? {
                    Some(time) => time.into(),
                    None => return Ok(None),
                }
            }
            ValueType::Quantity => read_quantity(content.as_bytes(name)?, name)?,
            ValueType::IntOrString => read_int_or_string(content.as_bytes(name)?, name)?,
            ValueType::WrappedTexts => {
                let texts = read_wrapped_strings(content.as_bytes(name)?, name)?;
                for text in &texts {
                    self.charge_scalar_bytes(text)?;
                }
                texts.into()
            }
            // INVARIANT: `read_value` handles these types itself.
            ValueType::Object(_) | ValueType::SchemaOr(_) | ValueType::Json => {
                return Err(ProtobufError::WrongWireType(name));
            }
        };
        self.charge_scalar_bytes(&value)?;
        Ok(Some(value))
    }

    /// Reads a schema or the value in its place. If the message has both, a list that is not empty takes
    /// precedence over a schema, and a schema over a boolean.
    fn read_schema_or_alternative(
        &mut self,
        bytes: &[u8],
        alternative: SchemaAlternative,
        name: &'static str,
        depth: usize,
    ) -> Result<Option<Value>, ProtobufError> {
        let schema_type = ValueType::Object(field_tables::json_schema_fields());
        let (mut schema, mut is_allowed, mut items) = (None, false, Vec::new());
        for entry in WireReader::new(bytes) {
            match (alternative, entry?) {
                (SchemaAlternative::Bool, (1, content)) => {
                    is_allowed = content.as_int64(name)? != 0;
                }
                (SchemaAlternative::Bool, (2, content))
                | (SchemaAlternative::Schemas | SchemaAlternative::Texts, (1, content)) => {
                    schema = self.read_value(content, schema_type, name, depth)?;
                }
                (SchemaAlternative::Schemas, (2, content)) => {
                    items.push(self.read_element(content, schema_type, name, depth + 1)?);
                }
                (SchemaAlternative::Texts, (2, content)) => {
                    items.push(self.read_element(content, ValueType::Text, name, depth + 1)?);
                }
                (_, _) => {}
            }
        }
        Ok(match alternative {
            _ if !items.is_empty() => Some(Value::Array(items)),
            SchemaAlternative::Bool => schema.or(Some(Value::Bool(is_allowed))),
            SchemaAlternative::Schemas | SchemaAlternative::Texts => schema,
        })
    }

    /// Reads JSON inside of protobuf; `None` if there is none. Protobuf can also contain an object with an envelope of its
    /// own.
    fn read_wrapped_json(
        &mut self,
        bytes: &[u8],
        name: &'static str,
        depth: usize,
    ) -> Result<Option<Value>, ProtobufError> {
        let mut raw: &[u8] = &[];
        for entry in WireReader::new(bytes) {
            if let (1, content) = entry? {
                raw = content.as_bytes(name)?;
            }
        }
        if raw.is_empty() {
            return Ok(None);
        }
        if raw.starts_with(MAGIC) {
            return self.read_wrapped_object(raw, name, depth).map(Some);
        }
        self.charge_json_bytes(raw.len())?;
        let nesting_max = NESTING_MAX.saturating_sub(depth);
        let parsed = json_parser::parse_json_with_nesting_limit(raw, nesting_max);
        Ok(Some(parsed.map_err(|_| ProtobufError::Json(name))?.value))
    }

    fn read_wrapped_object(
        &mut self,
        body: &[u8],
        name: &'static str,
        depth: usize,
    ) -> Result<Value, ProtobufError> {
        let envelope = ProtobufEnvelope::read(body)?;
        let mut tree = envelope.type_meta;
        let api_version = api_object::string_member(&tree, "apiVersion");
        let group_version =
            GroupVersion::parse_api_version(api_version).ok_or(ProtobufError::Json(name))?;
        let kind = api_object::string_member(&tree, "kind");
        let message =
            field_tables::fields_of_kind(&group_version.group, &group_version.version, kind);
        let message = message.ok_or(ProtobufError::Json(name))?;
        self.read_message(envelope.object_bytes, message, depth + 1, &mut tree)?;
        Ok(Value::Object(tree))
    }

    /// Counts the bytes of a scalar in JSON, without escapes.
    fn charge_scalar_bytes(&mut self, value: &Value) -> Result<(), ProtobufError> {
        self.charge_json_bytes(
            value.as_str().map_or(1, |text| escaped_json_len(text) + "\"\"".len()),
        )
    }

    fn charge_name_bytes(&mut self, name: &str) -> Result<(), ProtobufError> {
        self.charge_json_bytes(escaped_json_len(name) + "\"\":,".len())
    }

    fn charge_json_bytes(&mut self, n_bytes: usize) -> Result<(), ProtobufError> {
        let left = self.json_bytes_left.checked_sub(n_bytes).ok_or(ProtobufError::TooLong)?;
        self.json_bytes_left = left;
        Ok(())
    }
}

/// The length of a text in JSON, or a little more.
fn escaped_json_len(text: &str) -> usize {
    let escape_bytes = |byte: u8| match byte {
        0..0x20 => "u0000".len(),
        b'"' | b'\\' => 1,
        _ => 0,
    };
    text.len() + text.bytes().map(escape_bytes).sum::<usize>()
}

#[cfg(test)]
mod tests;
