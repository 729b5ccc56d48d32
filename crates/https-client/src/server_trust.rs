//! The certificates of servers that a client accepts.

use std::sync::{Arc, OnceLock};

use x509_verify::{CaBundle, Certificate, Roots};

/// The certificates of servers that a client accepts.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerTrust {
    /// Certificates that chain to a CA of the system. The process loads these once.
    System,
    /// Certificates that chain to a CA of this bundle, and no others.
    CaBundle(CaBundle),
    /// Every certificate: an attacker on the network path can read and answer everything. The peer must
    /// still hold the key of the certificate that it presents.
    DangerousAcceptAny,
}

/// Loads the CAs of the system once. A system without CAs is not an error here. Every handshake then fails with a
/// message that says so.
pub(crate) fn system_roots() -> Arc<Roots> {
    static SYSTEM: OnceLock<Arc<Roots>> = OnceLock::new();
    let load = || {
        let loaded = rustls_native_certs::load_native_certs().certs;
        Arc::new(Roots::new(loaded.iter().filter_map(|der| Certificate::parse(der).ok())))
    };
    Arc::clone(SYSTEM.get_or_init(load))
}

#[cfg(test)]
mod tests {
    use fake_http::Authority;
    use x509_verify::CaBundleError;

    use super::*;

    #[test]
    fn contents_of_ca_bundles() {
        let authority = Authority::new("ca").unwrap();
        let key = authority.issue(&fake_http::Leaf::client("x")).unwrap().key_pem;
        let pem = format!("# a comment\n{key}\n{}", authority.pem());
        assert_eq!(CaBundle::from_pem(pem.as_bytes()).unwrap().certificates().len(), 1);
        assert_eq!(CaBundle::from_pem(b"").unwrap_err(), CaBundleError::NotPem);
        assert_eq!(CaBundle::from_pem(b"abc").unwrap_err(), CaBundleError::NotPem);
        assert_eq!(CaBundle::from_pem(key.as_bytes()).unwrap_err(), CaBundleError::NoCertificate);
        let junk = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert_eq!(CaBundle::from_pem(junk).unwrap_err(), CaBundleError::Malformed);
    }
}
