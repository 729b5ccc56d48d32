//! The certificates and keys of the server and its first client.
//!
//! The first start generates them in the data directory, each file atomically. Later starts use
//! them, complete what a crash left out, and renew certificates that expire soon. A file that
//! cannot be used is an error that names it: replacing it could lock out every client that trusts it.

mod admin_kubeconfig;
mod certificate_file;
mod certificate_renewal;
mod host_addresses;
mod issue_certificate;
mod key_pair;
mod private_files;
mod server_names;
mod shared_pki;

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use self::certificate_file::Certificate;
use self::issue_certificate::{IssueError, IssuingAuthority};
use self::key_pair::KeyPair;
use crate::watched_files::FileReadError;

pub use self::admin_kubeconfig::write_admin_kubeconfig;
pub use self::certificate_renewal::renew_certificates_periodically;
pub use self::host_addresses::host_addresses;
pub use self::server_names::{ServerNames, host_name};
pub use self::shared_pki::{SharedPkiOptions, create_shared_pki, renew_shared_pki};

/// How long before its expiry a certificate is renewed.
const RENEW_BEFORE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The files that a server generates in its data directory.
pub const GENERATED_FILES: [&str; 9] = [
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

/// The inputs of [`prepare_pki_files`].
#[derive(Debug, Clone)]
pub struct PkiOptions {
    /// The data directory. It is created if it does not exist.
    pub directory: PathBuf,
    /// The names and addresses by which clients reach the server.
    pub server_names: ServerNames,
    /// Files that the operator provides.
    pub operator_pki_files: OperatorPkiFiles,
    /// The time at which certificates are checked and from which new ones are valid.
    pub current_time: SystemTime,
}

/// Files of the operator, which replace generated ones. The server never writes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperatorPkiFiles {
    /// The certificate that the server presents to clients.
    pub serving_certificate: Option<CertificateFiles>,
    /// The authorities of client certificates. With them, no certificate for an administrator is
    /// generated, because no authority would accept it.
    pub client_ca_file: Option<PathBuf>,
    /// The key that signs tokens of service accounts.
    pub service_account_key_file: Option<PathBuf>,
}

/// The PEM files of a certificate chain and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate, followed by those of its intermediate authorities.
    pub certificate_path: PathBuf,
    /// The private key of the first certificate.
    pub key: PathBuf,
}

/// The paths of all files. Generated files exist and are valid; those of the operator were not
/// read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PkiFiles {
    /// The data directory, which holds the generated files.
    pub directory: PathBuf,
    /// The certificate that the server presents to clients.
    pub serving_certificate: CertificateFiles,
    /// The certificates that clients should trust in order to accept it.
    pub serving_ca_file: PathBuf,
    /// The authorities of client certificates.
    pub client_ca_file: PathBuf,
    /// The administrator's client certificate, unless the operator provides the client authorities.
    pub admin_certificate: Option<CertificateFiles>,
    /// The key that signs tokens of service accounts.
    pub service_account_key_file: PathBuf,
    /// The public half of that key, unless the operator provides the key.
    pub service_account_public_key_file: Option<PathBuf>,
    /// The files that were created or renewed, in order.
    pub written_files: Vec<PathBuf>,
}

/// Why a file cannot be used or generated.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// The data directory cannot be created.
    #[error("cannot create directory `{path}`")]
    Directory {
        /// The path of the directory.
        path: String,
        /// The error of the system.
        source: io::Error,
    },
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] FileReadError),
    /// A file cannot be written.
    #[error("cannot write `{path}`")]
    Write {
        /// The path of the file.
        path: String,
        /// The error of the system.
        source: io::Error,
    },
    /// A file exists and is not what it should be. It was left unchanged.
    #[error("`{path}` cannot be used: {reason}")]
    Unusable {
        /// The path of the file.
        path: String,
        /// The reason why the file cannot be used.
        reason: String,
    },
    /// A file is missing and cannot be derived from the existing ones.
    #[error("`{path}` is missing: {reason}")]
    Missing {
        /// The path of the file.
        path: String,
        /// The purpose of the file.
        reason: &'static str,
    },
    /// A file exists that would be overwritten. Nothing was written.
    #[error("`{path}` exists already, and keys that servers may use are never overwritten")]
    Exists {
        /// The path of the file.
        path: String,
    },
    /// A key or certificate cannot be generated.
    #[error("cannot make `{path}`: {reason}")]
    Make {
        /// The file that it would have been written to.
        path: String,
        /// The error of the library.
        reason: String,
    },
}

