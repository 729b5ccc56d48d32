//! The contents of a certificate file.

use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rcgen::{KeyPair, PublicKeyData};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, SubjectPublicKeyInfoDer};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;

use super::private_files::read_text_file;
use super::server_names::ServerNames;
use super::{CertificateFiles, PkiError, unusable_file_error};

/// The first certificate of a file. The others are intermediate authorities.
///
/// INVARIANT: `certificate_der` parses as a certificate.
pub(super) struct Certificate {
    pub(super) certificate_der: CertificateDer<'static>,
    pub(super) not_after: SystemTime,
    pub(super) dns_names: Vec<String>,
    pub(super) ip_addresses: Vec<IpAddr>,
    is_ca: bool,
    public_key_bytes: Vec<u8>,
}

impl Certificate {
    pub(super) fn read(path: &Path) -> Result<Self, PkiError> {
        let text = read_text_file(path)?;
        let der = CertificateDer::from_pem_slice(text.as_bytes())
            .map_err(|error| {
                unusable_file_error(path, format!("no certificate in PEM form: {error}"))
            })?
            .into_owned();
        let parsed = parse_x509(&der)
            .ok_or_else(|| unusable_file_error(path, "the certificate is damaged".to_owned()))?;
        let names = match parsed.subject_alternative_name() {
            Ok(Some(extension)) => extension.value.general_names.as_slice(),
            Ok(None) | Err(_) => &[],
        };
        let dns_names = names.iter().filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
            _ => None,
        });
        let addresses = names.iter().filter_map(|name| match name {
            GeneralName::IPAddress(bytes) => parse_ip_address(bytes),
            _ => None,
        });
        let not_after = parsed.validity().not_after.timestamp();
        Ok(Self {
            not_after: SystemTime::UNIX_EPOCH
                + Duration::from_secs(u64::try_from(not_after).unwrap_or(0)),
            is_ca: parsed.is_ca(),
            dns_names: dns_names.collect(),
            ip_addresses: addresses.collect(),
            public_key_bytes: parsed.public_key().raw.to_vec(),
            certificate_der: der.clone(),
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
        if self.is_ca {
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
        let is_issued =
            match (parse_x509(&self.certificate_der), parse_x509(&authority.certificate_der)) {
                (Some(own), Some(authority)) => {
                    own.verify_signature(Some(authority.public_key())).is_ok()
                }
                (Some(_) | None, Some(_) | None) => false,
            };
        if is_issued {
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
        if key.subject_public_key_info() == self.public_key_bytes {
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

fn parse_x509<'a>(der: &'a CertificateDer<'_>) -> Option<X509Certificate<'a>> {
    X509Certificate::from_der(der).ok().map(|(_, certificate)| certificate)
}

fn parse_ip_address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        return Some(IpAddr::from(v4));
    }
    <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from)
}
