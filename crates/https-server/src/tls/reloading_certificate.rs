//! The serving certificate, reloaded from its files while the server runs.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::{TlsError, crypto_provider};
use crate::pki::CertificateFiles;
use crate::watched_files::WatchedFiles;

/// A certificate with its key. Handshakes use the last valid pair.
#[derive(Debug)]
pub struct ReloadingCertificate {
    certificate_files: CertificateFiles,
    current_certified_key: ArcSwap<CertifiedKey>,
    /// Locked while files are read, so that reloads run one after the other.
    watched_files: Mutex<WatchedFiles>,
}

impl ReloadingCertificate {
    /// Reads the pair for the first time.
    ///
    /// # Errors
    /// [`TlsError`] if the files hold no usable pair.
    pub fn load(files: CertificateFiles) -> Result<Self, TlsError> {
        let mut watched =
            WatchedFiles::new(vec![files.certificate_path.clone(), files.key.clone()]);
        let contents = watched.read_if_changed()?.unwrap_or_default();
        let pair = parse_certified_key(&files, &contents)?;
        Ok(Self {
            certificate_files: files,
            current_certified_key: ArcSwap::from_pointee(pair),
            watched_files: Mutex::new(watched),
        })
    }

    /// Reads the files again if they changed, and reports whether there is a new pair. A bad pair
    /// leaves the old one in use and is reported once; this includes a pair of which only one file
    /// has been replaced so far.
    ///
    /// # Errors
    /// [`TlsError`] if the changed files hold no usable pair.
    pub fn reload_if_changed(&self) -> Result<bool, TlsError> {
        let mut watched = self.watched_files.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(contents) = watched.read_if_changed()? else {
            return Ok(false);
        };
        self.current_certified_key
            .store(Arc::new(parse_certified_key(&self.certificate_files, &contents)?));
        Ok(true)
    }

    /// Reloads at each interval while the future is polled. `report` receives every new pair, and
    /// every error that differs from the previous one.
    pub async fn reload_periodically(
        self: Arc<Self>,
        interval: Duration,
        report: impl Fn(Result<(), &TlsError>),
    ) {
        let mut last_fault = String::new();
        loop {
            tokio::time::sleep(interval).await;
            let this = Arc::clone(&self);
            // A reload that panics or is cancelled at shutdown says nothing about the files.
            let Ok(outcome) = tokio::task::spawn_blocking(move || this.reload_if_changed()).await
            else {
                continue;
            };
            match outcome {
                Ok(true) => {
                    last_fault.clear();
                    report(Ok(()));
                }
                Ok(false) => {}
                Err(error) => {
                    let fault = error.to_string();
                    if fault != last_fault {
                        report(Err(&error));
                        last_fault = fault;
                    }
                }
            }
        }
    }

    /// The certificates of the current pair, the server's own first.
    pub fn certificate_chain(&self) -> Vec<CertificateDer<'static>> {
        self.current_certified_key.load().cert.clone()
    }
}

impl ResolvesServerCert for ReloadingCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current_certified_key.load_full())
    }
}

/// Parses the contents of the certificate file and of the key file, in this order.
fn parse_certified_key(
    files: &CertificateFiles,
    contents: &[Vec<u8>],
) -> Result<CertifiedKey, TlsError> {
    let [certificate, key] = contents else {
        return Err(TlsError::Pair {
            certificate: files.certificate_path.display().to_string(),
            key: files.key.display().to_string(),
            reason: "nothing was read".to_owned(),
        });
    };
    let no_certificate = |reason: String| TlsError::Certificate {
        path: files.certificate_path.display().to_string(),
        reason,
    };
    let chain = CertificateDer::pem_slice_iter(certificate)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| no_certificate(error.to_string()))?;
    if chain.is_empty() {
        return Err(no_certificate("no section `CERTIFICATE`".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| TlsError::Key {
        path: files.key.display().to_string(),
        reason: error.to_string(),
    })?;
    let unusable_pair = |reason: String| TlsError::Pair {
        certificate: files.certificate_path.display().to_string(),
        key: files.key.display().to_string(),
        reason,
    };
    if let Some(leaf) = chain.first() {
        x509_verify::Certificate::check_version(leaf)
            .map_err(|error| unusable_pair(error.to_string()))?;
    }
    CertifiedKey::from_der(chain, key, &crypto_provider())
        .map_err(|error| unusable_pair(error.to_string()))
}