/// Ensures that every file exists that `options` ask for. For each pair of key and certificate:
///
/// 1. If both are missing, both are generated.
/// 2. If the certificate is missing, it is issued for the existing key: a crash between the two
///    writes leaves this state.
/// 3. If the key is missing beside its certificate, that is an error.
///
/// The key of the authority is read only when a certificate is issued, so that it can be stored
/// elsewhere. While the server runs, [`renew_certificates_periodically`] renews certificates that expire soon,
/// and the reload of the serving certificate picks them up.
///
/// # Errors
/// [`PkiError`] naming the file that cannot be used, read or written.
pub fn prepare_pki_files(options: &PkiOptions) -> Result<PkiFiles, PkiError> {
    let PkiOptions {
        directory,
        server_names: names,
        operator_pki_files: operator_files,
        current_time: now,
    } = options;
    private_files::create_directory(directory)?;
    for name in GENERATED_FILES {
        private_files::refuse_symlink(&directory.join(name))?;
    }
    let mut generator =
        PkiFileGenerator { directory, current_time: *now, written_files: Vec::new() };
    let own_ca = generator.certificate_and_key_paths("ca");
    if operator_files.serving_certificate.is_none() || operator_files.client_ca_file.is_none() {
        generator.ensure_ca(&own_ca)?;
    }
    let (serving_certificate, serving_ca) = match &operator_files.serving_certificate {
        Some(files) => (files.clone(), files.certificate_path.clone()),
        None => {
            let files = generator.certificate_and_key_paths("apiserver");
            let is_good = |certificate: &Certificate| certificate.covers_server_names(names);
            generator.ensure_leaf_certificate(&own_ca, &files, &is_good, &|authority, key| {
                authority.issue_serving_certificate(key, names, *now)
            })?;
            (files, own_ca.certificate_path.clone())
        }
    };
    let (client_ca, admin_certificate) = match &operator_files.client_ca_file {
        Some(file) => (file.clone(), None),
        None => {
            let files = generator.certificate_and_key_paths("admin");
            generator.ensure_leaf_certificate(&own_ca, &files, &|_| true, &|authority, key| {
                authority.issue_admin_certificate(key, *now)
            })?;
            (own_ca.certificate_path.clone(), Some(files))
        }
    };
    let (service_account_key, service_account_public_key) =
        match &operator_files.service_account_key_file {
            Some(file) => (file.clone(), None),
            None => {
                let (key, public) = generator.ensure_service_account_keys()?;
                (key, Some(public))
            }
        };
    let PkiFileGenerator { written_files, .. } = generator;
    Ok(PkiFiles {
        directory: directory.clone(),
        serving_certificate,
        serving_ca_file: serving_ca,
        client_ca_file: client_ca,
        admin_certificate,
        service_account_key_file: service_account_key,
        service_account_public_key_file: service_account_public_key,
        written_files,
    })
}

/// Generates files in one directory and records which.
struct PkiFileGenerator<'a> {
    directory: &'a Path,
    current_time: SystemTime,
    written_files: Vec<PathBuf>,
}

/// Issues a certificate for a key, signed by an authority.
type LeafCertificateIssuer<'a> =
    &'a dyn Fn(&IssuingAuthority, &KeyPair) -> Result<String, IssueError>;

