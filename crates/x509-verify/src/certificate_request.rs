//! PKCS #10 certificate signing requests.

use crate::der::{self, DerReader, DerTag};
use crate::signature::{PublicKey, SignatureFault, SignedData};

/// The attribute `organizationName`, 2.5.4.10.
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

/// The reason why a certificate signing request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CertificateRequestError {
    /// The request is malformed.
    #[error("x509: malformed certificate request")]
    Malformed,
    /// The signature algorithm is insecure or unknown.
    #[error("x509: cannot verify signature: algorithm unimplemented")]
    UnsupportedAlgorithm,
    /// The key of the request did not sign it.
    #[error("x509: the signature is not that of the key of the request")]
    Signature,
}

/// A certificate signing request with a valid signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateRequest {
    /// The organizations of the subject, in order: the groups of a user.
    pub organizations: Vec<String>,
    /// The common name of the subject: the name of a user. Of several, the last one counts, as in Go.
    pub common_name: String,
}

impl CertificateRequest {
    /// Parses a request and verifies its signature.
    ///
    /// # Errors
    /// The request is malformed, or its own key did not sign it.
    pub fn parse(der: &[u8]) -> Result<Self, CertificateRequestError> {
        let (request, key, signed) =
            parse_request_info(der).ok_or(CertificateRequestError::Malformed)?;
        key.verify_signature(&signed).map_err(|fault| match fault {
            SignatureFault::Unsupported => CertificateRequestError::UnsupportedAlgorithm,
            SignatureFault::WrongKeyType | SignatureFault::Invalid => {
                CertificateRequestError::Signature
            }
        })?;
        Ok(request)
    }
}

fn parse_request_info(bytes: &[u8]) -> Option<(CertificateRequest, PublicKey, SignedData)> {
    let mut outer = der::parse_single_value(bytes, DerTag::SEQUENCE)?;
    let info = outer.read_value(DerTag::SEQUENCE)?;
    let algorithm = outer.read_value(DerTag::SEQUENCE)?;
    let signature = outer.read_byte_aligned_bit_string()?;
    outer.expect_end()?;
    let mut reader = DerReader::new(info.contents);
    reader.read_unsigned_integer()?;
    let subject = reader.read_nested(DerTag::SEQUENCE)?;
    let key = PublicKey::read(&mut reader)?;
    reader.read_optional_value(DerTag::constructed_context_tag(0))?;
    reader.expect_end()?;
    let signed = SignedData {
        message: info.encoding.to_vec(),
        algorithm_identifier: algorithm.contents.to_vec(),
        signature: signature.to_vec(),
    };
    Some((read_subject(subject)?, key, signed))
}

fn read_subject(mut subject: DerReader<'_>) -> Option<CertificateRequest> {
    let (mut organizations, mut common_name) = (Vec::new(), String::new());
    while !subject.is_empty() {
        let mut attributes = subject.read_nested(DerTag::SET)?;
        while !attributes.is_empty() {
            let mut attribute = attributes.read_nested(DerTag::SEQUENCE)?;
            let kind = attribute.read_value(DerTag::OID)?;
            let value = attribute.read_any_value()?;
            attribute.expect_end()?;
            if kind.contents == ORGANIZATION {
                organizations.push(decode_attribute_text(value.tag, value.contents)?);
            }
            if kind.contents == COMMON_NAME {
                common_name = decode_attribute_text(value.tag, value.contents)?;
            }
        }
    }
    Some(CertificateRequest { organizations, common_name })
}

/// Decodes an attribute value. Unknown string types make the request malformed, as in Go.
fn decode_attribute_text(tag: DerTag, contents: &[u8]) -> Option<String> {
    match tag {
        DerTag::UTF8_STRING
        | DerTag::PRINTABLE_STRING
        | DerTag::IA5_STRING
        | DerTag::NUMERIC_STRING => String::from_utf8(contents.to_vec()).ok(),
        DerTag::T61_STRING => Some(contents.iter().copied().map(char::from).collect()),
        DerTag::BMP_STRING => {
            let (pairs, rest) = contents.as_chunks::<2>();
            let mut units: Vec<u16> = pairs.iter().map(|pair| u16::from_be_bytes(*pair)).collect();
            // A final NUL is a terminator and not part of the text.
            units.pop_if(|last| *last == 0);
            String::from_utf16(&units).ok().filter(|_| rest.is_empty())
        }
        _ => None,
    }
}
