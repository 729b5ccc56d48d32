//! Why a certificate is not trusted, in the words of Go.

use std::fmt;

use crate::certificate::MalformedError;

/// Why a certificate is not trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// One of the certificates that were presented can not be read.
    #[error("x509: malformed certificate")]
    Malformed,
    /// The certificate says something that must not be ignored and that nobody understands.
    #[error("x509: unhandled critical extension")]
    UnhandledCriticalExtension,
    /// It is too early.
    #[error("x509: certificate has expired or is not yet valid: it is not valid yet")]
    NotYetValid {
        /// From when on it is valid, in seconds since 1970.
        not_before: i64,
    },
    /// It is too late.
    #[error("x509: certificate has expired or is not yet valid: it has expired")]
    Expired {
        /// Until when it was valid, in seconds since 1970.
        not_after: i64,
    },
    /// No path to a trusted authority holds.
    #[error("x509: certificate signed by unknown authority{}", Hint(.0))]
    UnknownAuthority(Option<SigningFault>),
    /// An authority has signed it that may not be where it stands in the chain.
    #[error(transparent)]
    Issuer(IssuerFault),
    /// It is for something else, or an authority above it is.
    #[error("x509: certificate specifies an incompatible key usage")]
    IncompatibleUsage,
    /// An authority above it may not vouch for its names.
    #[error(
        "x509: a root or intermediate certificate is not authorized to sign for this name: {0}"
    )]
    Name(String),
    /// An authority above it demands a policy. No policy is followed here.
    #[error("x509: no valid chains built: candidate chains with invalid policies")]
    Policy,
    /// Too many certificates had to be tried.
    #[error("x509: signature check attempts limit reached while verifying certificate chain")]
    SignatureLimit,
}

/// Why an authority that could have signed a certificate does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SigningFault {
    /// It is no authority, or may not sign certificates.
    #[error("x509: invalid signature: parent certificate cannot sign this kind of certificate")]
    NotAnAuthority,
    /// The signature is of an algorithm that is not believed or not known.
    #[error("x509: cannot verify signature: insecure or unsupported algorithm")]
    UnsupportedAlgorithm,
    /// Its key did not make the signature.
    #[error("x509: verification failure: the signature is not that of this authority")]
    BadSignature,
}

/// Why an authority that has signed a certificate does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IssuerFault {
    /// It is an intermediate and no authority.
    #[error("x509: certificate is not authorized to sign other certificates")]
    NotAuthorizedToSign,
    /// More certificates are below it than it allows.
    #[error("x509: too many intermediates for path length constraint")]
    TooManyIntermediates,
    /// It says something that must not be ignored and that nobody understands.
    #[error("x509: unhandled critical extension")]
    UnhandledCriticalExtension,
    /// It is not valid at this time.
    #[error("x509: certificate has expired or is not yet valid")]
    OutOfTime,
}

struct Hint<'a>(&'a Option<SigningFault>);

impl fmt::Display for Hint<'_> {
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

impl From<MalformedError> for VerifyError {
    fn from(MalformedError: MalformedError) -> Self {
        Self::Malformed
    }
}
