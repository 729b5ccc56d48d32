//! Field tables as data: protobuf numbers, JSON names and types.
//!
//! One table serves two decoders: the protobuf decoder, and the check for unknown fields and wrong types
//! in JSON bodies.

use crate::field_tables;

/// An object with known fields.
#[derive(Debug, Default)]
pub(crate) struct Message {
    pub(crate) fields: Vec<Field>,
}

/// The place of a message in the tables. Messages refer to each other, and a schema to itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MessageId(pub(crate) u16);

/// One field of a message.
#[derive(Debug)]
pub(crate) struct Field {
    /// The field number in protobuf; 0 if protobuf does not have the field.
    pub(crate) protobuf_number: u32,
    /// The name in JSON; unused for [`FieldType::Inline`].
    pub(crate) name: &'static str,
    pub(crate) field_type: FieldType,
    /// Whether a zero in protobuf counts as a value, because Kubernetes writes it to JSON. For all other
    /// fields a zero means that the field is unset.
    pub(crate) keeps_zero_value: bool,
}

/// The type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldType {
    One(ValueType),
    List(ValueType),
    /// A map from strings to values.
    Map(ValueType),
    /// A message that is separate in protobuf, and whose fields are fields of the parent in JSON.
    Inline(MessageId),
}

/// The type of a single value: of a field, of an item of a list or of a value of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueType {
    Text,
    /// Bytes, which are base64 in JSON.
    Bytes,
    Bool,
    Int32,
    Int64,
    Double,
    /// RFC 3339 in whole seconds.
    Time,
    /// RFC 3339 with six decimals.
    MicroTime,
    /// A quantity such as `100m`. JSON may have a number.
    Quantity,
    /// Any JSON, wrapped into a message of one field of bytes.
    Json,
    /// An integer or a string, such as `targetPort` of a service.
    IntOrString,
    /// A list of strings, wrapped into a message of one field.
    WrappedTexts,
    /// A schema, or something else in its place.
    SchemaOr(SchemaAlternative),
    Object(MessageId),
}

/// A value that JSON allows in place of a schema. Protobuf has a message with one field for the value and one for
/// the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchemaAlternative {
    /// A boolean: field 1, and the schema is field 2.
    Bool,
    /// A list of schemas: field 2, and the schema is field 1.
    Schemas,
    /// A list of strings: field 2, and the schema is field 1.
    Texts,
}

impl Message {
    /// The field of that number in protobuf.
    pub(crate) fn field_by_number(&self, number: u32) -> Option<&Field> {
        self.fields.iter().find(|field| field.protobuf_number == number)
    }

    /// The field of that name in JSON, including the fields of inlined messages.
    pub(crate) fn field_by_name(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find_map(|field| match field.field_type {
            FieldType::Inline(inner) => inner.message().field_by_name(name),
            FieldType::One(_) | FieldType::List(_) | FieldType::Map(_) => {
                (field.name == name).then_some(field)
            }
        })
    }
}

impl MessageId {
    pub(crate) fn message(self) -> &'static Message {
        field_tables::message(self)
    }
}
