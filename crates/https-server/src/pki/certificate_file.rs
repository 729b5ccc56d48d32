//! The contents of a certificate file.

use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, SubjectPublicKeyInfoDer};

use super::key_pair::KeyPair;
use super::private_files::read_text_file;
use super::server_names::ServerNames;
use super::{CertificateFiles, PkiError, unusable_file_error};

/// The first certificate of a file. The others are intermediate authorities.
pub(super) struct Certificate {
    pub(super) parsed: x509_verify::Certificate,
    pub(super) not_after: SystemTime,
    /// The DNS names in lower case.
    pub(super) dns_names: Vec<String>,
    pub(super) ip_addresses: Vec<IpAddr>,
}

impl Certificate {
    pub(super) fn read(path: &Path) -> Result<Self, PkiError> {
        let text = read_text_file(path)?;
        let der = CertificateDer::from_pem_slice(text.as_bytes()).map_err(|error| {
            unusable_file_error(path, format!("no certificate in PEM form: {error}"))
        })?;
        Self::from_der(&der)
            .ok_or_else(|| unusable_file_error(path, "the certificate is damaged".to_owned()))
    }

    pub(super) fn from_der(der: &CertificateDer<'_>) -> Option<Self> {
        let parsed = x509_verify::Certificate::parse(der).ok()?;
        let not_after = u64::try_from(parsed.not_after()).unwrap_or(0);
        Some(Self {
            not_after: SystemTime::UNIX_EPOCH + Duration::from_secs(not_after),
            dns_names: parsed.dns_names().iter().map(|name| name.to_ascii_lowercase()).collect(),
            ip_addresses: parsed.ip_addresses().collect(),
            parsed,
        })
    }

    pub(super) fn expires_before(&self, moment: SystemTime) -> bool {
        self.not_after < moment
    }

    pub(super) fn covers_server_names(&self, names: &ServerNames) -> bool {
        names.dns_names().iter().all(|name| self.dns_names.contains(name))
            && names.ip_addresses().iter().all(|address| self.ip_addresses.contains(address))
    }

    pub(super) fn check_is_ca(&self, path: &Path) -> Result<(), PkiError> {
        if self.parsed.is_ca() {
            return Ok(());
        }
        Err(unusable_file_error(path, "it is not the certificate of an authority".to_owned()))
    }

    pub(super) fn check_not_expired(&self, path: &Path, now: SystemTime) -> Result<(), PkiError> {
        if !self.expires_before(now) {
            return Ok(());
        }
        Err(unusable_file_error(path, "it has expired".to_owned()))
    }

    pub(super) fn check_issued_by(
        &self,
        path: &Path,
        authority: &Self,
        authority_path: &Path,
    ) -> Result<(), PkiError> {
        if self.parsed.is_signed_by(&authority.parsed) {
            return Ok(());
        }
        let by = authority_path.display();
        Err(unusable_file_error(
            path,
            format!("it is not signed by `{by}`; remove it to get a new one"),
        ))
    }

    pub(super) fn check_matches_key(
        &self,
        key: &KeyPair,
        files: &CertificateFiles,
    ) -> Result<(), PkiError> {
        if key.public_key_der() == self.parsed.public_key_der() {
            return Ok(());
        }
        let certificate = files.certificate_path.display();
        Err(unusable_file_error(&files.key, format!("it is not the key of `{certificate}`")))
    }
}

/// The public key in a PEM text, or `None` if there is none.
pub(super) fn public_key_der(pem: &str) -> Option<Vec<u8>> {
    SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes()).ok().map(|key| key.as_ref().to_vec())
}
