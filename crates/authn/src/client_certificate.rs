//! Verification of X.509 client certificates.

mod certificate_subject;

use jiff::Timestamp;
use ring::digest;
use rustls_pki_types::CertificateDer;
use x509_verify::{Certificate, CertificateUsage, Roots};

pub(crate) use certificate_subject::{common_name, user_from_subject};

/// Upper bound on the certificates that a client may present. Real chains have two or three, and
/// the cost of the path search grows with each.
pub const PRESENTED_CERTIFICATES_MAX: usize = 16;

/// Why a client certificate is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// No valid path leads to a trusted authority.
    #[error("verifying certificate {certificate} failed: {reason}")]
    Untrusted {
        /// Serial number and key identifiers, as `SN=1, SKID=AB, AKID=CD`.
        certificate: String,
        /// The fault that the verifier found.
        reason: String,
    },
    /// The certificate was valid when the connection began and has expired since.
    #[error("verifying certificate failed: it is valid only until {until}")]
    Expired {
        /// The end of the validity of the path to the authority.
        until: Timestamp,
    },
    /// The certificate is not valid DER.
    #[error("the certificate cannot be parsed")]
    Malformed,
    /// A name in the subject is not text.
    #[error("the subject of the certificate has a name that is not a string")]
    SubjectNotText,
    /// The uid in the subject is not text.
    #[error("unable to parse UID into a string")]
    UidNotText,
    /// The subject has several uids.
    #[error("expected 1 UID, but found multiple: [{}]", .0.join(" "))]
    SeveralUids(Vec<String>),
    /// The subject has an empty uid.
    #[error("UID cannot be an empty string")]
    EmptyUid,
    /// The common name of a proxy's certificate is not on the list of allowed names.
    #[error("x509: subject with cn={0} is not in the allowed list")]
    NameNotAllowed(String),
    /// More than [`PRESENTED_CERTIFICATES_MAX`] certificates were presented.
    #[error("more than {PRESENTED_CERTIFICATES_MAX} certificates were presented")]
    TooMany,
}

/// A configured CA certificate cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("certificate {authority_index} of the authorities cannot be used: {reason}")]
pub struct AuthorityError {
    /// The index of the certificate, from 0.
    pub authority_index: usize,
    /// The fault that the parser found.
    pub reason: String,
}

/// A period of validity, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ValidityPeriod {
    pub(crate) not_before: Timestamp,
    pub(crate) not_after: Timestamp,
}

impl ValidityPeriod {
    pub(crate) fn contains(&self, now: Timestamp) -> bool {
        self.not_before <= now && now <= self.not_after
    }
}

/// Certificate authorities that may sign client certificates.
#[derive(Debug)]
pub(crate) struct CertificateAuthorities {
    trusted_roots: Roots,
    /// The SHA-256 hashes of the certificates, as openssl prints them, in order and without duplicates.
    authority_fingerprints: Vec<String>,
}

impl CertificateAuthorities {
    pub(crate) fn new(certificates: &[CertificateDer<'_>]) -> Result<Self, AuthorityError> {
        let parsed = certificates.iter().enumerate().map(|(authority_index, certificate)| {
            let failed = |reason: String| AuthorityError { authority_index, reason };
            Certificate::parse(certificate).map_err(|error| failed(error.to_string()))
        });
        let roots = Roots::new(parsed.collect::<Result<Vec<_>, _>>()?);
        let hash = |own: &CertificateDer<'_>| digest::digest(&digest::SHA256, own);
        let mut fingerprints: Vec<String> =
            certificates.iter().map(|own| format_hex_pairs(hash(own).as_ref())).collect();
        fingerprints.sort_unstable();
        fingerprints.dedup();
        Ok(Self { trusted_roots: roots, authority_fingerprints: fingerprints })
    }

    pub(crate) fn authority_fingerprints(&self) -> &[String] {
        &self.authority_fingerprints
    }

    /// Searches a path from the first presented certificate, through the others, to an authority,
    /// and returns the period in which the whole path is valid.
    pub(crate) fn verify_chain(
        &self,
        presented: &[CertificateDer<'_>],
        now: Timestamp,
    ) -> Result<ValidityPeriod, CertificateError> {
        let leaf = presented.first().ok_or(CertificateError::Malformed)?;
        if presented.len() > PRESENTED_CERTIFICATES_MAX {
            return Err(CertificateError::TooMany);
        }
        let parsed = Certificate::parse(leaf).map_err(|_| CertificateError::Malformed)?;
        let untrusted = |reason: String| CertificateError::Untrusted {
            certificate: describe_certificate(&parsed),
            reason,
        };
        let validity = self
            .trusted_roots
            .verify_chain(presented, CertificateUsage::ClientAuth, now.as_second())
            .map_err(|error| untrusted(error.to_string()))?;
        let validity = ValidityPeriod {
            not_before: Timestamp::from_second(validity.not_before).unwrap_or(Timestamp::MIN),
            not_after: Timestamp::from_second(validity.not_after).unwrap_or(Timestamp::MAX),
        };
        // The verifier compares whole seconds; this comparison includes fractions.
        match validity.contains(now) {
            true => Ok(validity),
            false => Err(CertificateError::Expired { until: validity.not_after }),
        }
    }
}

fn describe_certificate(certificate: &Certificate) -> String {
    format!(
        "SN={}, SKID={}, AKID={}",
        certificate.serial_number_text(),
        format_hex_pairs(certificate.subject_key_id()),
        format_hex_pairs(certificate.authority_key_id())
    )
}

/// Upper-case hexadecimal digits, as `AB:CD`.
fn format_hex_pairs(bytes: &[u8]) -> String {
    let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    pairs.join(":")
}

#[cfg(test)]
mod tests;
