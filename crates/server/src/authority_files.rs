//! The files of authorities, which are read again while the server runs.
//!
//! An administrator who removes an authority counts on its being gone. Files are looked at in
//! intervals and compared by content, so nothing depends on notices of the file system.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use authn::AuthorityKind;
use https_server::{ReadError, WatchedFiles};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use crate::server_state::ServerState;

/// The files that authorities were read from at the start.
#[derive(Debug, Clone, Default)]
pub struct AuthorityFiles {
    /// The authorities of clients, PEM.
    pub clients: Option<PathBuf>,
    /// The authorities of proxies that name users in headers, PEM.
    pub proxies: Option<PathBuf>,
    /// How often the files are looked at; zero does not look at them.
    pub reload_every: Duration,
}

/// Why a file can not take the place of what was read before.
#[derive(Debug, thiserror::Error)]
enum ReloadError {
    #[error("{error}: {}", error.source)]
    Read { error: ReadError },
    #[error("`{path}` is not PEM: {reason}")]
    Pem { path: String, reason: String },
    #[error("`{path}`: {source}")]
    Authorities { path: String, source: authn::OptionsError },
}

struct Followed {
    kind: AuthorityKind,
    files: WatchedFiles,
    last_fault: String,
    has_looked: bool,
}

/// Reads both files again and again, and puts what they hold in the place of what the server
/// trusts. A file that can not be used leaves the authorities that there are, and is reported once.
pub(crate) async fn follow_authorities<S: Send + Sync + 'static>(
    server: Arc<ServerState<S>>,
    files: AuthorityFiles,
) {
    let followed = |kind, path: Option<PathBuf>| {
        let files = WatchedFiles::new(path.into_iter().collect());
        Followed { kind, files, last_fault: String::new(), has_looked: false }
    };
    let mut all = [
        followed(AuthorityKind::Clients, files.clients),
        followed(AuthorityKind::Proxies, files.proxies),
    ];
    if files.reload_every.is_zero() || all.iter().all(|own| own.files.paths().is_empty()) {
        return;
    }
    loop {
        let own = Arc::clone(&server);
        let looked = tokio::task::spawn_blocking(move || {
            for followed in &mut all {
                followed.reload(&own);
            }
            all
        });
        // It fails only when the runtime ends.
        let Ok(back) = looked.await else { return };
        all = back;
        tokio::time::sleep(files.reload_every).await;
    }
}

impl Followed {
    fn reload<S>(&mut self, server: &ServerState<S>) {
        let name = match self.kind {
            AuthorityKind::Clients => "client-ca-file",
            AuthorityKind::Proxies => "requestheader-client-ca-file",
        };
        let count = |status| {
            server.metrics.authority_reloads.with_label_values(&[name, status]).inc();
        };
        match self.read(server) {
            Ok(false) => self.last_fault.clear(),
            Ok(true) => {
                self.last_fault.clear();
                count("success");
                // The first look repeats the one of the start, which is no news.
                if self.has_looked {
                    server.log.notice("the authorities were read again", &[("file", &name)]);
                }
            }
            Err(error) => {
                let fault = error.to_string();
                if fault != self.last_fault {
                    count("failure");
                    let message = "the authorities can not be read again, the old ones stay";
                    server.log.error(message, &[("file", &name), ("why", &fault)]);
                }
                self.last_fault = fault;
            }
        }
        self.has_looked = true;
    }

    /// Says whether there was something new.
    fn read<S>(&mut self, server: &ServerState<S>) -> Result<bool, ReloadError> {
        let Some(path) = self.files.paths().first() else { return Ok(false) };
        let path = path.display().to_string();
        let Some(contents) =
            self.files.read_if_changed().map_err(|error| ReloadError::Read { error })?
        else {
            return Ok(false);
        };
        let pem = contents.first().map(Vec::as_slice).unwrap_or_default();
        let certificates = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
        let certificates = certificates
            .map_err(|error| ReloadError::Pem { path: path.clone(), reason: error.to_string() })?;
        server
            .authenticator
            .replace_authorities(self.kind, &certificates)
            .map_err(|source| ReloadError::Authorities { path, source })?;
        Ok(true)
    }
}
