//! The kubeconfig of the administrator.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{CertificateFiles, PkiError, PkiFiles, private_files};
use crate::watched_files::read;

/// Writes `admin.kubeconfig` for a server at `address`, unless it already has this content. An
/// unspecified address is replaced by loopback. Returns the path, or `None` if there is no
/// certificate for an administrator.
///
/// # Errors
/// [`PkiError`] if an input file cannot be read, or the kubeconfig cannot be written.
pub fn write_admin_kubeconfig(
    pki: &PkiFiles,
    address: SocketAddr,
) -> Result<Option<PathBuf>, PkiError> {
    let Some(admin) = &pki.admin_certificate else {
        return Ok(None);
    };
    let path = pki.directory.join("admin.kubeconfig");
    let server = format!("https://{}", reachable_server_address(address));
    let contents = build_kubeconfig_text(&server, &pki.serving_ca_file, admin)?;
    let is_current = path.exists() && read(&path)? == contents.as_bytes();
    if !is_current {
        private_files::replace_atomically(&path, contents.as_bytes())?;
    }
    Ok(Some(path))
}

/// The kubeconfig for the server at a URL, with the contents of the files.
pub(super) fn build_kubeconfig_text(
    server: &str,
    serving_ca: &Path,
    admin: &CertificateFiles,
) -> Result<String, PkiError> {
    Ok(format!(
        "apiVersion: v1\n\
         kind: Config\n\
         clusters:\n\
         - name: portcullis\n\
         \x20 cluster:\n\
         \x20   server: \"{server}\"\n\
         \x20   certificate-authority-data: {}\n\
         users:\n\
         - name: admin\n\
         \x20 user:\n\
         \x20   client-certificate-data: {}\n\
         \x20   client-key-data: {}\n\
         contexts:\n\
         - name: portcullis\n\
         \x20 context:\n\
         \x20   cluster: portcullis\n\
         \x20   user: admin\n\
         \x20   namespace: default\n\
         current-context: portcullis\n",
        read_file_as_base64(serving_ca)?,
        read_file_as_base64(&admin.certificate_path)?,
        read_file_as_base64(&admin.key)?,
    ))
}

fn read_file_as_base64(path: &Path) -> Result<String, PkiError> {
    Ok(STANDARD.encode(read(path)?))
}

fn reachable_server_address(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}
