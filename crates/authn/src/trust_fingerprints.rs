//! The fingerprints of the authorities and keys that a server trusts.

use crate::authenticator::Authenticator;
use crate::client_certificate::CertificateAuthorities;

/// The fingerprints of everything that identifies users to a server, except for static tokens: a hash of a
/// token that a person chose could be guessed. Every list is in order and has no duplicates.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrustFingerprints {
    /// The SHA-256 hashes of the authorities of client certificates, as `AB:CD`.
    pub client_authority_fingerprints: Vec<String>,
    /// The SHA-256 hashes of the authorities of front proxies, as `AB:CD`.
    pub front_proxy_authority_fingerprints: Vec<String>,
    /// The ids of the keys that verify tokens of service accounts.
    pub service_account_key_ids: Vec<String>,
    /// The accepted issuers of tokens of service accounts.
    pub service_account_issuers: Vec<String>,
}

impl Authenticator {
    /// The fingerprints of everything that is trusted now. A reload of authorities changes them.
    pub fn trust_fingerprints(&self) -> TrustFingerprints {
        let authorities = self.trusted_authorities.current_authorities();
        let fingerprints = |own: Option<&CertificateAuthorities>| {
            own.map(|own| own.authority_fingerprints().to_vec()).unwrap_or_default()
        };
        let sorted = |mut texts: Vec<String>| {
            texts.sort_unstable();
            texts.dedup();
            texts
        };
        let accounts = self.service_account_verifier.as_ref();
        let keys = accounts.map_or(&[][..], |own| own.keys());
        let issuers = accounts.map_or(&[][..], |own| own.issuers());
        TrustFingerprints {
            client_authority_fingerprints: fingerprints(authorities.client_authorities.as_deref()),
            front_proxy_authority_fingerprints: fingerprints(
                authorities.proxy_authorities.as_deref(),
            ),
            service_account_key_ids: sorted(keys.iter().map(|key| key.id().to_owned()).collect()),
            service_account_issuers: sorted(issuers.to_vec()),
        }
    }
}
