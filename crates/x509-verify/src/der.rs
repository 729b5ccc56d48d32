//! A strict DER reader, and an encoder for single values.
//!
//! The reader accepts only well-formed values: lengths in their shortest form and no trailing bytes, so
//! that a certificate or a key means the same to every implementation.

/// The tag of a DER value: its class, its form and its number in one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DerTag(pub u8);

impl DerTag {
    /// The tag of a BOOLEAN.
    pub const BOOLEAN: Self = Self(0x01);
    /// The tag of an INTEGER.
    pub const INTEGER: Self = Self(0x02);
    /// The tag of a BIT STRING.
    pub const BIT_STRING: Self = Self(0x03);
    /// The tag of an OCTET STRING.
    pub const OCTET_STRING: Self = Self(0x04);
    /// The tag of a NULL.
    pub const NULL: Self = Self(0x05);
    /// The tag of an OBJECT IDENTIFIER.
    pub const OID: Self = Self(0x06);
    /// The tag of a UTF8String.
    pub const UTF8_STRING: Self = Self(0x0c);
    pub(crate) const NUMERIC_STRING: Self = Self(0x12);
    pub(crate) const PRINTABLE_STRING: Self = Self(0x13);
    pub(crate) const T61_STRING: Self = Self(0x14);
    pub(crate) const IA5_STRING: Self = Self(0x16);
    pub(crate) const UTC_TIME: Self = Self(0x17);
    pub(crate) const GENERALIZED_TIME: Self = Self(0x18);
    pub(crate) const BMP_STRING: Self = Self(0x1e);
    /// The tag of a SEQUENCE.
    pub const SEQUENCE: Self = Self(0x30);
    /// The tag of a SET.
    pub const SET: Self = Self(0x31);

    /// The tag of the primitive context-specific value `n`.
    pub const fn primitive_context_tag(n: u8) -> Self {
        Self(0x80 | n)
    }

    /// The tag of the constructed context-specific value `n`.
    pub const fn constructed_context_tag(n: u8) -> Self {
        Self(0xa0 | n)
    }
}

/// One DER value, which borrows from the bytes that it was read from.
#[derive(Debug, Clone, Copy)]
pub struct DerValue<'d> {
    /// The tag of the value.
    pub tag: DerTag,
    /// The bytes after tag and length.
    pub contents: &'d [u8],
    /// The whole encoding, with tag and length.
    pub encoding: &'d [u8],
}

/// Reads DER values one after the other. Methods return `None` for malformed values.
#[derive(Debug, Clone, Copy)]
pub struct DerReader<'d> {
    unread_bytes: &'d [u8],
}

impl<'d> DerReader<'d> {
    /// Begins at the first of these bytes.
    pub fn new(bytes: &'d [u8]) -> Self {
        Self { unread_bytes: bytes }
    }

    /// Reports whether everything was read.
    pub fn is_empty(&self) -> bool {
        self.unread_bytes.is_empty()
    }

    /// Returns `Some` if all bytes were read.
    pub(crate) fn expect_end(&self) -> Option<()> {
        self.unread_bytes.is_empty().then_some(())
    }

