//! The authorities of clients and front proxies, which are replaced while the server runs.

use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls_pki_types::CertificateDer;

use crate::authenticator_options::AuthenticatorOptionsError;
use crate::client_certificate::{AuthorityError, CertificateAuthorities};

/// One immutable set of authorities. A reload replaces all authorities of one kind at once, so no
/// certificate is verified with half of a file.
#[derive(Debug, Clone)]
pub(crate) struct AuthoritySnapshot {
    /// Incremented by every replacement.
    pub(crate) generation: u64,
    /// `None` if client certificates are ignored.
    pub(crate) client_authorities: Option<Arc<CertificateAuthorities>>,
    /// `None` if no proxy is trusted.
    pub(crate) proxy_authorities: Option<Arc<CertificateAuthorities>>,
}

/// The two kinds of certificate authorities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AuthorityKind {
    /// Authorities of clients: `--client-ca-file`.
    Clients,
    /// Authorities of front proxies: `--requestheader-client-ca-file`.
    Proxies,
}

/// The current authorities, behind one pointer.
#[derive(Debug)]
pub(crate) struct TrustedAuthorities(ArcSwap<AuthoritySnapshot>);

impl TrustedAuthorities {
    pub(crate) fn new(
        clients: &[CertificateDer<'_>],
        proxies: Option<&[CertificateDer<'_>]>,
    ) -> Result<Self, AuthenticatorOptionsError> {
        let client_authorities = match clients {
            [] => None,
            some => Some(Arc::new(build_authorities(AuthorityKind::Clients, some)?)),
        };
        let proxy_authorities = match proxies {
            None => None,
            Some([]) => return Err(AuthenticatorOptionsError::NoFrontProxyAuthority),
            Some(some) => Some(Arc::new(build_authorities(AuthorityKind::Proxies, some)?)),
        };
        Ok(Self(ArcSwap::from_pointee(AuthoritySnapshot {
            generation: 1,
            client_authorities,
            proxy_authorities,
        })))
    }

    pub(crate) fn current_authorities(&self) -> Arc<AuthoritySnapshot> {
        self.0.load_full()
    }

    pub(crate) fn generation(&self) -> u64 {
        self.0.load().generation
    }

    /// Replaces all authorities of one kind, or changes nothing on error.
    pub(crate) fn replace_authorities(
        &self,
        kind: AuthorityKind,
        certificates: &[CertificateDer<'_>],
    ) -> Result<(), AuthenticatorOptionsError> {
        if certificates.is_empty() {
            return Err(match kind {
                AuthorityKind::Clients => AuthenticatorOptionsError::NoClientAuthority,
                AuthorityKind::Proxies => AuthenticatorOptionsError::NoFrontProxyAuthority,
            });
        }
        let new = Arc::new(build_authorities(kind, certificates)?);
        self.0.rcu(|current| {
            let mut next = AuthoritySnapshot::clone(current);
            next.generation += 1;
            match kind {
                AuthorityKind::Clients => next.client_authorities = Some(Arc::clone(&new)),
                AuthorityKind::Proxies => next.proxy_authorities = Some(Arc::clone(&new)),
            }
            next
        });
        Ok(())
    }
}

fn build_authorities(
    kind: AuthorityKind,
    certificates: &[CertificateDer<'_>],
) -> Result<CertificateAuthorities, AuthenticatorOptionsError> {
    let failed = |error: AuthorityError| match kind {
        AuthorityKind::Clients => AuthenticatorOptionsError::ClientAuthority(error),
        AuthorityKind::Proxies => AuthenticatorOptionsError::FrontProxyAuthority(error),
    };
    CertificateAuthorities::new(certificates).map_err(failed)
}
