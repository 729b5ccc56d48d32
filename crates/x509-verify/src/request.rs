//! Requests for certificates, as PKCS #10 has them.

use crate::der::{self, OID, Reader, SEQUENCE};
use crate::signature::{PublicKey, SignatureFault, Signed};

/// The attribute `organizationName`, 2.5.4.10.
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];
const SET: u8 = 0x31;

const NUMERIC_STRING: u8 = 0x12;
const PRINTABLE_STRING: u8 = 0x13;
const T61_STRING: u8 = 0x14;
const IA5_STRING: u8 = 0x16;
const UTF8_STRING: u8 = 0x0c;
const BMP_STRING: u8 = 0x1e;

/// Why a request for a certificate is not one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// It is not well-formed.
    #[error("x509: malformed certificate request")]
    Malformed,
    /// The signature is of an algorithm that is not believed or not known.
    #[error("x509: cannot verify signature: algorithm unimplemented")]
    UnsupportedAlgorithm,
    /// The key of the request did not sign it.
    #[error("x509: the signature is not that of the key of the request")]
    Signature,
}

/// A request for a certificate that is signed by the key that it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateRequest {
    /// The organizations of the subject, in order: the groups of a user.
    pub organizations: Vec<String>,
}

impl CertificateRequest {
    /// Reads a request and verifies its signature.
    ///
    /// # Errors
    /// It is none, or somebody else signed it.
    pub fn parse(der: &[u8]) -> Result<Self, RequestError> {
        let (request, key, signed) = parse(der).ok_or(RequestError::Malformed)?;
        key.verify(&signed).map_err(|fault| match fault {
            SignatureFault::Unsupported => RequestError::UnsupportedAlgorithm,
            SignatureFault::OtherKey | SignatureFault::Invalid => RequestError::Signature,
        })?;
        Ok(request)
    }
}

fn parse(bytes: &[u8]) -> Option<(CertificateRequest, PublicKey, Signed)> {
    let mut outer = der::only(bytes, SEQUENCE)?;
    let info = outer.value(SEQUENCE)?;
    let algorithm = outer.value(SEQUENCE)?;
    let signature = outer.whole_bits()?;
    outer.end()?;
    let mut reader = Reader::new(info.contents);
    reader.unsigned()?;
    let subject = reader.nested(SEQUENCE)?;
    let key = PublicKey::read(&mut reader)?;
    reader.optional(der::constructed(0))?;
    reader.end()?;
    let signed = Signed {
        message: info.whole.to_vec(),
        algorithm: algorithm.contents.to_vec(),
        signature: signature.to_vec(),
    };
    Some((CertificateRequest { organizations: organizations(subject)? }, key, signed))
}

fn organizations(mut subject: Reader<'_>) -> Option<Vec<String>> {
    let mut found = Vec::new();
    while !subject.is_empty() {
        let mut attributes = subject.nested(SET)?;
        while !attributes.is_empty() {
            let mut attribute = attributes.nested(SEQUENCE)?;
            let kind = attribute.value(OID)?;
            let value = attribute.any()?;
            attribute.end()?;
            if kind.contents == ORGANIZATION {
                found.push(text(value.tag, value.contents)?);
            }
        }
    }
    Some(found)
}

/// A text of a name. Types that nobody reads make the request malformed, as they do in Go.
fn text(tag: u8, contents: &[u8]) -> Option<String> {
    match tag {
        UTF8_STRING | PRINTABLE_STRING | IA5_STRING | NUMERIC_STRING => {
            String::from_utf8(contents.to_vec()).ok()
        }
        T61_STRING => Some(contents.iter().copied().map(char::from).collect()),
        BMP_STRING => {
            let (pairs, rest) = contents.as_chunks::<2>();
            let mut units: Vec<u16> = pairs.iter().map(|pair| u16::from_be_bytes(*pair)).collect();
            // A terminator is no part of the text.
            units.pop_if(|last| *last == 0);
            String::from_utf16(&units).ok().filter(|_| rest.is_empty())
        }
        _ => None,
    }
}
