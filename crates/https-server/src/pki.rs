//! The files by which the server and its first client know each other.
//!
//! A data directory gets them on the first start, each written whole or not at all. Later starts
//! use them, complete what a crash left out, and renew what is about to expire. A file that can not
//! be used is an error that names it: replacing it could lock out everybody who trusts it.

mod certificate;
mod files;
mod issue;
mod kubeconfig;
mod names;
mod renew;

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::KeyPair;

use self::certificate::Certificate;
use self::issue::Authority;
use crate::watched_files::ReadError;

pub use self::kubeconfig::write_kubeconfig;
pub use self::names::{ServerNames, host_name};
pub use self::renew::keep_renewing;

/// How long before its end a certificate is renewed.
const RENEW_BEFORE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The files that a server makes in its data directory.
pub const OWN_FILES: [&str; 9] = [
    "admin.crt",
    "admin.key",
    "admin.kubeconfig",
    "apiserver.crt",
    "apiserver.key",
    "ca.crt",
    "ca.key",
    "sa.key",
    "sa.pub",
];

/// What the files of a server depend on.
#[derive(Debug, Clone)]
pub struct PkiOptions {
    /// The data directory. It is created if it does not exist.
    pub directory: PathBuf,
    /// By which names and addresses clients reach the server.
    pub names: ServerNames,
    /// What the operator brings along.
    pub supplied: Supplied,
    /// The moment by which certificates are judged and from which new ones are valid.
    pub now: SystemTime,
}

/// Files of the operator. They are used in place of generated ones, and never written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Supplied {
    /// What the server shows to clients.
    pub serving: Option<CertificateFiles>,
    /// The authorities whose client certificates count. No certificate for an administrator is
    /// made then, since nobody would accept it.
    pub client_ca: Option<PathBuf>,
    /// The key that signs tokens of service accounts.
    pub service_account_key: Option<PathBuf>,
}

/// A certificate, perhaps with those that lead to its authority, and its key, in PEM form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificates, the own one first.
    pub certificate: PathBuf,
    /// The private key of the first certificate.
    pub key: PathBuf,
}

/// Files that exist and were found usable; those of the operator were not looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pki {
    /// The data directory.
    pub directory: PathBuf,
    /// What the server shows to clients.
    pub serving: CertificateFiles,
    /// What clients should trust in order to accept it.
    pub trust: PathBuf,
    /// The authorities whose client certificates count.
    pub client_ca: PathBuf,
    /// The administrator's client certificate, unless the operator has an own authority.
    pub admin: Option<CertificateFiles>,
    /// The key that signs tokens of service accounts.
    pub service_account_key: PathBuf,
    /// The other half of that key, unless the operator brought it along.
    pub service_account_public_key: Option<PathBuf>,
    /// The files that did not exist before or were renewed, in order.
    pub written: Vec<PathBuf>,
}

/// Why the files can not be used or made.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// The data directory can not be made.
    #[error("can not create directory `{path}`")]
    Directory {
        /// The directory.
        path: String,
        /// What the system says.
        source: io::Error,
    },
    /// A file can not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file can not be written.
    #[error("can not write `{path}`")]
    Write {
        /// The file.
        path: String,
        /// What the system says.
        source: io::Error,
    },
    /// A file exists and is not what it should be. It was left as it is.
    #[error("`{path}` can not be used: {reason}")]
    Unusable {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A file is needed that can not be made from those that are there.
    #[error("`{path}` is missing: {reason}")]
    Missing {
        /// The file.
        path: String,
        /// What it is needed for.
        reason: &'static str,
    },
    /// A key or certificate can not be made.
    #[error("can not make `{path}`: {reason}")]
    Make {
        /// The file that it would have been written to.
        path: String,
        /// What the library says.
        reason: String,
    },
}

/// Makes sure that every file is there that `options` ask for.
///
/// For each pair: a key that is missing together with its certificate is made; a certificate that
/// is missing is issued for its key, since a crash between the two leaves this; a key that is
/// missing beside its certificate is an error. The key of the authority is wanted only when
/// something is to be issued, so that it can be kept elsewhere.
///
/// While the server runs, [`keep_renewing`] renews what is about to expire; the certificate in use
/// follows when it is reloaded.
///
/// # Errors
/// [`PkiError`] naming the file that can not be used, read or written.
pub fn prepare(options: &PkiOptions) -> Result<Pki, PkiError> {
    let PkiOptions { directory, names, supplied, now } = options;
    files::create_directory(directory)?;
    for name in OWN_FILES {
        files::refuse_link(&directory.join(name))?;
    }
    let mut maker = Maker { directory, now: *now, written: Vec::new() };
    let own_ca = maker.pair("ca");
    if supplied.serving.is_none() || supplied.client_ca.is_none() {
        maker.authority(&own_ca)?;
    }
    let (serving, trust) = match &supplied.serving {
        Some(files) => (files.clone(), files.certificate.clone()),
        None => {
            let files = maker.pair("apiserver");
            let is_good = |certificate: &Certificate| certificate.names_all(names);
            maker.leaf(&own_ca, &files, &is_good, &|authority, key| {
                authority.issue_serving(key, names, *now)
            })?;
            (files, own_ca.certificate.clone())
        }
    };
    let (client_ca, admin) = match &supplied.client_ca {
        Some(file) => (file.clone(), None),
        None => {
            let files = maker.pair("admin");
            maker.leaf(&own_ca, &files, &|_| true, &|authority, key| {
                authority.issue_admin(key, *now)
            })?;
            (own_ca.certificate.clone(), Some(files))
        }
    };
    let (service_account_key, service_account_public_key) = match &supplied.service_account_key {
        Some(file) => (file.clone(), None),
        None => {
            let (key, public) = maker.service_account_keys()?;
            (key, Some(public))
        }
    };
    let Maker { written, .. } = maker;
    Ok(Pki {
        directory: directory.clone(),
        serving,
        trust,
        client_ca,
        admin,
        service_account_key,
        service_account_public_key,
        written,
    })
}

