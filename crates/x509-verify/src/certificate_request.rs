//! PKCS #10 certificate signing requests.

use crate::der::{self, DerReader, DerTag};
use crate::distinguished_name::{self, COMMON_NAME, ORGANIZATION};
use crate::signature::{PublicKey, SignatureFault, SignedData};

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

/// Reads the user that a subject names. Other string types than those of Go make the request malformed.
fn read_subject(subject: DerReader<'_>) -> Option<CertificateRequest> {
    let attributes = distinguished_name::read_attributes(subject)?;
    let common_names = distinguished_name::attribute_texts(&attributes, COMMON_NAME)?;
    Some(CertificateRequest {
        organizations: distinguished_name::attribute_texts(&attributes, ORGANIZATION)?,
        common_name: common_names.into_iter().next_back().unwrap_or_default(),
    })
}
