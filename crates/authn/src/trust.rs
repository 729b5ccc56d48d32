//! The authorities that vouch for clients and proxies, and their replacement while the server runs.

use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls_pki_types::CertificateDer;

use crate::certificate::{Authorities, AuthorityError};
use crate::options::OptionsError;

/// The authorities of one moment. Both kinds are replaced as a whole, so that no certificate is ever
/// judged by half of a file.
#[derive(Debug, Clone)]
pub(crate) struct CertificateTrust {
    /// Grows with every replacement.
    pub(crate) generation: u64,
    /// `None` if certificates of clients are not looked at.
    pub(crate) clients: Option<Arc<Authorities>>,
    /// `None` if no proxy is trusted.
    pub(crate) proxies: Option<Arc<Authorities>>,
}

/// Whom authorities vouch for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AuthorityKind {
    /// Clients: `--client-ca-file`.
    Clients,
    /// Proxies that name users in headers: `--requestheader-client-ca-file`.
    Proxies,
}

/// The authorities in use.
#[derive(Debug)]
pub(crate) struct CurrentTrust(ArcSwap<CertificateTrust>);

impl CurrentTrust {
    pub(crate) fn new(
        clients: &[CertificateDer<'_>],
        proxies: Option<&[CertificateDer<'_>]>,
    ) -> Result<Self, OptionsError> {
        let clients = match clients {
            [] => None,
            some => Some(Arc::new(authorities(AuthorityKind::Clients, some)?)),
        };
        let proxies = match proxies {
            None => None,
            Some([]) => return Err(OptionsError::NoFrontProxyAuthority),
            Some(some) => Some(Arc::new(authorities(AuthorityKind::Proxies, some)?)),
        };
        Ok(Self(ArcSwap::from_pointee(CertificateTrust { generation: 1, clients, proxies })))
    }

    pub(crate) fn load(&self) -> Arc<CertificateTrust> {
        self.0.load_full()
    }

    pub(crate) fn generation(&self) -> u64 {
        self.0.load().generation
    }

    /// Puts these in the place of those that there are, or changes nothing.
    pub(crate) fn replace(
        &self,
        kind: AuthorityKind,
        certificates: &[CertificateDer<'_>],
    ) -> Result<(), OptionsError> {
        if certificates.is_empty() {
            return Err(match kind {
                AuthorityKind::Clients => OptionsError::NoClientAuthority,
                AuthorityKind::Proxies => OptionsError::NoFrontProxyAuthority,
            });
        }
        let new = Arc::new(authorities(kind, certificates)?);
        self.0.rcu(|current| {
            let mut next = CertificateTrust::clone(current);
            next.generation += 1;
            match kind {
                AuthorityKind::Clients => next.clients = Some(Arc::clone(&new)),
                AuthorityKind::Proxies => next.proxies = Some(Arc::clone(&new)),
            }
            next
        });
        Ok(())
    }
}

fn authorities(
    kind: AuthorityKind,
    certificates: &[CertificateDer<'_>],
) -> Result<Authorities, OptionsError> {
    let failed = |error: AuthorityError| match kind {
        AuthorityKind::Clients => OptionsError::ClientAuthority(error),
        AuthorityKind::Proxies => OptionsError::FrontProxyAuthority(error),
    };
    Authorities::new(certificates).map_err(failed)
}
