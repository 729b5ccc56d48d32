//! The reason why a certificate is not trusted, with the messages of Go.

use std::fmt;

use crate::certificate::MalformedCertificateError;
use crate::name_constraints::NameConstraintError;

/// The reason why a certificate is not trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// A presented certificate is malformed.
    #[error("x509: malformed certificate")]
    Malformed,
    /// The certificate has an unknown critical extension.
    #[error("x509: unhandled critical extension")]
    UnhandledCriticalExtension,
    /// The certificate is not valid yet.
    #[error("x509: certificate has expired or is not yet valid: it is not valid yet")]
    NotYetValid {
        /// The start of its validity, in seconds since 1970.
        not_before: i64,
    },
    /// The certificate has expired.
    #[error("x509: certificate has expired or is not yet valid: it has expired")]
    Expired {
        /// The end of its validity, in seconds since 1970.
        not_after: i64,
    },
    /// No chain leads to a trusted authority.
    #[error("x509: certificate signed by unknown authority{}", SigningFaultHint(.0))]
    UnknownAuthority(Option<SigningFault>),
    /// An authority signed it that is not valid at its position in the chain.
    #[error(transparent)]
    Issuer(IssuerFault),
    /// The certificate or an authority above it is for another usage.
    #[error("x509: certificate specifies an incompatible key usage")]
    IncompatibleUsage,
    /// An authority above it may not sign for its names.
    #[error(
        "x509: a root or intermediate certificate is not authorized to sign for this name: {0}"
    )]
    Name(NameConstraintError),
    /// An authority above it requires a policy. Policies are not supported.
    #[error("x509: no valid chains built: candidate chains with invalid policies")]
    Policy,
    /// The limit of signature checks was reached.
    #[error("x509: signature check attempts limit reached while verifying certificate chain")]
    SignatureLimit,
}

/// The reason why a candidate is not the issuer of a certificate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SigningFault {
    /// The candidate is no certificate authority, or its key usage forbids signing certificates.
    #[error("x509: invalid signature: parent certificate cannot sign this kind of certificate")]
    NotAnAuthority,
    /// The signature algorithm is insecure or unknown.
    #[error("x509: cannot verify signature: insecure or unsupported algorithm")]
    UnsupportedAlgorithm,
    /// The key of the candidate did not make the signature.
    #[error("x509: verification failure: the signature is not that of this authority")]
    BadSignature,
}

/// The reason why the issuer of a certificate is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IssuerFault {
    /// The issuer is an intermediate certificate and not a certificate authority.
    #[error("x509: certificate is not authorized to sign other certificates")]
    NotAuthorizedToSign,
    /// The chain exceeds the path length constraint of the issuer.
    #[error("x509: too many intermediates for path length constraint")]
    TooManyIntermediates,
    /// The issuer has a critical extension that this code does not handle.
    #[error("x509: unhandled critical extension")]
    UnhandledCriticalExtension,
    /// The issuer has expired or is not valid yet.
    #[error("x509: certificate has expired or is not yet valid")]
    OutsideValidity,
}

struct SigningFaultHint<'a>(&'a Option<SigningFault>);

impl fmt::Display for SigningFaultHint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => Ok(()),
            Some(fault) => write!(
                f,
                " (possibly because of \"{fault}\" while trying to verify candidate authority \
                 certificate)"
            ),
        }
    }
}

impl From<MalformedCertificateError> for VerifyError {
    fn from(MalformedCertificateError: MalformedCertificateError) -> Self {
        Self::Malformed
    }
}