    /// Reads the next value with any tag.
    pub(crate) fn read_any_value(&mut self) -> Option<DerValue<'d>> {
        let (&tag, after_tag) = self.unread_bytes.split_first()?;
        let number = tag & 0x1f;
        // Tag numbers above 30 take several bytes and do not occur in certificates.
        if number == 0x1f {
            return None;
        }
        let (length, after_length) = read_length(after_tag)?;
        let (contents, rest) = after_length.split_at_checked(length)?;
        let encoding = self.unread_bytes.get(..self.unread_bytes.len() - rest.len())?;
        self.unread_bytes = rest;
        Some(DerValue { tag: DerTag(tag), contents, encoding })
    }

    /// Reads the next value; `None` if it has another tag.
    pub fn read_value(&mut self, tag: DerTag) -> Option<DerValue<'d>> {
        self.read_any_value().filter(|value| value.tag == tag)
    }

    /// Reads the next value if it has this tag; otherwise reads nothing, and the inner value is
    /// `None`.
    pub fn read_optional_value(&mut self, tag: DerTag) -> Option<Option<DerValue<'d>>> {
        if self.unread_bytes.first() == Some(&tag.0) {
            self.read_any_value().map(Some)
        } else {
            Some(None)
        }
    }

    /// Reads the next value, which must have this tag, and returns a reader of its elements.
    pub fn read_nested(&mut self, tag: DerTag) -> Option<Self> {
        self.read_value(tag).map(|value| Self::new(value.contents))
    }

    /// Reads a boolean that is false if it is absent.
    pub(crate) fn read_optional_bool(&mut self) -> Option<bool> {
        match self.read_optional_value(DerTag::BOOLEAN)? {
            None => Some(false),
            Some(DerValue { contents: [0x00], .. }) => Some(false),
            Some(DerValue { contents: [0xff], .. }) => Some(true),
            Some(_) => None,
        }
    }

    /// Reads the contents of a non-negative integer in shortest form.
    pub(crate) fn read_unsigned_integer(&mut self) -> Option<&'d [u8]> {
        match self.read_value(DerTag::INTEGER)?.contents {
            [] | [0x80..=0xff, ..] | [0x00, 0x00..=0x7f, ..] => None,
            contents => Some(contents),
        }
    }

    /// Reads a bit string: its bytes, and the number of unused bits of the last byte, which are
    /// zero.
    pub(crate) fn read_bit_string(&mut self) -> Option<(&'d [u8], u8)> {
        let (&unused, bytes) = self.read_value(DerTag::BIT_STRING)?.contents.split_first()?;
        let last = bytes.last().copied();
        match (unused, last) {
            (0, _) => Some((bytes, 0)),
            (1..=7, Some(last)) if last.trailing_zeros() >= u32::from(unused) => {
                Some((bytes, unused))
            }
            _ => None,
        }
    }

    /// Reads a bit string without unused bits.
    pub fn read_byte_aligned_bit_string(&mut self) -> Option<&'d [u8]> {
        self.read_bit_string().and_then(|(bytes, unused)| (unused == 0).then_some(bytes))
    }
}

/// Returns a reader of the elements of the only value in these bytes.
pub(crate) fn parse_single_value(bytes: &[u8], tag: DerTag) -> Option<DerReader<'_>> {
    let mut reader = DerReader::new(bytes);
    let inner = reader.read_nested(tag)?;
    reader.expect_end()?;
    Some(inner)
}

fn read_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    match first {
        ..=0x7f => Some((usize::from(first), rest)),
        // A length of four bytes exceeds the size of a handshake. The form 0x80 is not DER.
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let length = digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit));
            let is_shortest = digits.first() != Some(&0) && length > 0x7f;
            is_shortest.then_some((length, rest))
        }
        _ => None,
    }
}

