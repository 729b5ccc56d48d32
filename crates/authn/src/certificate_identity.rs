//! The identity that the certificates of one connection prove.

use std::sync::Arc;

use authz::User;
use jiff::Timestamp;
use rustls_pki_types::CertificateDer;
use x509_verify::Certificate;

use crate::client_certificate::{self, CertificateAuthorities, CertificateError, ValidityPeriod};
use crate::last_token_cache::LastTokenCache;
use crate::well_known_identities::add_authenticated_group;

/// The identity that the certificates of one connection prove. It is computed when the connection
/// begins and used for each request until the authorities change.
#[derive(Debug, Default)]
pub struct CertificateIdentity {
    /// The generation of the authorities that verified the certificates.
    pub(crate) generation: u64,
    /// Whether the peer is a front proxy that may name users.
    pub(crate) front_proxy_check: CertificateCheck<()>,
    /// The user that the certificate names, with the group `system:authenticated`.
    pub(crate) client_certificate_check: CertificateCheck<Arc<User>>,
    /// The cache of the last valid token that the connection presented.
    pub(crate) last_token_cache: LastTokenCache,
}

impl CertificateIdentity {
    /// The user that the client certificate names; `None` if there is no certificate or it names no user.
    ///
    /// # Errors
    /// The certificate is not valid, or is not valid any more.
    pub fn client_user(&self, now: Timestamp) -> Result<Option<&Arc<User>>, CertificateError> {
        self.client_certificate_check.value_if_valid_at(now)
    }
}

/// The result of checking the certificate of a connection for one purpose.
#[derive(Debug, Clone, Default)]
pub(crate) enum CertificateCheck<T> {
    /// The peer presented no certificate, the certificate names no user, or no authority is configured.
    #[default]
    NotPresented,
    /// The certificate is not valid.
    Rejected(CertificateError),
    /// The certificate proves this value while the chain is valid.
    Verified(T, ValidityPeriod),
}

impl<T> CertificateCheck<T> {
    fn from_verification_result(
        result: Result<Option<(T, ValidityPeriod)>, CertificateError>,
    ) -> Self {
        match result {
            Ok(None) => Self::NotPresented,
            Ok(Some((value, validity))) => Self::Verified(value, validity),
            Err(error) => Self::Rejected(error),
        }
    }

    /// The proved value, if the certificate is valid at `now`.
    pub(crate) fn value_if_valid_at(&self, now: Timestamp) -> Result<Option<&T>, CertificateError> {
        match self {
            Self::NotPresented => Ok(None),
            Self::Rejected(error) => Err(error.clone()),
            Self::Verified(value, validity) if validity.contains(now) => Ok(Some(value)),
            Self::Verified(_, validity) => {
                Err(CertificateError::Expired { until: validity.not_after })
            }
        }
    }
}

/// Checks whether a peer is a front proxy with one of the allowed names; an empty list allows every name.
pub(crate) fn check_front_proxy_certificate(
    authorities: &CertificateAuthorities,
    allowed_names: &[String],
    presented: &[CertificateDer<'_>],
    now: Timestamp,
) -> CertificateCheck<()> {
    let Some(leaf) = presented.first() else { return CertificateCheck::NotPresented };
    CertificateCheck::from_verification_result(authorities.verify_chain(presented, now).and_then(
        |validity| {
            let parsed = Certificate::parse(leaf).map_err(|_| CertificateError::Malformed)?;
            let name = client_certificate::common_name(&parsed)?;
            if allowed_names.is_empty() || allowed_names.contains(&name) {
                Ok(Some(((), validity)))
            } else {
                Err(CertificateError::NameNotAllowed(name))
            }
        },
    ))
}

/// Checks which user the certificate of a peer names.
pub(crate) fn check_client_certificate(
    authorities: &CertificateAuthorities,
    presented: &[CertificateDer<'_>],
    now: Timestamp,
) -> CertificateCheck<Arc<User>> {
    let Some(leaf) = presented.first() else { return CertificateCheck::NotPresented };
    CertificateCheck::from_verification_result(authorities.verify_chain(presented, now).and_then(
        |validity| {
            let parsed = Certificate::parse(leaf).map_err(|_| CertificateError::Malformed)?;
            let user = client_certificate::user_from_subject(&parsed)?;
            Ok(user.map(|user| {
                let mut user = Arc::new(user);
                add_authenticated_group(&mut user);
                (user, validity)
            }))
        },
    ))
}
