//! X.509 client certificates: whether one may be trusted, and whom it names.

mod subject;

use jiff::Timestamp;
use rustls_pki_types::{CertificateDer, TrustAnchor, UnixTime};
use webpki::{
    EndEntityCert, ExtendedKeyUsageValidator, KeyPurposeId, KeyPurposeIdIter, KeyUsage,
    RequiredEkuNotFoundContext,
};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::FromDer;

pub(crate) use subject::{common_name, user};

/// The most certificates that are looked at in what a client presents. Real chains have two or
/// three, and searching for a path costs more with each.
pub const PRESENTED_CERTIFICATES_MAX: usize = 16;

const CLIENT_AUTH: KeyPurposeId<'static> = KeyPurposeId::new(&[43, 6, 1, 5, 5, 7, 3, 2]);
const ANY_USAGE: KeyPurposeId<'static> = KeyPurposeId::new(&[85, 29, 37, 0]);

/// Why a client certificate is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// No path to a trusted authority holds.
    #[error("verifying certificate {certificate} failed: {why}")]
    Untrusted {
        /// Serial number and key identifiers, as `SN=1, SKID=AB, AKID=CD`.
        certificate: String,
        /// What is wrong with it.
        why: String,
    },
    /// The certificate held when the connection began, and does not any more.
    #[error("verifying certificate failed: it is valid only until {until}")]
    Expired {
        /// When the path to the authority ceased to hold.
        until: Timestamp,
    },
    /// It can not be read.
    #[error("the certificate can not be parsed")]
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
    /// The certificate of a proxy has a name that is not on the list.
    #[error("x509: subject with cn={0} is not in the allowed list")]
    NameNotAllowed(String),
    /// More than [`PRESENTED_CERTIFICATES_MAX`] certificates were presented.
    #[error("more than {PRESENTED_CERTIFICATES_MAX} certificates were presented")]
    TooMany,
}

/// A certificate that can not be an authority.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("certificate {position} of the authorities can not be used: {why}")]
pub struct AuthorityError {
    /// Which of them, from 0.
    pub position: usize,
    /// Why.
    pub why: String,
}

/// When something holds, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Validity {
    pub(crate) not_before: Timestamp,
    pub(crate) not_after: Timestamp,
}

impl Validity {
    pub(crate) fn contains(&self, now: Timestamp) -> bool {
        self.not_before <= now && now <= self.not_after
    }

    fn intersect(self, other: Self) -> Self {
        Self {
            not_before: self.not_before.max(other.not_before),
            not_after: self.not_after.min(other.not_after),
        }
    }

    fn of(certificate: &X509Certificate<'_>) -> Option<Self> {
        let validity = certificate.validity();
        Some(Self {
            not_before: Timestamp::from_second(validity.not_before.timestamp()).ok()?,
            not_after: Timestamp::from_second(validity.not_after.timestamp()).ok()?,
        })
    }
}

