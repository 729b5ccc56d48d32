//! Parsed certificates, with the fields that verification needs.

use std::net::IpAddr;

use rustls_pki_types::CertificateDer;

use crate::alternative_names::AlternativeNames;
use crate::der::{self, DerReader, DerTag};
use crate::der_time;
use crate::distinguished_name;
use crate::extensions::{self, BasicConstraints, ExtendedKeyUsage};
use crate::name_constraints::NameConstraints;
use crate::signature::{PublicKey, SignedData};

/// The longest serial number that RFC 5280 allows.
const SERIAL_NUMBER_BYTES_MAX: usize = 20;
/// The object identifier 1.2.840.113549.1.1.5 of `sha1WithRSAEncryption`, in DER.
const SHA1_WITH_RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 5];
/// The object identifier 1.2.840.10045.4.1 of `ecdsa-with-SHA1`, in DER.
const ECDSA_WITH_SHA1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1];

/// The bytes are not a well-formed certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed certificate")]
pub struct MalformedCertificateError;

/// A certificate has a version that the TLS library does not present to peers. Go presents it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the certificate has X.509 version {version} and must have version 3; openssl issues version 3 if the certificate \
     has extensions, which `-extfile` adds"
)]
pub struct OldCertificateVersionError {
    /// The version of the certificate.
    pub version: u8,
}

/// A parsed certificate. Nothing about it has been verified.
#[derive(Debug, Clone)]
pub struct Certificate {
    pub(crate) der: CertificateDer<'static>,
    /// The version of the X.509 format: 1, 2 or 3.
    pub(crate) version: u8,
    /// The contents of the serial number, which is not negative.
    pub(crate) serial_number: Vec<u8>,
    /// The DER encoding of the issuer. Names are compared byte by byte.
    pub(crate) issuer: Vec<u8>,
    pub(crate) subject: Vec<u8>,
    /// The start of the validity in seconds since 1970. Both ends belong to the validity.
    pub(crate) not_before: i64,
    pub(crate) not_after: i64,
    pub(crate) key: PublicKey,
    pub(crate) signed_data: SignedData,
    pub(crate) extensions: Extensions,
}

/// The parsed extensions of a certificate. All fields are empty if the certificate has no extensions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Extensions {
    pub(crate) basic_constraints: Option<BasicConstraints>,
    /// Bit 0 is digitalSignature; zero if the extension is absent or names no usage.
    pub(crate) key_usage_bits: u16,
    pub(crate) extended_key_usage: ExtendedKeyUsage,
    pub(crate) subject_key_id: Vec<u8>,
    pub(crate) authority_key_id: Vec<u8>,
    /// The DER encoding of the alternative names.
    pub(crate) alternative_names_der: Option<Vec<u8>>,
    pub(crate) alternative_names: AlternativeNames,
    pub(crate) name_constraints: Option<NameConstraints>,
    /// Whether the certificate requires a policy, or maps every policy. Go evaluates policies only for a chain
    /// with such a certificate.
    pub(crate) requires_policy_evaluation: bool,
    /// Whether the certificate has a critical extension that this code does not handle.
    pub(crate) has_unhandled_critical_extension: bool,
}

impl Certificate {
    /// Parses a certificate.
    ///
    /// # Errors
    /// The bytes are not a well-formed certificate.
    pub fn parse(der: &CertificateDer<'_>) -> Result<Self, MalformedCertificateError> {
        parse_certificate(der).ok_or(MalformedCertificateError)
    }

    /// Reports whether these bytes are a certificate.
    #[must_use]
    pub fn is_certificate(der: &[u8]) -> bool {
        parse_certificate(&CertificateDer::from(der)).is_some()
    }

    /// Reports whether these bytes are a certificate whose basic constraints say that it belongs to a CA.
    #[must_use]
    pub fn is_ca_certificate(der: &[u8]) -> bool {
        let parsed = parse_certificate(&CertificateDer::from(der));
        let constraints = parsed.and_then(|own| own.extensions.basic_constraints);
        constraints.is_some_and(|own| own.is_ca)
    }

