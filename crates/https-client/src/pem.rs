//! Certificates and keys as files hold them.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use rustls_pki_types::pem::{PemObject as _, SectionKind};
use rustls_pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer,
};

/// Longest file of certificates or keys in bytes: more than any bundle of authorities.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// One block of a PEM file, as far as it matters here.
pub(crate) enum Block {
    Certificate(CertificateDer<'static>),
    Key(PrivateKeyDer<'static>),
    Other,
}

/// The blocks of a PEM file up to the first that is broken.
pub(crate) fn blocks(pem: &[u8]) -> Vec<Block> {
    let sections = <(SectionKind, Vec<u8>)>::pem_slice_iter(pem);
    let block = |(kind, der): (SectionKind, Vec<u8>)| match kind {
        SectionKind::Certificate => Block::Certificate(der.into()),
        SectionKind::PrivateKey => Block::Key(PrivatePkcs8KeyDer::from(der).into()),
        SectionKind::RsaPrivateKey => Block::Key(PrivatePkcs1KeyDer::from(der).into()),
        SectionKind::EcPrivateKey => Block::Key(PrivateSec1KeyDer::from(der).into()),
        _ => Block::Other,
    };
    sections.map_while(Result::ok).map(block).collect()
}

/// Reads a file of bounded size.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut content)?;
    if content.len() as u64 > FILE_BYTES_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(content)
}
