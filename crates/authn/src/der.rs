//! The little of DER that keys are written in.

/// An INTEGER.
pub(crate) const INTEGER: u8 = 0x02;
/// A BIT STRING.
pub(crate) const BIT_STRING: u8 = 0x03;
/// An OCTET STRING.
pub(crate) const OCTET_STRING: u8 = 0x04;
/// NULL.
pub(crate) const NULL: u8 = 0x05;
/// An OBJECT IDENTIFIER.
pub(crate) const OID: u8 = 0x06;
/// A SEQUENCE.
pub(crate) const SEQUENCE: u8 = 0x30;

/// A reader of values, one after the other. Any value it can not read is `None`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'d> {
    rest: &'d [u8],
}

impl<'d> Reader<'d> {
    pub(crate) fn new(bytes: &'d [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Reports whether all was read.
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The contents of the next value, if it has this tag; otherwise nothing is read.
    pub(crate) fn value(&mut self, tag: u8) -> Option<&'d [u8]> {
        let (&first, rest) = self.rest.split_first()?;
        if first != tag {
            return None;
        }
        let (length, rest) = length(rest)?;
        let (contents, rest) = rest.split_at_checked(length)?;
        self.rest = rest;
        Some(contents)
    }

    /// The values in the next value, which must be a sequence.
    pub(crate) fn sequence(&mut self) -> Option<Self> {
        self.value(SEQUENCE).map(Self::new)
    }

    /// The bytes of the next value, which must be a bit string of whole bytes.
    pub(crate) fn bit_string(&mut self) -> Option<&'d [u8]> {
        match self.value(BIT_STRING)? {
            [0, bytes @ ..] => Some(bytes),
            _ => None,
        }
    }
}

fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
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

/// A value with this tag that consists of these parts.
pub(crate) fn write(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
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
        let inner = write(OID, &[&[1, 2]]);
        let bytes = write(SEQUENCE, &[&inner, &write(BIT_STRING, &[&[0], &[7]])]);
        let mut outer = Reader::new(&bytes);
        let mut reader = outer.sequence().unwrap();
        assert!(outer.is_empty());
        assert_eq!(reader.value(INTEGER), None);
        assert_eq!(reader.value(OID), Some(&[1, 2][..]));
        assert_eq!(reader.bit_string(), Some(&[7][..]));
        assert!(reader.is_empty() && reader.value(OID).is_none());
    }

    #[test]
    fn what_is_cut_short_is_not_read() {
        for bytes in [&[OID][..], &[OID, 2, 1], &[OID, 0x82, 1], &[OID, 0x80, 0, 0], &[OID, 0x85]] {
            assert_eq!(Reader::new(bytes).value(OID), None, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(len in prop_oneof![0usize..300, Just(65_535), Just(65_536)]) {
            let contents = vec![1; len];
            let bytes = write(OCTET_STRING, &[&contents]);
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.value(OCTET_STRING), Some(contents.as_slice()));
            prop_assert!(reader.is_empty());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            let mut reader = Reader::new(&bytes);
            let _ = (reader.sequence(), reader.bit_string(), reader.value(INTEGER));
        }
    }
}
