//! Field tables as data: protobuf numbers, JSON names and types.
//!
//! One table serves two decoders: that of protobuf, and the one that finds unknown and wrong fields
//! of JSON bodies.

/// An object with known fields.
#[derive(Debug)]
pub(crate) struct Message(pub(crate) &'static [Field]);

/// One field of a message.
#[derive(Debug)]
pub(crate) struct Field {
    /// Its number in protobuf; 0 if it is not there.
    pub(crate) number: u32,
    /// Its name in JSON; without meaning for [`Shape::Inline`].
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    /// Whether a zero that was sent is a value. Encoders write zeros for most fields that are unset.
    pub(crate) keeps_zero: bool,
}

/// The type of a field.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    Text,
    /// Base64 in JSON.
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
    /// An integer or a text, such as the port that a service points to.
    IntOrString,
    /// A list of texts, wrapped into a message of one field.
    WrappedTexts,
    Object(&'static Message),
    /// A message of its own in protobuf whose fields are those of the parent in JSON.
    Inline(&'static Message),
    List(&'static Shape),
    /// From texts to values.
    Map(&'static Shape),
}

impl Message {
    /// The field of that number in protobuf.
    pub(crate) fn field_by_number(&self, number: u32) -> Option<&'static Field> {
        self.0.iter().find(|field| field.number == number)
    }

    /// The field of that name in JSON, those of inlined messages included.
    pub(crate) fn field_by_name(&self, name: &str) -> Option<&'static Field> {
        self.0.iter().find_map(|field| match field.shape {
            Shape::Inline(inner) => inner.field_by_name(name),
            _ => (field.name == name).then_some(field),
        })
    }
}

/// A field without special rules.
pub(crate) const fn field(number: u32, name: &'static str, shape: Shape) -> Field {
    Field { number, name, shape, keeps_zero: false }
}

impl Field {
    /// The same field, for which zero is a value.
    pub(crate) const fn keeping_zero(self) -> Self {
        Self { keeps_zero: true, ..self }
    }
}
