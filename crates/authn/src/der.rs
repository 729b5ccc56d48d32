//! The subset of DER that encodes keys.

pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const NULL: u8 = 0x05;
pub(crate) const OID: u8 = 0x06;
pub(crate) const SEQUENCE: u8 = 0x30;

/// Reads DER values one after the other. Methods return `None` for a value that they can not read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'d> {
    unread: &'d [u8],
}

impl<'d> Reader<'d> {
    pub(crate) fn new(bytes: &'d [u8]) -> Self {
        Self { unread: bytes }
    }

    /// Reports whether everything was read.
    pub(crate) fn is_empty(&self) -> bool {
        self.unread.is_empty()
    }

    /// Reads the contents of the next value if it has this tag; otherwise reads nothing.
    pub(crate) fn read_value(&mut self, tag: u8) -> Option<&'d [u8]> {
        let (&first, rest) = self.unread.split_first()?;
        if first != tag {
            return None;
        }
        let (length, rest) = read_length(rest)?;
        let (contents, rest) = rest.split_at_checked(length)?;
        self.unread = rest;
        Some(contents)
    }

    /// Reads the next value, which must be a sequence, and returns a reader of its elements.
    pub(crate) fn read_sequence(&mut self) -> Option<Self> {
        self.read_value(SEQUENCE).map(Self::new)
    }

    /// Reads the next value, which must be a bit string of whole bytes.
    pub(crate) fn read_bit_string(&mut self) -> Option<&'d [u8]> {
        match self.read_value(BIT_STRING)? {
            [0, bytes @ ..] => Some(bytes),
            _ => None,
        }
    }
}

fn read_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    match first {
        ..=0x7f => Some((usize::from(first), rest)),
        // Four bytes of length are more than any key needs; 0x80 is not DER.
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let length = digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit));
            Some((length, rest))
        }
        _ => None,
    }
}

/// Encodes a value with this tag and the concatenated `parts` as contents.
pub(crate) fn encode_value(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let contents = parts.concat();
    let mut out = vec![tag];
    match u8::try_from(contents.len()) {
        Ok(short @ 0..0x80) => out.push(short),
        _ => {
            let bytes = contents.len().to_be_bytes();
            let n_zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            let digits = bytes.get(n_zeros..).unwrap_or_default();
            // INVARIANT: a length has at most eight digits.
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
    fn values_are_read_in_turn_and_only_with_their_tag() {
        let inner = encode_value(OID, &[&[1, 2]]);
        let bytes = encode_value(SEQUENCE, &[&inner, &encode_value(BIT_STRING, &[&[0], &[7]])]);
        let mut outer = Reader::new(&bytes);
        let mut reader = outer.read_sequence().unwrap();
        assert!(outer.is_empty());
        assert_eq!(reader.read_value(INTEGER), None);
        assert_eq!(reader.read_value(OID), Some(&[1, 2][..]));
        assert_eq!(reader.read_bit_string(), Some(&[7][..]));
        assert!(reader.is_empty() && reader.read_value(OID).is_none());
    }

    #[test]
    fn what_is_cut_short_is_not_read() {
        for bytes in [&[OID][..], &[OID, 2, 1], &[OID, 0x82, 1], &[OID, 0x80, 0, 0], &[OID, 0x85]] {
            assert_eq!(Reader::new(bytes).read_value(OID), None, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(len in prop_oneof![0usize..300, Just(65_535), Just(65_536)]) {
            let contents = vec![1; len];
            let bytes = encode_value(OCTET_STRING, &[&contents]);
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.read_value(OCTET_STRING), Some(contents.as_slice()));
            prop_assert!(reader.is_empty());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            let mut reader = Reader::new(&bytes);
            let _ = (reader.read_sequence(), reader.read_bit_string(), reader.read_value(INTEGER));
        }
    }
}
