//! The encoding of protobuf messages: the field types that etcd's messages use.

use bytes::Bytes;

/// The bytes are not a message of the expected type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed protobuf message")]
pub(crate) struct DecodeError;

/// A message that can be sent.
pub(crate) trait EncodeMessage {
    /// Appends the fields of the message.
    fn encode_fields(&self, out: &mut MessageWriter);

    fn encode(&self) -> Vec<u8> {
        let mut out = MessageWriter::default();
        self.encode_fields(&mut out);
        out.bytes
    }
}

/// A message that can be received. Unknown fields are ignored; of a field that occurs twice, the last one counts.
pub(crate) trait DecodeMessage: Default {
    /// Sets the field with this number.
    fn set_field(&mut self, number: u32, value: FieldValue) -> Result<(), DecodeError>;

    fn decode(bytes: Bytes) -> Result<Self, DecodeError> {
        let mut message = Self::default();
        let mut reader = FieldReader { unread_bytes: bytes };
        while let Some((number, value)) = reader.next_field()? {
            message.set_field(number, value)?;
        }
        Ok(message)
    }
}

/// Writes fields. A field that has the default value of its type is left out.
#[derive(Debug, Default)]
pub(crate) struct MessageWriter {
    bytes: Vec<u8>,
}

const WIRE_TYPE_VARINT: u64 = 0;
const WIRE_TYPE_FIXED64: u64 = 1;
const WIRE_TYPE_BYTES: u64 = 2;
const WIRE_TYPE_FIXED32: u64 = 5;

impl MessageWriter {
    pub(crate) fn write_int64(&mut self, number: u32, value: i64) {
        if value != 0 {
            self.write_int64_or_zero(number, value);
        }
    }

    /// Writes an integer even if it is zero: a member of a `oneof` is sent whatever its value.
    pub(crate) fn write_int64_or_zero(&mut self, number: u32, value: i64) {
        self.write_key(number, WIRE_TYPE_VARINT);
        // A negative number is encoded in two's complement.
        self.write_varint(value.cast_unsigned());
    }

    pub(crate) fn write_bool(&mut self, number: u32, value: bool) {
        self.write_int64(number, i64::from(value));
    }

    pub(crate) fn write_bytes(&mut self, number: u32, value: &[u8]) {
        if !value.is_empty() {
            self.write_bytes_or_empty(number, value);
        }
    }

    /// Writes a message even if it is empty, since its presence has a meaning.
    pub(crate) fn write_message(&mut self, number: u32, message: &impl EncodeMessage) {
        self.write_bytes_or_empty(number, &message.encode());
    }

    fn write_bytes_or_empty(&mut self, number: u32, value: &[u8]) {
        self.write_key(number, WIRE_TYPE_BYTES);
        self.write_varint(value.len() as u64);
        self.bytes.extend_from_slice(value);
    }

    fn write_key(&mut self, number: u32, wire_type: u64) {
        self.write_varint(u64::from(number) << 3 | wire_type);
    }

    fn write_varint(&mut self, mut value: u64) {
        while value > 0x7f {
            self.bytes.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.bytes.push(value.to_le_bytes()[0]);
    }
}

/// The value of one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FieldValue {
    Varint(u64),
    /// Bytes, a text or a message. They share the memory of the whole answer.
    Bytes(Bytes),
    /// A number of fixed size, which no message of this crate has.
    Fixed,
}

impl FieldValue {
    pub(crate) fn into_int64(self) -> Result<i64, DecodeError> {
        match self {
            Self::Varint(value) => Ok(value.cast_signed()),
            Self::Bytes(_) | Self::Fixed => Err(DecodeError),
        }
    }

    pub(crate) fn into_bool(self) -> Result<bool, DecodeError> {
        self.into_int64().map(|value| value != 0)
    }

    pub(crate) fn into_bytes(self) -> Result<Bytes, DecodeError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Varint(_) | Self::Fixed => Err(DecodeError),
        }
    }

    pub(crate) fn into_text(self) -> Result<String, DecodeError> {
        String::from_utf8(self.into_bytes()?.into()).map_err(|_| DecodeError)
    }

    pub(crate) fn into_message<M: DecodeMessage>(self) -> Result<M, DecodeError> {
        M::decode(self.into_bytes()?)
    }
}

/// Reads fields one after the other.
struct FieldReader {
    unread_bytes: Bytes,
}