/// Encodes a value with this tag and the concatenated `parts` as contents.
#[must_use]
pub fn encode_der_value(tag: DerTag, parts: &[&[u8]]) -> Vec<u8> {
    let contents = parts.concat();
    let mut out = vec![tag.0];
    match u8::try_from(contents.len()) {
        Ok(short @ 0..0x80) => out.push(short),
        _ => {
            let bytes = contents.len().to_be_bytes();
            let n_zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            let digits = bytes.get(n_zeros..).unwrap_or_default();
            // INVARIANT: a length has at most eight bytes.
            out.push(0x80 | u8::try_from(digits.len()).unwrap_or_default());
            out.extend(digits);
        }
    }
    out.extend(contents);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_the_shortest_length_is_read() {
        let cases: &[(&[u8], bool)] = &[
            (&[0x04, 0x01, 0xaa], true),
            (&[0x04, 0x00], true),
            (&[0x04, 0x81, 0x01, 0xaa], false),
            (&[0x04, 0x82, 0x00, 0x01, 0xaa], false),
            (&[0x04, 0x80, 0x00, 0x00], false),
            (&[0x04, 0x02, 0xaa], false),
            (&[0x04], false),
            (&[], false),
            (&[0x1f, 0x01, 0x00], false),
        ];
        for (bytes, is_read) in cases {
            assert_eq!(DerReader::new(bytes).read_any_value().is_some(), *is_read, "{bytes:02x?}");
        }
        let long = [[0x04, 0x81, 0x80].as_slice(), &[7; 128]].concat();
        assert_eq!(DerReader::new(&long).read_any_value().unwrap().contents.len(), 128);
    }

    #[test]
    fn booleans_integers_and_bit_strings_are_canonical() {
        assert_eq!(DerReader::new(&[0x01, 0x01, 0xff]).read_optional_bool(), Some(true));
        assert_eq!(DerReader::new(&[0x01, 0x01, 0x00]).read_optional_bool(), Some(false));
        assert_eq!(DerReader::new(&[]).read_optional_bool(), Some(false));
        assert_eq!(DerReader::new(&[0x01, 0x01, 0x01]).read_optional_bool(), None);
        for (bytes, is_read) in [
            ([0x02, 0x01, 0x00].as_slice(), true),
            (&[0x02, 0x01, 0x7f], true),
            (&[0x02, 0x02, 0x00, 0x80], true),
            (&[0x02, 0x02, 0x00, 0x7f], false),
            (&[0x02, 0x01, 0x80], false),
            (&[0x02, 0x00], false),
        ] {
            assert_eq!(
                DerReader::new(bytes).read_unsigned_integer().is_some(),
                is_read,
                "{bytes:02x?}"
            );
        }
        for (bytes, is_read) in [
            ([0x03, 0x02, 0x02, 0x04].as_slice(), true),
            (&[0x03, 0x02, 0x03, 0x04], false),
            (&[0x03, 0x01, 0x00], true),
            (&[0x03, 0x01, 0x01], false),
            (&[0x03, 0x02, 0x08, 0x00], false),
            (&[0x03, 0x00], false),
        ] {
            assert_eq!(DerReader::new(bytes).read_bit_string().is_some(), is_read, "{bytes:02x?}");
        }
    }

    #[test]
    fn values_are_read_in_order() {
        let inner = encode_der_value(DerTag::OID, &[&[1, 2]]);
        let bits = encode_der_value(DerTag::BIT_STRING, &[&[0], &[7]]);
        let bytes = encode_der_value(DerTag::SEQUENCE, &[&inner, &bits]);
        let mut outer = DerReader::new(&bytes);
        let mut reader = outer.read_nested(DerTag::SEQUENCE).unwrap();
        assert!(outer.is_empty());
        assert!(reader.read_optional_value(DerTag::INTEGER).unwrap().is_none());
        assert_eq!(reader.read_value(DerTag::OID).unwrap().contents, [1, 2]);
        assert_eq!(reader.read_byte_aligned_bit_string(), Some(&[7][..]));
        assert!(reader.is_empty() && reader.read_value(DerTag::OID).is_none());
    }

    proptest! {
        #[test]
        fn an_encoded_value_is_read_back(
            len in prop_oneof![0usize..300, Just(65_535), Just(65_536)],
        ) {
            let contents = vec![1; len];
            let bytes = encode_der_value(DerTag::OCTET_STRING, &[&contents]);
            let mut reader = DerReader::new(&bytes);
            let value = reader.read_value(DerTag::OCTET_STRING).unwrap();
            prop_assert_eq!(value.contents, contents.as_slice());
            prop_assert!(reader.is_empty());
        }

        #[test]
        fn no_bytes_make_the_reader_panic(bytes: Vec<u8>) {
            let mut reader = DerReader::new(&bytes);
            let _ = (reader.read_nested(DerTag::SEQUENCE), reader.read_bit_string());
            let _ = (reader.read_unsigned_integer(), reader.read_optional_bool());
        }
    }
}