/// The authorities that may vouch for clients.
#[derive(Debug)]
pub(crate) struct Authorities {
    anchors: Vec<(TrustAnchor<'static>, Validity)>,
}

impl Authorities {
    pub(crate) fn new(certificates: &[CertificateDer<'_>]) -> Result<Self, AuthorityError> {
        let anchors = certificates.iter().enumerate().map(|(position, certificate)| {
            let failed = |why: String| AuthorityError { position, why };
            let anchor = webpki::anchor_from_trusted_cert(certificate)
                .map_err(|error| failed(error.to_string()))?
                .to_owned();
            let validity = parse(certificate)
                .and_then(|parsed| Validity::of(&parsed))
                .ok_or_else(|| failed("its validity can not be read".to_owned()))?;
            Ok((anchor, validity))
        });
        Ok(Self { anchors: anchors.collect::<Result<_, _>>()? })
    }

    /// Searches a path from the first of the presented certificates, by way of the others, to an
    /// authority, and says how long all of it holds.
    pub(crate) fn verify(
        &self,
        presented: &[CertificateDer<'_>],
        now: Timestamp,
    ) -> Result<Validity, CertificateError> {
        let (leaf, others) = presented.split_first().ok_or(CertificateError::Malformed)?;
        if presented.len() > PRESENTED_CERTIFICATES_MAX {
            return Err(CertificateError::TooMany);
        }
        let parsed = parse(leaf).ok_or(CertificateError::Malformed)?;
        let untrusted =
            |why: String| CertificateError::Untrusted { certificate: identifier(&parsed), why };
        let validity = Validity::of(&parsed).ok_or(CertificateError::Malformed)?;
        // The verifier below takes authorities to be valid for ever.
        let anchors: Vec<TrustAnchor<'_>> = self
            .anchors
            .iter()
            .filter(|(_, validity)| validity.contains(now))
            .map(|(anchor, _)| anchor.clone())
            .collect();
        let end_entity =
            EndEntityCert::try_from(leaf).map_err(|error| untrusted(error.to_string()))?;
        let path = end_entity
            .verify_for_usage(
                webpki::ALL_VERIFICATION_ALGS,
                &anchors,
                others,
                unix_time(now),
                ClientAuth,
                None,
                None,
            )
            .map_err(|error| untrusted(error.to_string()))?;
        let intermediates = path
            .intermediate_certificates()
            .map(|certificate| parse(&certificate.der()).and_then(|parsed| Validity::of(&parsed)));
        let anchor = self.anchors.iter().find(|(anchor, _)| anchor == path.anchor());
        intermediates
            .chain([anchor.map(|(_, validity)| *validity)])
            .try_fold(validity, |all, one| Some(all.intersect(one?)))
            .ok_or(CertificateError::Malformed)
    }
}

/// A certificate may be used by clients if it says so, says nothing, or says that it may be used
/// for anything.
struct ClientAuth;

impl ExtendedKeyUsageValidator for ClientAuth {
    fn validate(&self, usages: KeyPurposeIdIter<'_, '_>) -> Result<(), webpki::Error> {
        let mut present = Vec::new();
        for usage in usages {
            let usage = usage?;
            if usage == CLIENT_AUTH || usage == ANY_USAGE {
                return Ok(());
            }
            present.push(usage.to_decoded_oid());
        }
        if present.is_empty() {
            return Ok(());
        }
        let required = KeyUsage::client_auth();
        let context = RequiredEkuNotFoundContext { required, present };
        Err(webpki::Error::RequiredEkuNotFoundContext(context))
    }
}

/// The certificate, if it is one and nothing follows it.
pub(crate) fn parse<'c>(certificate: &'c CertificateDer<'_>) -> Option<X509Certificate<'c>> {
    match X509Certificate::from_der(certificate.as_ref()) {
        Ok(([], parsed)) => Some(parsed),
        _ => None,
    }
}

/// Times before 1970 become 1970: no certificate that matters is older.
fn unix_time(now: Timestamp) -> UnixTime {
    let seconds = u64::try_from(now.as_second()).unwrap_or_default();
    UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds))
}

fn identifier(certificate: &X509Certificate<'_>) -> String {
    let (mut subject, mut authority) = (String::new(), String::new());
    for extension in certificate.extensions() {
        match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(id) => subject = hex_pairs(id.0),
            ParsedExtension::AuthorityKeyIdentifier(id) => {
                authority =
                    id.key_identifier.as_ref().map(|id| hex_pairs(id.0)).unwrap_or_default();
            }
            _ => {}
        }
    }
    format!("SN={}, SKID={subject}, AKID={authority}", certificate.serial)
}

/// Upper-case hexadecimal digits, as `AB:CD`.
fn hex_pairs(bytes: &[u8]) -> String {
    let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    pairs.join(":")
}

#[cfg(test)]
mod tests;
