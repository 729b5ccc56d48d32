//! PEM files of certificates and keys.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use rustls_pki_types::pem::{PemObject as _, SectionKind};
use rustls_pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer,
};

/// The longest file of certificates or keys, in bytes: longer than any CA bundle.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A block of a PEM file.
pub(crate) enum PemBlock {
    Certificate(CertificateDer<'static>),
    Key(PrivateKeyDer<'static>),
    Other,
}

/// Parses the blocks of a PEM file up to the first broken one.
pub(crate) fn parse_pem_blocks(pem: &[u8]) -> Vec<PemBlock> {
    let sections = <(SectionKind, Vec<u8>)>::pem_slice_iter(pem);
    let block = |(kind, der): (SectionKind, Vec<u8>)| match kind {
        SectionKind::Certificate => PemBlock::Certificate(der.into()),
        SectionKind::PrivateKey => PemBlock::Key(PrivatePkcs8KeyDer::from(der).into()),
        SectionKind::RsaPrivateKey => PemBlock::Key(PrivatePkcs1KeyDer::from(der).into()),
        SectionKind::EcPrivateKey => PemBlock::Key(PrivateSec1KeyDer::from(der).into()),
        _ => PemBlock::Other,
    };
    sections.map_while(Result::ok).map(block).collect()
}

/// Reads a file of bounded size.
pub(crate) fn read_pem_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut content)?;
    if content.len() as u64 > FILE_BYTES_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(content)
}
