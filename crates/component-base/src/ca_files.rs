//! Reloads the CA bundles of clients and of front proxies while the server runs.
//!
//! A CA that an administrator removes from a file must not be trusted any longer. Files are polled and
//! compared by content, so that reloading does not depend on file system events.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use authn::AuthorityKind;
use https_server::{FileReadError, WatchedFiles};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use crate::log::Log;

/// The CA bundles that were read at the start.
#[derive(Debug, Clone, Default)]
pub struct CaFiles {
    /// The CA bundle for client certificates, PEM.
    pub client_ca_file: Option<PathBuf>,
    /// The CA bundle for front-proxy client certificates, PEM.
    pub requestheader_client_ca_file: Option<PathBuf>,
    /// The interval between two reads of the files; zero disables reloading.
    pub ca_reload_interval: Duration,
}

/// A file cannot replace the CA bundle that was read before.
#[derive(Debug, thiserror::Error)]
enum CaReloadError {
    #[error("{error}: {}", error.source)]
    Read { error: FileReadError },
    #[error("`{path}` is not PEM: {reason}")]
    Pem { path: String, reason: String },
    #[error("`{path}`: {error}")]
    Authorities { path: String, error: authn::AuthenticatorOptionsError },
}

/// The parts of a program that the reload of CA files changes or reports to.
pub struct CaReload {
    /// Replaces the authorities of one kind.
    pub replace_authorities: ReplaceAuthorities,
    /// Counts a reload, by the name of the flag and by `success` or `failure`.
    pub count_reload: CountReload,
    /// The log for changed and unusable files.
    pub log: Log,
}

/// Counts a reload, by the name of the flag and by its result.
type CountReload = Box<dyn Fn(&str, &str) + Send + Sync>;

/// Replaces all authorities of one kind, or fails and changes nothing.
type ReplaceAuthorities = Box<
    dyn Fn(AuthorityKind, &[CertificateDer<'_>]) -> Result<(), authn::AuthenticatorOptionsError>
        + Send
        + Sync,
>;

struct WatchedCaFile {
    kind: AuthorityKind,
    watched_files: WatchedFiles,
    /// The last error, which is not logged again.
    last_logged_error: String,
    was_read_before: bool,
}

/// Reads both files periodically and replaces the CAs that the server trusts. If a file cannot be used, the
/// earlier CAs stay in use and the error is logged once.
pub async fn reload_ca_files_periodically(reload: CaReload, files: CaFiles) {
    let watched = |kind, path: Option<PathBuf>| {
        let files = WatchedFiles::new(path.into_iter().collect());
        WatchedCaFile {
            kind,
            watched_files: files,
            last_logged_error: String::new(),
            was_read_before: false,
        }
    };
    let mut all = [
        watched(AuthorityKind::Clients, files.client_ca_file),
        watched(AuthorityKind::Proxies, files.requestheader_client_ca_file),
    ];
    if files.ca_reload_interval.is_zero()
        || all.iter().all(|file| file.watched_files.watched_paths().is_empty())
    {
        return;
    }
    let reload = Arc::new(reload);
    loop {
        let task_reload = Arc::clone(&reload);
        let reading = tokio::task::spawn_blocking(move || {
            for file in &mut all {
                file.reload_ca_file(&task_reload);
            }
            all
        });
        // The join fails only when the runtime shuts down.
        let Ok(read) = reading.await else { return };
        all = read;
        tokio::time::sleep(files.ca_reload_interval).await;
    }
}

impl WatchedCaFile {
    fn reload_ca_file(&mut self, reload: &CaReload) {
        let name = match self.kind {
            AuthorityKind::Clients => "client-ca-file",
            AuthorityKind::Proxies => "requestheader-client-ca-file",
        };
        let count = |status| (reload.count_reload)(name, status);
        match self.replace_ca_if_changed(reload) {
            Ok(false) => self.last_logged_error.clear(),
            Ok(true) => {
                self.last_logged_error.clear();
                count("success");
                // The server has already read the file at its start, so the first read here is not logged.
                if self.was_read_before {
                    reload.log.notice("a CA file was reloaded", &[("file", &name)]);
                }
            }
            Err(error) => {
                let error = error.to_string();
                if error != self.last_logged_error {
                    count("failure");
                    let message = "a CA file cannot be reloaded, the earlier CAs stay in use";
                    reload.log.error(message, &[("file", &name), ("why", &error)]);
                }
                self.last_logged_error = error;
            }
        }
        self.was_read_before = true;
    }

    /// Returns whether the file has changed.
    fn replace_ca_if_changed(&mut self, reload: &CaReload) -> Result<bool, CaReloadError> {
        let Some(path) = self.watched_files.watched_paths().first() else { return Ok(false) };
        let path = path.display().to_string();
        let Some(contents) =
            self.watched_files.read_if_changed().map_err(|error| CaReloadError::Read { error })?
        else {
            return Ok(false);
        };
        let pem = contents.first().map(Vec::as_slice).unwrap_or_default();
        let certificates = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
        let certificates = certificates.map_err(|error| CaReloadError::Pem {
            path: path.clone(),
            reason: error.to_string(),
        })?;
        (reload.replace_authorities)(self.kind, &certificates)
            .map_err(|error| CaReloadError::Authorities { path, error })?;
        Ok(true)
    }
}