    /// Checks that the TLS library can present a certificate of this version. Other faults are for the library to
    /// report.
    ///
    /// # Errors
    /// The certificate has version 1 or 2.
    pub fn check_version(der: &CertificateDer<'_>) -> Result<(), OldCertificateVersionError> {
        match parse_certificate(der) {
            Some(Self { version, .. }) if version < 3 => {
                Err(OldCertificateVersionError { version })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The DER encoding of the certificate.
    pub fn der(&self) -> &CertificateDer<'static> {
        &self.der
    }

    /// The public key, as a `SubjectPublicKeyInfo`.
    pub fn public_key_der(&self) -> &[u8] {
        &self.key.spki_der
    }

    /// The serial number in decimal digits. A number of more than 20 bytes, which RFC 5280 does not allow, is in
    /// hexadecimal digits, because the conversion takes quadratic time.
    #[must_use]
    pub fn serial_number_text(&self) -> String {
        match self.serial_number.len() {
            ..=SERIAL_NUMBER_BYTES_MAX => format_decimal(&self.serial_number),
            _ => self.serial_number.iter().fold("0x".to_owned(), |mut text, byte| {
                text.push_str(&format!("{byte:02x}"));
                text
            }),
        }
    }

    /// The DER encoding of the subject.
    pub fn subject_der(&self) -> &[u8] {
        &self.subject
    }

    /// The values of one attribute of the subject, in order; `None` if one of them is not text.
    ///
    /// `oid` is the object identifier of the attribute in DER, without tag and length.
    pub fn subject_texts(&self, oid: &[u8]) -> Option<Vec<String>> {
        let name = der::parse_single_value(&self.subject, DerTag::SEQUENCE)?;
        distinguished_name::attribute_texts(&distinguished_name::read_attributes(name)?, oid)
    }

    /// The end of the validity in seconds since 1970. It belongs to the validity.
    pub fn not_after(&self) -> i64 {
        self.not_after
    }

    /// Reports whether the basic constraints say that the certificate is an authority.
    pub fn is_ca(&self) -> bool {
        self.extensions.basic_constraints.is_some_and(|constraints| constraints.is_ca)
    }

    /// The subject key identifier; empty if there is none.
    pub fn subject_key_id(&self) -> &[u8] {
        &self.extensions.subject_key_id
    }

    /// The key identifier of the authority; empty if there is none.
    pub fn authority_key_id(&self) -> &[u8] {
        &self.extensions.authority_key_id
    }

    /// Reports whether the certificate has the extension `subjectAltName`.
    pub fn has_alternative_names(&self) -> bool {
        self.extensions.alternative_names_der.is_some()
    }

    /// The DNS names among the alternative names.
    pub fn dns_names(&self) -> &[String] {
        &self.extensions.alternative_names.dns_names
    }

    /// The addresses among the alternative names.
    pub fn ip_addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.extensions.alternative_names.ip_addresses.iter().filter_map(|bytes| {
            let v4 = <[u8; 4]>::try_from(bytes.as_slice()).map(IpAddr::from);
            v4.or_else(|_| <[u8; 16]>::try_from(bytes.as_slice()).map(IpAddr::from)).ok()
        })
    }

    /// The usages of the extension `extKeyUsage`.
    pub fn extended_key_usage(&self) -> ExtendedKeyUsage {
        self.extensions.extended_key_usage
    }

    /// Reports whether the key of `authority` signed this certificate. Nothing else is checked.
    pub fn is_signed_by(&self, authority: &Self) -> bool {
        authority.key.verify_signature(&self.signed_data).is_ok()
    }

    /// Reports whether the issuer of the certificate is its subject.
    pub fn is_self_issued(&self) -> bool {
        self.issuer == self.subject
    }

    /// Reports whether the signature is one with SHA-1, which verification refuses.
    pub fn has_sha1_signature(&self) -> bool {
        let mut algorithm = DerReader::new(&self.signed_data.algorithm_identifier);
        let oid = algorithm.read_value(DerTag::OID).map(|oid| oid.contents);
        oid.is_some_and(|oid| [SHA1_WITH_RSA, ECDSA_WITH_SHA1].contains(&oid))
    }
}

fn parse_certificate(bytes: &CertificateDer<'_>) -> Option<Certificate> {
    let mut outer = der::parse_single_value(bytes, DerTag::SEQUENCE)?;
    let tbs = outer.read_value(DerTag::SEQUENCE)?;
    let algorithm = outer.read_value(DerTag::SEQUENCE)?;
    let signature = outer.read_byte_aligned_bit_string()?;
    outer.expect_end()?;

    let mut reader = DerReader::new(tbs.contents);
    let version = match reader.read_optional_value(DerTag::constructed_context_tag(0))? {
        None => 1,
        Some(tagged) => parse_version(tagged.contents)?,
    };
    let serial_number = reader.read_unsigned_integer()?.to_vec();
    if reader.read_value(DerTag::SEQUENCE)?.contents != algorithm.contents {
        return None;
    }
    let issuer = read_name(&mut reader)?;
    let mut validity = reader.read_nested(DerTag::SEQUENCE)?;
    let not_before = der_time::read_time(&mut validity)?;
    let not_after = der_time::read_time(&mut validity)?;
    validity.expect_end()?;
    let subject = read_name(&mut reader)?;
    let key = PublicKey::read(&mut reader)?;
    if version > 1 {
        // The unique ids of issuer and subject are obsolete and ignored.
        reader.read_optional_value(DerTag::primitive_context_tag(1))?;
        reader.read_optional_value(DerTag::primitive_context_tag(2))?;
    }
    let extensions = match version {
        3 => reader.read_optional_value(DerTag::constructed_context_tag(3))?,
        _ => None,
    };
    let extensions = match extensions {
        None => Extensions::default(),
        Some(tagged) => extensions::parse_extensions(tagged.contents)?,
    };
    reader.expect_end()?;
    Some(Certificate {
        der: bytes.clone().into_owned(),
        version,
        serial_number,
        issuer,
        subject,
        not_before,
        not_after,
        key,
        signed_data: SignedData {
            message: tbs.encoding.to_vec(),
            algorithm_identifier: algorithm.contents.to_vec(),
            signature: signature.to_vec(),
        },
        extensions,
    })
}

/// Reads a distinguished name and returns its encoding.
fn read_name(reader: &mut DerReader<'_>) -> Option<Vec<u8>> {
    let name = reader.read_value(DerTag::SEQUENCE)?;
    distinguished_name::read_attributes(DerReader::new(name.contents))?;
    Some(name.encoding.to_vec())
}

fn parse_version(tagged: &[u8]) -> Option<u8> {
    let mut reader = DerReader::new(tagged);
    let [number @ 0..=2] = reader.read_unsigned_integer()? else { return None };
    reader.expect_end()?;
    Some(number + 1)
}

/// Formats a number of big-endian bytes in decimal digits.
fn format_decimal(bytes: &[u8]) -> String {
    // The digits of the number so far, the least significant one first.
    let mut digits = vec![0_u8];
    for byte in bytes {
        let mut carry = u32::from(*byte);
        for digit in &mut digits {
            let value = u32::from(*digit) * 256 + carry;
            // INVARIANT: a remainder of ten fits into a byte.
            *digit = u8::try_from(value % 10).unwrap_or_default();
            carry = value / 10;
        }
        while carry > 0 {
            digits.push(u8::try_from(carry % 10).unwrap_or_default());
            carry /= 10;
        }
    }
    digits.iter().rev().map(|digit| char::from(b'0' + digit)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn decimal_digits_are_those_of_the_number(number: u128) {
            prop_assert_eq!(format_decimal(&number.to_be_bytes()), number.to_string());
        }
    }
}
