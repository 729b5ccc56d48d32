//! The wire format of protobuf: numbered fields, one after the other.

use super::ProtobufError;
use crate::field_types::ValueType;

/// The encoded value of a protobuf field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum WireValue<'b> {
    Varint(u64),
    Bytes(&'b [u8]),
    /// Four bytes, which no field in the tables uses.
    Fixed32,
    Fixed64([u8; 8]),
}

impl<'b> WireValue<'b> {
    /// The encoded zero of a type.
    pub(super) fn zero_of_type(value_type: ValueType) -> Self {
        match value_type {
            ValueType::Bool | ValueType::Int32 | ValueType::Int64 => Self::Varint(0),
            ValueType::Double => Self::Fixed64([0; 8]),
            ValueType::Text
            | ValueType::Bytes
            | ValueType::Time
            | ValueType::MicroTime
            | ValueType::Quantity
            | ValueType::Json
            | ValueType::IntOrString
            | ValueType::WrappedTexts
            | ValueType::SchemaOr(_)
            | ValueType::Object(_) => Self::Bytes(&[]),
        }
    }

    pub(super) fn as_bytes(self, name: &'static str) -> Result<&'b [u8], ProtobufError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Varint(_) | Self::Fixed32 | Self::Fixed64(_) => {
                Err(ProtobufError::WrongWireType(name))
            }
        }
    }

    pub(super) fn as_double(self, name: &'static str) -> Result<f64, ProtobufError> {
        match self {
            Self::Fixed64(bytes) => Ok(f64::from_le_bytes(bytes)),
            Self::Varint(_) | Self::Fixed32 | Self::Bytes(_) => {
                Err(ProtobufError::WrongWireType(name))
            }
        }
    }

    /// The value as a signed integer.
    pub(super) fn as_int64(self, name: &'static str) -> Result<i64, ProtobufError> {
        match self {
            Self::Varint(value) => Ok(value.cast_signed()),
            Self::Bytes(_) | Self::Fixed32 | Self::Fixed64(_) => {
                Err(ProtobufError::WrongWireType(name))
            }
        }
    }

    /// The lower 32 bits of a signed integer, as protobuf defines it for int32 fields.
    pub(super) fn as_int32(self, name: &'static str) -> Result<i32, ProtobufError> {
        let [a, b, c, d, ..] = self.as_int64(name)?.to_le_bytes();
        Ok(i32::from_le_bytes([a, b, c, d]))
    }
}

/// Iterates over the fields of a message. The iteration ends after an error.
pub(super) struct WireReader<'b> {
    unread_bytes: &'b [u8],
}

impl<'b> WireReader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { unread_bytes: bytes }
    }

    fn read_field(&mut self) -> Result<(u32, WireValue<'b>), ProtobufError> {
        let tag = self.read_varint()?;
        let number = u32::try_from(tag >> 3).ok().filter(|&number| number > 0);
        let number = number.ok_or(ProtobufError::IllegalTag(tag))?;
        let content = match tag & 7 {
            0 => WireValue::Varint(self.read_varint()?),
            1 => {
                let (taken, rest) =
                    self.unread_bytes.split_first_chunk().ok_or(ProtobufError::Truncated)?;
                self.unread_bytes = rest;
                WireValue::Fixed64(*taken)
            }
            2 => {
                let len =
                    usize::try_from(self.read_varint()?).map_err(|_| ProtobufError::Overflow)?;
                WireValue::Bytes(self.take_bytes(len)?)
            }
            5 => self.take_bytes(4).map(|_| WireValue::Fixed32)?,
            // Groups are deprecated, and no client writes them.
            _ => return Err(ProtobufError::IllegalTag(tag)),
        };
        Ok((number, content))
    }

    fn read_varint(&mut self) -> Result<u64, ProtobufError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.unread_bytes.split_first().ok_or(ProtobufError::Truncated)?;
            self.unread_bytes = rest;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte has room for one bit.
            if shift == 63 && bits > 1 {
                return Err(ProtobufError::Overflow);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(ProtobufError::Overflow)
    }

    fn take_bytes(&mut self, len: usize) -> Result<&'b [u8], ProtobufError> {
        let (taken, rest) =
            self.unread_bytes.split_at_checked(len).ok_or(ProtobufError::Truncated)?;
        self.unread_bytes = rest;
        Ok(taken)
    }
}

/// The items of a packed list of integers, which is a field of bytes.
pub(super) fn packed_varints<'b>(
    bytes: &'b [u8],
) -> impl Iterator<Item = Result<WireValue<'b>, ProtobufError>> {
    let mut reader = WireReader::new(bytes);
    std::iter::from_fn(move || {
        if reader.unread_bytes.is_empty() {
            return None;
        }
        let item = reader.read_varint().map(WireValue::Varint);
        if item.is_err() {
            reader.unread_bytes = &[];
        }
        Some(item)
    })
}

impl<'b> Iterator for WireReader<'b> {
    type Item = Result<(u32, WireValue<'b>), ProtobufError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.unread_bytes.is_empty() {
            return None;
        }
        let field = self.read_field();
        if field.is_err() {
            self.unread_bytes = &[];
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(bytes: &[u8]) -> Result<Vec<(u32, WireValue<'_>)>, ProtobufError> {
        WireReader::new(bytes).collect()
    }

    #[test]
    fn fields_are_read_by_wire_type() {
        let bytes =
            [0x08, 0x96, 0x01, 0x12, 0x01, 0x61, 0x1d, 0, 0, 0, 0, 0x21, 0, 0, 0, 0, 0, 0, 0, 0];
        let want = [
            (1, WireValue::Varint(150)),
            (2, WireValue::Bytes(b"a")),
            (3, WireValue::Fixed32),
            (4, WireValue::Fixed64([0; 8])),
        ];
        assert_eq!(fields(&bytes), Ok(want.to_vec()));
    }

    #[test]
    fn negative_integers_take_ten_bytes() {
        let mut bytes = vec![0x08];
        bytes.extend([0xff; 9]);
        bytes.push(0x01);
        let found = fields(&bytes).unwrap();
        assert_eq!(found[0].1.as_int64("x"), Ok(-1));
        assert_eq!(found[0].1.as_int32("x"), Ok(-1));
    }

    #[test]
    fn malformed_fields_are_refused() {
        for (bytes, want) in [
            (&[0x08][..], ProtobufError::Truncated),
            (&[0x08, 0x80], ProtobufError::Truncated),
            (&[0x12, 0x05, 0x61], ProtobufError::Truncated),
            (&[0x1d, 0, 0], ProtobufError::Truncated),
            (&[0x00], ProtobufError::IllegalTag(0)),
            (&[0x0b], ProtobufError::IllegalTag(0x0b)),
            (
                &[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02],
                ProtobufError::Overflow,
            ),
            (
                &[0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00],
                ProtobufError::Overflow,
            ),
        ] {
            assert_eq!(fields(bytes), Err(want), "{bytes:?}");
        }
        assert_eq!(WireValue::Fixed32.as_bytes("x"), Err(ProtobufError::WrongWireType("x")));
        assert_eq!(WireValue::Bytes(b"a").as_int64("x"), Err(ProtobufError::WrongWireType("x")));
    }
}
