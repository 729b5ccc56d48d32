//! A strict DER reader.
//!
//! It accepts only well-formed values: lengths in their shortest form and no trailing bytes, so
//! that a certificate means the same to every implementation.

pub(crate) const BOOLEAN: u8 = 0x01;
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const OID: u8 = 0x06;
pub(crate) const UTC_TIME: u8 = 0x17;
pub(crate) const GENERALIZED_TIME: u8 = 0x18;
pub(crate) const SEQUENCE: u8 = 0x30;

/// The tag of the primitive context-specific value `n`.
pub(crate) const fn context_tag(n: u8) -> u8 {
    0x80 | n
}

/// The tag of the constructed context-specific value `n`.
pub(crate) const fn constructed_context_tag(n: u8) -> u8 {
    0xa0 | n
}

/// One DER value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Value<'d> {
    pub(crate) tag: u8,
    pub(crate) contents: &'d [u8],
    /// The encoding with tag and length.
    pub(crate) encoded: &'d [u8],
}

/// Reads DER values one after the other. Methods return `None` for malformed values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'d> {
    unread: &'d [u8],
}

impl<'d> Reader<'d> {
    pub(crate) fn new(bytes: &'d [u8]) -> Self {
        Self { unread: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.unread.is_empty()
    }

    /// `Some` if everything was read.
    pub(crate) fn expect_end(&self) -> Option<()> {
        self.unread.is_empty().then_some(())
    }

    /// Reads the next value with any tag.
    pub(crate) fn read_any(&mut self) -> Option<Value<'d>> {
        let (&tag, after_tag) = self.unread.split_first()?;
        // Tag numbers above 30 take several bytes and do not occur in certificates.
        if tag & 0x1f == 0x1f {
            return None;
        }
        let (length, after_length) = read_length(after_tag)?;
        let (contents, rest) = after_length.split_at_checked(length)?;
        let encoded = self.unread.get(..self.unread.len() - rest.len())?;
        self.unread = rest;
        Some(Value { tag, contents, encoded })
    }

    /// Reads the next value, which must have this tag.
    pub(crate) fn read_value(&mut self, tag: u8) -> Option<Value<'d>> {
        self.read_any().filter(|value| value.tag == tag)
    }

    /// Reads the next value if it has this tag; otherwise reads nothing, and the inner value is
    /// `None`.
    pub(crate) fn read_optional(&mut self, tag: u8) -> Option<Option<Value<'d>>> {
        if self.unread.first() == Some(&tag) { self.read_any().map(Some) } else { Some(None) }
    }

    /// Reads the next value, which must have this tag, and returns a reader of its elements.
    pub(crate) fn read_nested(&mut self, tag: u8) -> Option<Self> {
        self.read_value(tag).map(|value| Self::new(value.contents))
    }

    /// Reads a boolean that is false if it is absent.
    pub(crate) fn read_flag(&mut self) -> Option<bool> {
        match self.read_optional(BOOLEAN)? {
            None => Some(false),
            Some(Value { contents: [0x00], .. }) => Some(false),
            Some(Value { contents: [0xff], .. }) => Some(true),
            Some(_) => None,
        }
    }

    /// Reads the contents of a non-negative integer in shortest form.
    pub(crate) fn read_unsigned(&mut self) -> Option<&'d [u8]> {
        match self.read_value(INTEGER)?.contents {
            [] | [0x80..=0xff, ..] | [0x00, 0x00..=0x7f, ..] => None,
            contents => Some(contents),
        }
    }

    /// Reads a bit string: its bytes, and the number of unused bits of the last byte, which are
    /// zero.
    pub(crate) fn read_bits(&mut self) -> Option<(&'d [u8], u8)> {
        let (&unused, bytes) = self.read_value(BIT_STRING)?.contents.split_first()?;
        let last = bytes.last().copied();
        match (unused, last) {
            (0, _) => Some((bytes, 0)),
            (1..=7, Some(last)) if last.trailing_zeros() >= u32::from(unused) => {
                Some((bytes, unused))
            }
            _ => None,
        }
    }

    /// Reads a bit string of whole bytes.
    pub(crate) fn read_whole_byte_bits(&mut self) -> Option<&'d [u8]> {
        self.read_bits().and_then(|(bytes, unused)| (unused == 0).then_some(bytes))
    }
}

/// Returns a reader of the elements of the only value in these bytes.
pub(crate) fn parse_single(bytes: &[u8], tag: u8) -> Option<Reader<'_>> {
    let mut reader = Reader::new(bytes);
    let inner = reader.read_nested(tag)?;
    reader.expect_end()?;
    Some(inner)
}

fn read_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    match first {
        ..=0x7f => Some((usize::from(first), rest)),
        // Four length bytes exceed what a handshake carries; 0x80 is not DER.
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let length = digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit));
            let is_shortest = digits.first() != Some(&0) && length > 0x7f;
            is_shortest.then_some((length, rest))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
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
            assert_eq!(Reader::new(bytes).read_any().is_some(), *is_read, "{bytes:02x?}");
        }
        let long = [[0x04, 0x81, 0x80].as_slice(), &[7; 128]].concat();
        assert_eq!(Reader::new(&long).read_any().unwrap().contents.len(), 128);
    }

    #[test]
    fn flags_integers_and_bits_have_one_form() {
        assert_eq!(Reader::new(&[0x01, 0x01, 0xff]).read_flag(), Some(true));
        assert_eq!(Reader::new(&[0x01, 0x01, 0x00]).read_flag(), Some(false));
        assert_eq!(Reader::new(&[]).read_flag(), Some(false));
        assert_eq!(Reader::new(&[0x01, 0x01, 0x01]).read_flag(), None);
        for (bytes, is_read) in [
            ([0x02, 0x01, 0x00].as_slice(), true),
            (&[0x02, 0x01, 0x7f], true),
            (&[0x02, 0x02, 0x00, 0x80], true),
            (&[0x02, 0x02, 0x00, 0x7f], false),
            (&[0x02, 0x01, 0x80], false),
            (&[0x02, 0x00], false),
        ] {
            assert_eq!(Reader::new(bytes).read_unsigned().is_some(), is_read, "{bytes:02x?}");
        }
        for (bytes, is_read) in [
            ([0x03, 0x02, 0x02, 0x04].as_slice(), true),
            (&[0x03, 0x02, 0x03, 0x04], false),
            (&[0x03, 0x01, 0x00], true),
            (&[0x03, 0x01, 0x01], false),
            (&[0x03, 0x02, 0x08, 0x00], false),
            (&[0x03, 0x00], false),
        ] {
            assert_eq!(Reader::new(bytes).read_bits().is_some(), is_read, "{bytes:02x?}");
        }
    }
}