impl FieldReader {
    /// The number and the value of the next field; `None` at the end.
    fn next_field(&mut self) -> Result<Option<(u32, FieldValue)>, DecodeError> {
        if self.unread_bytes.is_empty() {
            return Ok(None);
        }
        let key = self.read_varint()?;
        let number = u32::try_from(key >> 3).map_err(|_| DecodeError)?;
        if number == 0 {
            return Err(DecodeError);
        }
        let value = match key & 7 {
            WIRE_TYPE_VARINT => FieldValue::Varint(self.read_varint()?),
            WIRE_TYPE_FIXED64 => self.take(8).map(|_| FieldValue::Fixed)?,
            WIRE_TYPE_BYTES => {
                let length = usize::try_from(self.read_varint()?).map_err(|_| DecodeError)?;
                FieldValue::Bytes(self.take(length)?)
            }
            WIRE_TYPE_FIXED32 => self.take(4).map(|_| FieldValue::Fixed)?,
            // Groups are obsolete, and etcd does not use them.
            _ => return Err(DecodeError),
        };
        Ok(Some((number, value)))
    }

    fn take(&mut self, length: usize) -> Result<Bytes, DecodeError> {
        if length > self.unread_bytes.len() {
            return Err(DecodeError);
        }
        Ok(self.unread_bytes.split_to(length))
    }

    fn read_varint(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0;
        for (idx, byte) in self.unread_bytes.iter().enumerate().take(10) {
            let bits = u64::from(byte & 0x7f);
            // The tenth byte holds the highest bit of 64.
            if idx == 9 && bits > 1 {
                return Err(DecodeError);
            }
            value |= bits << (7 * idx);
            if byte & 0x80 == 0 {
                self.take(idx + 1)?;
                return Ok(value);
            }
        }
        Err(DecodeError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(bytes: &[u8]) -> Result<Vec<(u32, FieldValue)>, DecodeError> {
        let mut reader = FieldReader { unread_bytes: Bytes::copy_from_slice(bytes) };
        let mut found = Vec::new();
        while let Some(field) = reader.next_field()? {
            found.push(field);
        }
        Ok(found)
    }

    #[test]
    fn integers_are_read_back() {
        for value in [1, 127, 128, 300, i64::from(u32::MAX), i64::MAX, -1, i64::MIN] {
            let mut out = MessageWriter::default();
            out.write_int64(3, value);
            let [(3, read)] = &fields(&out.bytes).unwrap()[..] else { panic!("{:?}", out.bytes) };
            assert_eq!(read.clone().into_int64(), Ok(value));
        }
    }

    #[test]
    fn default_values_are_left_out() {
        let mut out = MessageWriter::default();
        out.write_int64(1, 0);
        out.write_bool(2, false);
        out.write_bytes(3, b"");
        assert_eq!(out.bytes, b"");
        out.write_int64_or_zero(1, 0);
        out.write_bool(2, true);
        assert_eq!(out.bytes, [0x08, 0x00, 0x10, 0x01]);
    }

    #[test]
    fn fields_of_all_types_are_read() {
        let bytes = [
            &[0x09][..], // field 1, 64 bits
            &[1; 8],
            &[0x15], // field 2, 32 bits
            &[1; 4],
            &[0x1a, 2, b'h', b'i'],    // field 3, bytes
            &[0xa0, 0x06, 0x96, 0x01], // field 100, an integer
        ]
        .concat();
        assert_eq!(
            fields(&bytes).unwrap(),
            [
                (1, FieldValue::Fixed),
                (2, FieldValue::Fixed),
                (3, FieldValue::Bytes("hi".into())),
                (100, FieldValue::Varint(150)),
            ]
        );
        for end in 1..bytes.len() {
            // A prefix ends with a whole field or is malformed.
            assert_eq!(fields(&bytes[..end]).is_ok(), [9, 14, 18].contains(&end), "{end}");
        }
    }

    #[test]
    fn malformed_fields_are_refused() {
        for bytes in [
            &[0x00, 0x01][..],                                                      // field 0
            &[0x0b],                                                                // a group
            &[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], // a length of 64 bits
            &[0x08, 0x80], // an unfinished integer
            &[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2], // more than 64 bits
            &[0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0], // eleven bytes
            &[0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0], // a long field number
        ] {
            assert_eq!(fields(bytes), Err(DecodeError), "{bytes:02x?}");
        }
    }

    #[test]
    fn a_value_of_another_type_is_refused() {
        assert_eq!(FieldValue::Bytes("1".into()).into_int64(), Err(DecodeError));
        assert_eq!(FieldValue::Fixed.into_bool(), Err(DecodeError));
        assert_eq!(FieldValue::Varint(1).into_bytes(), Err(DecodeError));
        assert_eq!(FieldValue::Bytes(Bytes::from_static(&[0xff])).into_text(), Err(DecodeError));
    }
}
