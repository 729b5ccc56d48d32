//! One set of certificates and keys for several servers on one store.
//!
//! Servers that share nothing but a store do not know each other's users. With one set, a token or a
//! certificate is valid at each server, and clients trust each server. The names of the files are those of
//! kubeadm.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::admin_kubeconfig::build_kubeconfig_text;
use super::certificate_file::Certificate;
use super::issue_certificate::IssuingAuthority;
use super::server_names::ServerNames;
use super::{
    CertificateFiles, LeafCertificateIssuer, PkiError, PkiFileGenerator, missing_file_error,
    private_files, unusable_file_error,
};

const KUBECONFIG: &str = "admin.kubeconfig";

/// The files of the set.
const SHARED_FILES: [&str; 13] = [
    "admin.crt",
    "admin.key",
    KUBECONFIG,
    "apiserver.crt",
    "apiserver.key",
    "ca.crt",
    "ca.key",
    "front-proxy-ca.crt",
    "front-proxy-ca.key",
    "front-proxy-client.crt",
    "front-proxy-client.key",
    "sa.key",
    "sa.pub",
];

/// The inputs of [`create_shared_pki`].
#[derive(Debug, Clone)]
pub struct SharedPkiOptions {
    /// The directory of the set. It is created if it does not exist.
    pub directory: PathBuf,
    /// The URL of the servers in the kubeconfig of the administrator.
    pub server_url: String,
    /// The names and addresses by which clients reach the servers.
    pub server_names: ServerNames,
    /// The time from which the certificates are valid.
    pub current_time: SystemTime,
}

/// Creates the set: an authority, an authority of front proxies, keys of service accounts, a serving
/// certificate, and certificates of an administrator and of a front proxy. If it fails, it removes what it has
/// written.
///
/// # Errors
/// One of the files exists, other users can write to the directory, or a file cannot be written.
pub fn create_shared_pki(options: &SharedPkiOptions) -> Result<Vec<PathBuf>, PkiError> {
    let SharedPkiOptions { directory, server_url, server_names: names, current_time: now } =
        options;
    private_files::create_directory(directory)?;
    refuse_directory_writable_by_others(directory)?;
    for name in SHARED_FILES {
        let path = directory.join(name);
        if fs::symlink_metadata(&path).is_ok() {
            return Err(PkiError::Exists { path: path.display().to_string() });
        }
    }
    let mut generator =
        PkiFileGenerator { directory, current_time: *now, written_files: Vec::new() };
    match write_shared_pki_files(&mut generator, names, server_url) {
        Ok(()) => Ok(generator.written_files),
        Err(error) => {
            for path in &generator.written_files {
                // The first error is more useful than an error of the cleanup.
                let _ = fs::remove_file(path);
            }
            Err(error)
        }
    }
}

fn write_shared_pki_files(
    generator: &mut PkiFileGenerator<'_>,
    names: &ServerNames,
    server_url: &str,
) -> Result<(), PkiError> {
    let (ca, front_proxy_ca) = (
        generator.certificate_and_key_paths("ca"),
        generator.certificate_and_key_paths("front-proxy-ca"),
    );
    generator.ensure_ca(&ca)?;
    generator.ensure_named_ca(&front_proxy_ca, "portcullis-front-proxy-ca")?;
    generator.ensure_service_account_keys()?;
    ensure_leaf_certificates(generator, names)?;
    let admin = generator.certificate_and_key_paths("admin");
    let text = build_kubeconfig_text(server_url, &ca.certificate_path, &admin)?;
    let path = generator.directory.join(KUBECONFIG);
    generator.create_file(&path, text.as_bytes())?;
    match generator.written_files.len() == SHARED_FILES.len() {
        true => Ok(()),
        // Another process writes a set at the same time; this one leaves the files of the other.
        false => Err(PkiError::Exists { path: generator.directory.display().to_string() }),
    }
}

/// Renews the certificates of a set that expire soon, and the kubeconfig that contains one of them. The
/// authorities and all keys stay, so that servers need no restart: they read the serving certificate again by
/// themselves. Returns the files that changed.
///
/// # Errors
/// A file is missing or cannot be used or written.
pub fn renew_shared_pki(directory: &Path, now: SystemTime) -> Result<Vec<PathBuf>, PkiError> {
    for name in SHARED_FILES {
        let path = directory.join(name);
        private_files::refuse_symlink(&path)?;
        if !path.exists() {
            return Err(missing_file_error(&path, "it belongs to the set"));
        }
    }
    let mut generator =
        PkiFileGenerator { directory, current_time: now, written_files: Vec::new() };
    let apiserver = generator.certificate_and_key_paths("apiserver");
    let current = Certificate::read(&apiserver.certificate_path)?;
    let names = ServerNames::new(None, current.ip_addresses).with_dns_names(current.dns_names);
    ensure_leaf_certificates(&mut generator, &names)?;
    let (ca, admin) =
        (generator.certificate_and_key_paths("ca"), generator.certificate_and_key_paths("admin"));
    if generator.written_files.contains(&admin.certificate_path) {
        let path = directory.join(KUBECONFIG);
        let url = read_kubeconfig_server_url(&path)?;
        let text = build_kubeconfig_text(&url, &ca.certificate_path, &admin)?;
        private_files::replace_atomically(&path, text.as_bytes())?;
        generator.written_files.push(path);
    }
    Ok(generator.written_files)
}

