//! A certificate, as far as trust in it depends on it.

use rustls_pki_types::CertificateDer;

use crate::constraints::NameConstraints;
use crate::der::{self, Reader, SEQUENCE};
use crate::extensions::{self, BasicConstraints, ExtendedKeyUsage};
use crate::names::Names;
use crate::signature::{PublicKey, Signed};
use crate::time;

/// Something that is not a certificate, or whose meaning is not clear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed certificate")]
pub struct MalformedError;

/// A certificate that was read. Nothing about it was verified.
#[derive(Debug, Clone)]
pub struct Certificate {
    pub(crate) der: CertificateDer<'static>,
    /// From 1.
    pub(crate) version: u8,
    /// As they are encoded: names are compared byte by byte.
    pub(crate) issuer: Vec<u8>,
    pub(crate) subject: Vec<u8>,
    /// Seconds since 1970, both included.
    pub(crate) not_before: i64,
    pub(crate) not_after: i64,
    pub(crate) key: PublicKey,
    pub(crate) signed: Signed,
    pub(crate) extensions: Extensions,
}

/// What the extensions of a certificate say. A certificate without extensions says nothing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Extensions {
    pub(crate) basic_constraints: Option<BasicConstraints>,
    /// Bit 0 is digitalSignature; zero if the extension is absent or names no usage.
    pub(crate) key_usage: u16,
    pub(crate) extended_key_usage: ExtendedKeyUsage,
    pub(crate) subject_key_id: Vec<u8>,
    pub(crate) authority_key_id: Vec<u8>,
    /// The alternative names as they are encoded.
    pub(crate) alternative_names: Option<Vec<u8>>,
    pub(crate) names: Names,
    pub(crate) name_constraints: Option<NameConstraints>,
    /// It demands a policy, or maps every policy. Go would follow policies from here on.
    pub(crate) has_policy_demands: bool,
    /// It is of no use to whoever does not know an extension that this code does not know.
    pub(crate) has_unhandled_critical: bool,
}

impl Certificate {
    /// Reads a certificate.
    ///
    /// # Errors
    /// It is none, or not well-formed.
    pub fn parse(der: &CertificateDer<'_>) -> Result<Self, MalformedError> {
        parse(der).ok_or(MalformedError)
    }

    /// Whether these bytes are a certificate.
    #[must_use]
    pub fn is_certificate(der: &[u8]) -> bool {
        parse(&CertificateDer::from(der)).is_some()
    }

    /// The certificate as it was read.
    pub fn der(&self) -> &CertificateDer<'static> {
        &self.der
    }

    /// The public key, as a `SubjectPublicKeyInfo`.
    pub fn public_key_der(&self) -> &[u8] {
        &self.key.whole
    }
}

fn parse(bytes: &CertificateDer<'_>) -> Option<Certificate> {
    let mut outer = der::only(bytes, SEQUENCE)?;
    let tbs = outer.value(SEQUENCE)?;
    let algorithm = outer.value(SEQUENCE)?;
    let signature = outer.whole_bits()?;
    outer.end()?;

    let mut reader = Reader::new(tbs.contents);
    let version = match reader.optional(der::constructed(0))? {
        None => 1,
        Some(tagged) => version(tagged.contents)?,
    };
    reader.unsigned()?;
    if reader.value(SEQUENCE)?.contents != algorithm.contents {
        return None;
    }
    let issuer = reader.value(SEQUENCE)?.whole.to_vec();
    let mut validity = reader.nested(SEQUENCE)?;
    let not_before = time::read(&mut validity)?;
    let not_after = time::read(&mut validity)?;
    validity.end()?;
    let subject = reader.value(SEQUENCE)?.whole.to_vec();
    let key = PublicKey::read(&mut reader)?;
    if version > 1 {
        // Unique ids of issuer and subject, which nobody uses.
        reader.optional(der::context(1))?;
        reader.optional(der::context(2))?;
    }
    let extensions = match version {
        3 => reader.optional(der::constructed(3))?,
        _ => None,
    };
    let extensions = match extensions {
        None => Extensions::default(),
        Some(tagged) => extensions::read(tagged.contents)?,
    };
    reader.end()?;
    Some(Certificate {
        der: bytes.clone().into_owned(),
        version,
        issuer,
        subject,
        not_before,
        not_after,
        key,
        signed: Signed {
            message: tbs.whole.to_vec(),
            algorithm: algorithm.contents.to_vec(),
            signature: signature.to_vec(),
        },
        extensions,
    })
}

fn version(tagged: &[u8]) -> Option<u8> {
    let mut reader = Reader::new(tagged);
    let [number @ 0..=2] = reader.unsigned()? else { return None };
    reader.end()?;
    Some(number + 1)
}
