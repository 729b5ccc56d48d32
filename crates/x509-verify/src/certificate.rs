//! Parsed certificates, with the fields that verification needs.

use rustls_pki_types::CertificateDer;

use crate::alternative_names::AlternativeNames;
use crate::der::{self, DerReader, DerTag};
use crate::der_time;
use crate::extensions::{self, BasicConstraints, ExtendedKeyUsage};
use crate::name_constraints::NameConstraints;
use crate::signature::{PublicKey, SignedData};

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
    reader.read_unsigned_integer()?;
    if reader.read_value(DerTag::SEQUENCE)?.contents != algorithm.contents {
        return None;
    }
    let issuer = reader.read_value(DerTag::SEQUENCE)?.encoding.to_vec();
    let mut validity = reader.read_nested(DerTag::SEQUENCE)?;
    let not_before = der_time::read_time(&mut validity)?;
    let not_after = der_time::read_time(&mut validity)?;
    validity.expect_end()?;
    let subject = reader.read_value(DerTag::SEQUENCE)?.encoding.to_vec();
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

fn parse_version(tagged: &[u8]) -> Option<u8> {
    let mut reader = DerReader::new(tagged);
    let [number @ 0..=2] = reader.read_unsigned_integer()? else { return None };
    reader.expect_end()?;
    Some(number + 1)
}