/// Makes files in one directory and remembers which.
struct Maker<'a> {
    directory: &'a Path,
    now: SystemTime,
    written: Vec<PathBuf>,
}

/// What a certificate for a key is, signed by an authority.
type Issue<'a> = &'a dyn Fn(&Authority, &KeyPair) -> Result<String, rcgen::Error>;

impl Maker<'_> {
    fn pair(&self, name: &str) -> CertificateFiles {
        CertificateFiles {
            certificate: self.directory.join(format!("{name}.crt")),
            key: self.directory.join(format!("{name}.key")),
        }
    }

    /// The authority's own files. Its key may be absent.
    fn authority(&mut self, ca: &CertificateFiles) -> Result<(), PkiError> {
        if !ca.certificate.exists() {
            let key = self.key(&ca.key)?;
            let pem = issue::self_signed(&key, self.now)
                .map_err(|error| make_error(&ca.certificate, &error))?;
            self.create(&ca.certificate, pem.as_bytes())?;
        }
        let certificate = Certificate::read(&ca.certificate)?;
        certificate.check_is_authority(&ca.certificate)?;
        certificate.check_not_expired(&ca.certificate, self.now)
    }

    /// A certificate that the authority signed, renewed if its time is almost up or it no longer
    /// `is_good`. The key stays the same, so that a renewal replaces a single file.
    fn leaf(
        &mut self,
        ca: &CertificateFiles,
        files: &CertificateFiles,
        is_good: &dyn Fn(&Certificate) -> bool,
        issue: Issue<'_>,
    ) -> Result<(), PkiError> {
        let ca_certificate = Certificate::read(&ca.certificate)?;
        if files.certificate.exists() {
            let certificate = Certificate::read(&files.certificate)?;
            certificate.check_issued_by(&files.certificate, &ca_certificate, &ca.certificate)?;
            let key = existing_key(&files.key, "its certificate exists")?;
            certificate.check_key(&key, files)?;
            if is_good(&certificate) && !certificate.expires_before(self.now + RENEW_BEFORE) {
                return Ok(());
            }
            let pem = self.issue(ca, &ca_certificate, &key, files, issue)?;
            files::replace(&files.certificate, pem.as_bytes())?;
            self.written.push(files.certificate.clone());
            return Ok(());
        }
        let key = self.key(&files.key)?;
        let pem = self.issue(ca, &ca_certificate, &key, files, issue)?;
        self.create(&files.certificate, pem.as_bytes())
    }

    fn issue(
        &self,
        ca: &CertificateFiles,
        ca_certificate: &Certificate,
        key: &KeyPair,
        files: &CertificateFiles,
        issue: Issue<'_>,
    ) -> Result<String, PkiError> {
        let ca_key = existing_key(&ca.key, "a certificate has to be issued")?;
        ca_certificate.check_key(&ca_key, ca)?;
        Authority::new(ca_certificate, ca_key)
            .and_then(|authority| issue(&authority, key))
            .map_err(|error| make_error(&files.certificate, &error))
    }

    /// The key in a file, which is made if it does not exist.
    fn key(&mut self, path: &Path) -> Result<KeyPair, PkiError> {
        if !path.exists() {
            let key = issue::new_key().map_err(|error| make_error(path, &error))?;
            self.create(path, key.serialize_pem().as_bytes())?;
        }
        existing_key(path, "it was just written")
    }

    fn service_account_keys(&mut self) -> Result<(PathBuf, PathBuf), PkiError> {
        let (private, public) = (self.directory.join("sa.key"), self.directory.join("sa.pub"));
        if public.exists() && !private.exists() {
            return Err(missing(&private, "its public half exists"));
        }
        let key = self.key(&private)?;
        let pem = key.public_key_pem();
        if !public.exists() {
            self.create(&public, pem.as_bytes())?;
        }
        let found = files::read_text(&public)?;
        if certificate::public_key_der(&found) != certificate::public_key_der(&pem) {
            let reason = format!("it is not the public half of `{}`", private.display());
            return Err(unusable(&public, reason));
        }
        Ok((private, public))
    }

    /// Writes a file that does not exist. If another process was faster, its file stands.
    fn create(&mut self, path: &Path, contents: &[u8]) -> Result<(), PkiError> {
        if files::create(path, contents)? {
            self.written.push(path.to_owned());
        }
        Ok(())
    }
}

/// Puts a file in the place of another, for its owner alone. Readers see the one or the other.
///
/// # Errors
/// The system refuses.
pub fn replace_file(path: &Path, contents: &[u8]) -> io::Result<()> {
    files::replace(path, contents).map_err(io::Error::other)
}

fn existing_key(path: &Path, reason: &'static str) -> Result<KeyPair, PkiError> {
    if !path.exists() {
        return Err(missing(path, reason));
    }
    let text = files::read_text(path)?;
    KeyPair::from_pem(&text)
        .map_err(|error| unusable(path, format!("no private key in PKCS #8 PEM form: {error}")))
}

fn unusable(path: &Path, reason: String) -> PkiError {
    PkiError::Unusable { path: path.display().to_string(), reason }
}

fn missing(path: &Path, reason: &'static str) -> PkiError {
    PkiError::Missing { path: path.display().to_string(), reason }
}

fn make_error(path: &Path, error: &rcgen::Error) -> PkiError {
    PkiError::Make { path: path.display().to_string(), reason: error.to_string() }
}

#[cfg(test)]
mod tests;