impl PkiFileGenerator<'_> {
    fn certificate_and_key_paths(&self, name: &str) -> CertificateFiles {
        CertificateFiles {
            certificate_path: self.directory.join(format!("{name}.crt")),
            key: self.directory.join(format!("{name}.key")),
        }
    }

    /// Ensures that the certificate of the authority exists. Its key may be absent.
    fn ensure_ca(&mut self, ca: &CertificateFiles) -> Result<(), PkiError> {
        self.ensure_named_ca(ca, "portcullis-ca")
    }

    fn ensure_named_ca(&mut self, ca: &CertificateFiles, name: &str) -> Result<(), PkiError> {
        if !ca.certificate_path.exists() {
            let key = self.ensure_key(&ca.key)?;
            let pem = issue_certificate::issue_self_signed_ca(&key, name, self.current_time)
                .map_err(|error| certificate_generation_error(&ca.certificate_path, &error))?;
            self.create_file(&ca.certificate_path, pem.as_bytes())?;
        }
        let certificate = Certificate::read(&ca.certificate_path)?;
        certificate.check_is_ca(&ca.certificate_path)?;
        certificate.check_not_expired(&ca.certificate_path, self.current_time)
    }

    /// Ensures that a certificate exists that the authority signed, and renews it if it expires
    /// soon or is no longer `is_good`. The key stays the same, so that a renewal replaces a single
    /// file.
    fn ensure_leaf_certificate(
        &mut self,
        ca: &CertificateFiles,
        files: &CertificateFiles,
        is_good: &dyn Fn(&Certificate) -> bool,
        issue: LeafCertificateIssuer<'_>,
    ) -> Result<(), PkiError> {
        let ca_certificate = Certificate::read(&ca.certificate_path)?;
        if files.certificate_path.exists() {
            let certificate = Certificate::read(&files.certificate_path)?;
            certificate.check_issued_by(
                &files.certificate_path,
                &ca_certificate,
                &ca.certificate_path,
            )?;
            let key = read_existing_key(&files.key, "its certificate exists")?;
            certificate.check_matches_key(&key, files)?;
            if is_good(&certificate)
                && !certificate.expires_before(self.current_time + RENEW_BEFORE)
            {
                return Ok(());
            }
            let pem = self.issue_leaf_certificate(ca, &ca_certificate, &key, files, issue)?;
            private_files::replace_atomically(&files.certificate_path, pem.as_bytes())?;
            self.written_files.push(files.certificate_path.clone());
            return Ok(());
        }
        let key = self.ensure_key(&files.key)?;
        let pem = self.issue_leaf_certificate(ca, &ca_certificate, &key, files, issue)?;
        self.create_file(&files.certificate_path, pem.as_bytes())
    }

    fn issue_leaf_certificate(
        &self,
        ca: &CertificateFiles,
        ca_certificate: &Certificate,
        key: &KeyPair,
        files: &CertificateFiles,
        issue: LeafCertificateIssuer<'_>,
    ) -> Result<String, PkiError> {
        let ca_key = read_existing_key(&ca.key, "a certificate has to be issued")?;
        ca_certificate.check_matches_key(&ca_key, ca)?;
        issue(&IssuingAuthority::new(ca_certificate, ca_key), key)
            .map_err(|error| certificate_generation_error(&files.certificate_path, &error))
    }

    /// Reads the key in a file, and generates it if it does not exist.
    fn ensure_key(&mut self, path: &Path) -> Result<KeyPair, PkiError> {
        if !path.exists() {
            let key = KeyPair::generate_pem()
                .map_err(|error| certificate_generation_error(path, &error))?;
            self.create_file(path, key.as_bytes())?;
        }
        read_existing_key(path, "it was just written")
    }

    fn ensure_service_account_keys(&mut self) -> Result<(PathBuf, PathBuf), PkiError> {
        let (private, public) = (self.directory.join("sa.key"), self.directory.join("sa.pub"));
        if public.exists() && !private.exists() {
            return Err(missing_file_error(&private, "its public half exists"));
        }
        let key = self.ensure_key(&private)?;
        let pem = key.public_key_pem();
        if !public.exists() {
            self.create_file(&public, pem.as_bytes())?;
        }
        let found = private_files::read_text_file(&public)?;
        if certificate_file::public_key_der(&found) != certificate_file::public_key_der(&pem) {
            let reason = format!("it is not the public half of `{}`", private.display());
            return Err(unusable_file_error(&public, reason));
        }
        Ok((private, public))
    }

    /// Writes a file that does not exist. If another process was faster, its file stays.
    fn create_file(&mut self, path: &Path, contents: &[u8]) -> Result<(), PkiError> {
        if private_files::create_file_if_absent(path, contents)? {
            self.written_files.push(path.to_owned());
        }
        Ok(())
    }
}

/// Replaces a file atomically, readable for its owner only.
///
/// # Errors
/// The system cannot write or rename the file.
pub fn replace_private_file(path: &Path, contents: &[u8]) -> io::Result<()> {
    private_files::replace_atomically(path, contents).map_err(io::Error::other)
}

fn read_existing_key(path: &Path, reason: &'static str) -> Result<KeyPair, PkiError> {
    if !path.exists() {
        return Err(missing_file_error(path, reason));
    }
    let text = private_files::read_text_file(path)?;
    KeyPair::from_pem(&text).map_err(|error| {
        unusable_file_error(path, format!("no private key in PKCS #8 PEM form: {error}"))
    })
}

fn unusable_file_error(path: &Path, reason: String) -> PkiError {
    PkiError::Unusable { path: path.display().to_string(), reason }
}

fn missing_file_error(path: &Path, reason: &'static str) -> PkiError {
    PkiError::Missing { path: path.display().to_string(), reason }
}

fn certificate_generation_error(path: &Path, error: &IssueError) -> PkiError {
    PkiError::Make { path: path.display().to_string(), reason: error.to_string() }
}

#[cfg(test)]
mod tests;
