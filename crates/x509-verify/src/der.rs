//! A reader of DER: the values of a certificate, one after the other.
//!
//! It takes what is well-formed and nothing else. Lengths have their shortest form and no value is
//! followed by bytes that nobody reads, so that a certificate has one meaning to all who read it.

pub(crate) const BOOLEAN: u8 = 0x01;
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const OID: u8 = 0x06;
pub(crate) const UTC_TIME: u8 = 0x17;
pub(crate) const GENERALIZED_TIME: u8 = 0x18;
pub(crate) const SEQUENCE: u8 = 0x30;

/// The number `n` in the context, of a value that holds no others.
pub(crate) const fn context(n: u8) -> u8 {
    0x80 | n
}

/// The number `n` in the context, of a value that holds others.
pub(crate) const fn constructed(n: u8) -> u8 {
    0xa0 | n
}

/// One value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Value<'d> {
    pub(crate) tag: u8,
    pub(crate) contents: &'d [u8],
    /// Tag and length included.
    pub(crate) whole: &'d [u8],
}

/// Values that follow one another. Every method returns `None` for what is not well-formed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'d> {
    rest: &'d [u8],
}

impl<'d> Reader<'d> {
    pub(crate) fn new(bytes: &'d [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// `Some` if all was read.
    pub(crate) fn end(&self) -> Option<()> {
        self.rest.is_empty().then_some(())
    }

    /// The next value, whatever it is.
    pub(crate) fn any(&mut self) -> Option<Value<'d>> {
        let (&tag, after_tag) = self.rest.split_first()?;
        // Numbers of tags above 30 take several bytes, and no certificate has any.
        if tag & 0x1f == 0x1f {
            return None;
        }
        let (length, after_length) = length(after_tag)?;
        let (contents, rest) = after_length.split_at_checked(length)?;
        let whole = self.rest.get(..self.rest.len() - rest.len())?;
        self.rest = rest;
        Some(Value { tag, contents, whole })
    }

    /// The next value, which must have this tag.
    pub(crate) fn value(&mut self, tag: u8) -> Option<Value<'d>> {
        self.any().filter(|value| value.tag == tag)
    }

    /// The next value if it has this tag; otherwise nothing is read, and the inner value is `None`.
    pub(crate) fn optional(&mut self, tag: u8) -> Option<Option<Value<'d>>> {
        if self.rest.first() == Some(&tag) { self.any().map(Some) } else { Some(None) }
    }

    /// The values inside the next value, which must have this tag.
    pub(crate) fn nested(&mut self, tag: u8) -> Option<Self> {
        self.value(tag).map(|value| Self::new(value.contents))
    }

    /// A boolean that is false if it is absent.
    pub(crate) fn flag(&mut self) -> Option<bool> {
        match self.optional(BOOLEAN)? {
            None => Some(false),
            Some(Value { contents: [0x00], .. }) => Some(false),
            Some(Value { contents: [0xff], .. }) => Some(true),
            Some(_) => None,
        }
    }

    /// The contents of an integer that is not negative, in their shortest form.
    pub(crate) fn unsigned(&mut self) -> Option<&'d [u8]> {
        match self.value(INTEGER)?.contents {
            [] | [0x80..=0xff, ..] | [0x00, 0x00..=0x7f, ..] => None,
            contents => Some(contents),
        }
    }

    /// The bits of a bit string, and how many of the last byte do not count, which are zero.
    pub(crate) fn bits(&mut self) -> Option<(&'d [u8], u8)> {
        let (&unused, bytes) = self.value(BIT_STRING)?.contents.split_first()?;
        let last = bytes.last().copied();
        match (unused, last) {
            (0, _) => Some((bytes, 0)),
            (1..=7, Some(last)) if last.trailing_zeros() >= u32::from(unused) => {
                Some((bytes, unused))
            }
            _ => None,
        }
    }

    /// A bit string of whole bytes.
    pub(crate) fn whole_bits(&mut self) -> Option<&'d [u8]> {
        self.bits().and_then(|(bytes, unused)| (unused == 0).then_some(bytes))
    }
}

/// The only value that these bytes are.
pub(crate) fn only(bytes: &[u8], tag: u8) -> Option<Reader<'_>> {
    let mut reader = Reader::new(bytes);
    let inner = reader.nested(tag)?;
    reader.end()?;
    Some(inner)
}

fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    match first {
        ..=0x7f => Some((usize::from(first), rest)),
        // Four bytes of length are more than a handshake carries; 0x80 is not DER.
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
            assert_eq!(Reader::new(bytes).any().is_some(), *is_read, "{bytes:02x?}");
        }
        let long = [[0x04, 0x81, 0x80].as_slice(), &[7; 128]].concat();
        assert_eq!(Reader::new(&long).any().unwrap().contents.len(), 128);
    }

    #[test]
    fn flags_integers_and_bits_have_one_form() {
        assert_eq!(Reader::new(&[0x01, 0x01, 0xff]).flag(), Some(true));
        assert_eq!(Reader::new(&[0x01, 0x01, 0x00]).flag(), Some(false));
        assert_eq!(Reader::new(&[]).flag(), Some(false));
        assert_eq!(Reader::new(&[0x01, 0x01, 0x01]).flag(), None);
        for (bytes, is_read) in [
            ([0x02, 0x01, 0x00].as_slice(), true),
            (&[0x02, 0x01, 0x7f], true),
            (&[0x02, 0x02, 0x00, 0x80], true),
            (&[0x02, 0x02, 0x00, 0x7f], false),
            (&[0x02, 0x01, 0x80], false),
            (&[0x02, 0x00], false),
        ] {
            assert_eq!(Reader::new(bytes).unsigned().is_some(), is_read, "{bytes:02x?}");
        }
        for (bytes, is_read) in [
            ([0x03, 0x02, 0x02, 0x04].as_slice(), true),
            (&[0x03, 0x02, 0x03, 0x04], false),
            (&[0x03, 0x01, 0x00], true),
            (&[0x03, 0x01, 0x01], false),
            (&[0x03, 0x02, 0x08, 0x00], false),
            (&[0x03, 0x00], false),
        ] {
            assert_eq!(Reader::new(bytes).bits().is_some(), is_read, "{bytes:02x?}");
        }
    }
}
