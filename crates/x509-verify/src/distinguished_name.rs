//! Distinguished names: the attributes of subjects and issuers.

use crate::der::{DerReader, DerTag};

/// The object identifier 2.5.4.3 of the attribute `commonName`, in DER.
pub const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// The object identifier 2.5.4.10 of the attribute `organizationName`, in DER.
pub const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];

/// One attribute of a name, such as its common name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NameAttribute<'d> {
    /// The contents of the object identifier that names the type of the attribute.
    pub(crate) oid: &'d [u8],
    tag: DerTag,
    contents: &'d [u8],
}

/// Reads all attributes of a name in their order; `None` if the name is malformed.
pub(crate) fn read_attributes<'d>(mut name: DerReader<'d>) -> Option<Vec<NameAttribute<'d>>> {
    let mut attributes = Vec::new();
    while !name.is_empty() {
        let mut set = name.read_nested(DerTag::SET)?;
        while !set.is_empty() {
            let mut attribute = set.read_nested(DerTag::SEQUENCE)?;
            let oid = attribute.read_value(DerTag::OID)?.contents;
            let value = attribute.read_any_value()?;
            attribute.expect_end()?;
            attributes.push(NameAttribute { oid, tag: value.tag, contents: value.contents });
        }
    }
    Some(attributes)
}

/// The values of one attribute type in their order; `None` if one of them is not text.
pub(crate) fn attribute_texts(attributes: &[NameAttribute<'_>], oid: &[u8]) -> Option<Vec<String>> {
    attributes.iter().filter(|it| it.oid == oid).map(NameAttribute::text).collect()
}

impl NameAttribute<'_> {
    /// Decodes the string types of ASN.1 with the alphabets that Go accepts.
    fn text(&self) -> Option<String> {
        let ascii = |is_in_alphabet: fn(u8) -> bool| {
            let is_text = self.contents.iter().copied().all(is_in_alphabet);
            String::from_utf8(self.contents.to_vec()).ok().filter(|_| is_text)
        };
        match self.tag {
            DerTag::UTF8_STRING => String::from_utf8(self.contents.to_vec()).ok(),
            DerTag::PRINTABLE_STRING => ascii(is_printable_string_byte),
            DerTag::IA5_STRING => ascii(|byte| byte.is_ascii()),
            DerTag::NUMERIC_STRING => ascii(|byte| byte.is_ascii_digit() || byte == b' '),
            // T.61 is read as Latin-1, as other implementations do.
            DerTag::T61_STRING => Some(self.contents.iter().copied().map(char::from).collect()),
            DerTag::BMP_STRING => {
                let (pairs, rest) = self.contents.as_chunks::<2>();
                let mut units: Vec<u16> =
                    pairs.iter().map(|pair| u16::from_be_bytes(*pair)).collect();
                // A final NUL is a terminator and not part of the text.
                units.pop_if(|last| *last == 0);
                String::from_utf16(&units).ok().filter(|_| rest.is_empty())
            }
            _ => None,
        }
    }
}

/// Reports whether a byte may stand in a PrintableString. `*` and `&` are not in the standard but occur in many
/// certificates.
fn is_printable_string_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b" '()+,-./:=?*&".contains(&byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::der::encode_der_value;

    fn attribute(oid: &[u8], tag: DerTag, contents: &[u8]) -> Vec<u8> {
        let oid = encode_der_value(DerTag::OID, &[oid]);
        let value = encode_der_value(tag, &[contents]);
        encode_der_value(DerTag::SEQUENCE, &[&oid, &value])
    }

    fn text(tag: DerTag, contents: &[u8]) -> Option<String> {
        NameAttribute { oid: COMMON_NAME, tag, contents }.text()
    }

    #[test]
    fn string_types_have_the_alphabets_of_go() {
        for (tag, contents, want) in [
            (DerTag::UTF8_STRING, "añ".as_bytes(), Some("añ")),
            (DerTag::UTF8_STRING, &[0xff], None),
            (DerTag::PRINTABLE_STRING, b"a-b:c*", Some("a-b:c*")),
            (DerTag::PRINTABLE_STRING, b"a@b", None),
            (DerTag::IA5_STRING, b"a@b", Some("a@b")),
            (DerTag::IA5_STRING, &[0xe9], None),
            (DerTag::NUMERIC_STRING, b"12 3", Some("12 3")),
            (DerTag::NUMERIC_STRING, b"12a", None),
            (DerTag::T61_STRING, &[0xe9], Some("é")),
            (DerTag::BMP_STRING, &[0, b'a', 0, 0xf1], Some("añ")),
            (DerTag::BMP_STRING, &[0, b'a', 0, 0], Some("a")),
            (DerTag::BMP_STRING, &[0, b'a', 0], None),
            (DerTag::BMP_STRING, &[0xd8, 0x00], None),
            (DerTag::OCTET_STRING, b"a", None),
        ] {
            assert_eq!(text(tag, contents).as_deref(), want, "{tag:?} {contents:02x?}");
        }
    }

    #[test]
    fn attributes_are_read_in_order_from_all_sets() {
        let first = attribute(ORGANIZATION, DerTag::UTF8_STRING, b"one");
        let second = attribute(ORGANIZATION, DerTag::PRINTABLE_STRING, b"two");
        let name = attribute(COMMON_NAME, DerTag::IA5_STRING, b"ana");
        let name = [
            encode_der_value(DerTag::SET, &[&first, &name]),
            encode_der_value(DerTag::SET, &[&second]),
        ]
        .concat();
        let attributes = read_attributes(DerReader::new(&name)).unwrap();
        assert_eq!(attribute_texts(&attributes, ORGANIZATION).unwrap(), ["one", "two"]);
        assert_eq!(attribute_texts(&attributes, COMMON_NAME).unwrap(), ["ana"]);
        assert_eq!(attribute_texts(&attributes, &[0x55, 0x04, 0x06]).unwrap(), [""; 0]);
        assert!(read_attributes(DerReader::new(&[&name[..], &[0]].concat())).is_none());
        assert!(read_attributes(DerReader::new(&name[..name.len() - 1])).is_none());
    }

    #[test]
    fn an_attribute_has_one_value() {
        let oid = encode_der_value(DerTag::OID, &[COMMON_NAME]);
        let value = encode_der_value(DerTag::UTF8_STRING, &[b"a"]);
        for parts in
            [vec![], vec![&oid[..]], vec![&oid[..], &value, &value], vec![&value[..], &value]]
        {
            let attribute = encode_der_value(DerTag::SEQUENCE, &parts);
            let name = encode_der_value(DerTag::SET, &[&attribute]);
            assert!(read_attributes(DerReader::new(&name)).is_none(), "{name:02x?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(tag: u8, bytes: Vec<u8>) {
            if let Some(attributes) = read_attributes(DerReader::new(&bytes)) {
                let _ = attribute_texts(&attributes, COMMON_NAME);
            }
            let _ = text(DerTag(tag), &bytes);
        }
    }
}
