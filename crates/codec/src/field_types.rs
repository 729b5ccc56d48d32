//! Field tables as data: protobuf numbers, JSON names and types.
//!
//! One table serves two decoders: the protobuf decoder, and the check for unknown fields and wrong types
//! in JSON bodies.

/// An object with known fields.
#[derive(Debug)]
pub(crate) struct Message(pub(crate) &'static [Field]);

/// One field of a message.
#[derive(Debug)]
pub(crate) struct Field {
    /// The field number in protobuf; 0 if protobuf does not have the field.
    pub(crate) number: u32,
    /// The name in JSON; unused for [`FieldType::Inline`].
    pub(crate) name: &'static str,
    pub(crate) field_type: FieldType,
    /// Whether a zero in protobuf counts as a value. For all other fields a zero means that the field is unset.
    pub(crate) keeps_zero: bool,
}

/// The type of a field.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FieldType {
    Text,
    /// Bytes, which are base64 in JSON.
    Bytes,
    Bool,
    Int32,
    Int64,
    /// RFC 3339 in whole seconds.
    Time,
    /// RFC 3339 with six decimals.
    MicroTime,
    /// Any JSON, wrapped into a message of one field of bytes.
    Json,
    /// An integer or a string, such as `targetPort` of a service.
    IntOrString,
    /// A list of texts, wrapped into a message of one field.
    WrappedTexts,
    Object(&'static Message),
    /// A message that is separate in protobuf, and whose fields are fields of the parent in JSON.
    Inline(&'static Message),
    List(&'static FieldType),
    /// A map from strings to values.
    Map(&'static FieldType),
}

impl Message {
    /// The field of that number in protobuf.
    pub(crate) fn field_by_number(&self, number: u32) -> Option<&'static Field> {
        self.0.iter().find(|field| field.number == number)
    }

    /// The field of that name in JSON, including the fields of inlined messages.
    pub(crate) fn field_by_name(&self, name: &str) -> Option<&'static Field> {
        self.0.iter().find_map(|field| match field.field_type {
            FieldType::Inline(inner) => inner.field_by_name(name),
            _ => (field.name == name).then_some(field),
        })
    }
}

/// A field without special rules.
pub(crate) const fn field(number: u32, name: &'static str, field_type: FieldType) -> Field {
    Field { number, name, field_type, keeps_zero: false }
}

impl Field {
    /// The same field, for which zero is a value.
    pub(crate) const fn keeping_zero(self) -> Self {
        Self { keeps_zero: true, ..self }
    }
}