/// Ensures the certificates that the authorities sign.
fn ensure_leaf_certificates(
    generator: &mut PkiFileGenerator<'_>,
    names: &ServerNames,
) -> Result<(), PkiError> {
    let (now, ca) = (generator.current_time, generator.certificate_and_key_paths("ca"));
    let front_proxy_ca = generator.certificate_and_key_paths("front-proxy-ca");
    let leaves: [(&str, &CertificateFiles, LeafCertificateIssuer<'_>); 3] = [
        ("apiserver", &ca, &|authority: &IssuingAuthority, key| {
            authority.issue_serving_certificate(key, names, now)
        }),
        ("admin", &ca, &|authority: &IssuingAuthority, key| {
            authority.issue_admin_certificate(key, now)
        }),
        ("front-proxy-client", &front_proxy_ca, &|authority: &IssuingAuthority, key| {
            authority.issue_client_certificate(key, "front-proxy-client", None, now)
        }),
    ];
    for (name, authority, issue) in leaves {
        let files = generator.certificate_and_key_paths(name);
        generator.ensure_leaf_certificate(authority, &files, &|_| true, issue)?;
    }
    Ok(())
}

/// The URL of the server in a kubeconfig that [`create_shared_pki`] wrote.
fn read_kubeconfig_server_url(path: &Path) -> Result<String, PkiError> {
    let text = private_files::read_text_file(path)?;
    let mut lines = text.lines().filter_map(|line| line.trim().strip_prefix("server: \""));
    let url = lines.next().and_then(|rest| rest.strip_suffix('"')).map(str::to_owned);
    url.ok_or_else(|| unusable_file_error(path, "it names no server".to_owned()))
}

/// A user who can write to the directory can replace the authority that all servers trust.
fn refuse_directory_writable_by_others(directory: &Path) -> Result<(), PkiError> {
    let found = fs::metadata(directory)
        .map_err(|source| PkiError::Directory { path: directory.display().to_string(), source })?;
    match found.permissions().mode() & 0o022 {
        0 => Ok(()),
        _ => Err(unusable_file_error(directory, "other users can write to it".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn options(directory: &Path) -> SharedPkiOptions {
        let names = ServerNames::new(None, ["192.0.2.7".parse().unwrap()]);
        SharedPkiOptions {
            directory: directory.to_owned(),
            server_url: "https://gate.example.com:6443".to_owned(),
            server_names: names.with_dns_names(["Gate.example.com".to_owned()]),
            current_time: SystemTime::UNIX_EPOCH + 20_000 * DAY,
        }
    }

    fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
        let read = |name: &&str| ((*name).to_owned(), fs::read(directory.join(name)).unwrap());
        SHARED_FILES.iter().map(read).collect()
    }

    #[test]
    fn a_set_is_for_its_owner_alone_and_is_never_overwritten() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("pki");
        let options = options(&directory);
        assert_eq!(create_shared_pki(&options).unwrap().len(), SHARED_FILES.len());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&directory), 0o700);
        for name in SHARED_FILES {
            assert_eq!(mode(&directory.join(name)), 0o600, "{name}");
        }
        let serving = Certificate::read(&directory.join("apiserver.crt")).unwrap();
        assert!(serving.covers_server_names(&options.server_names));
        assert!(serving.dns_names.contains(&"gate.example.com".to_owned()));

        // Even one file of a set is left alone, and nothing is written beside it.
        let before = files(&directory);
        let error = create_shared_pki(&options).unwrap_err();
        assert!(matches!(error, PkiError::Exists { .. }), "{error}");
        assert_eq!(files(&directory), before);
        let other = parent.path().join("other");
        private_files::create_directory(&other).unwrap();
        std::os::unix::fs::symlink("/nowhere", other.join("sa.key")).unwrap();
        let second = SharedPkiOptions { directory: other.clone(), ..options };
        assert!(matches!(create_shared_pki(&second), Err(PkiError::Exists { .. })));
        assert_eq!(fs::read_dir(&other).unwrap().count(), 1);
    }

    #[test]
    fn a_directory_that_others_can_write_to_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o770)).unwrap();
        let error = create_shared_pki(&options(directory.path())).unwrap_err();
        assert!(error.to_string().ends_with("other users can write to it"), "{error}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn certificates_are_renewed_and_keys_stay() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("pki");
        let options = options(&directory);
        create_shared_pki(&options).unwrap();
        assert!(renew_shared_pki(&directory, options.current_time + 300 * DAY).unwrap().is_empty());
        let before = files(&directory);
        let renewed = renew_shared_pki(&directory, options.current_time + 340 * DAY).unwrap();
        let names: Vec<_> =
            renewed.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(
            names,
            ["apiserver.crt", "admin.crt", "front-proxy-client.crt", "admin.kubeconfig"]
        );
        for ((name, old), (_, new)) in before.iter().zip(files(&directory)) {
            assert_eq!(names.contains(&name.as_str()), *old != new, "{name}");
        }
        let serving = Certificate::read(&directory.join("apiserver.crt")).unwrap();
        assert!(serving.covers_server_names(&options.server_names));
        let kubeconfig = fs::read_to_string(directory.join(KUBECONFIG)).unwrap();
        assert!(kubeconfig.contains(&options.server_url), "{kubeconfig}");
        fs::remove_file(directory.join("ca.key")).unwrap();
        let error = renew_shared_pki(&directory, options.current_time).unwrap_err();
        assert!(matches!(error, PkiError::Missing { .. }), "{error}");
    }
}
