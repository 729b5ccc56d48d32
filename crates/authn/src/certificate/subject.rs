//! Whom the subject of a certificate names.

use authz::User;
use ring::digest;
use rustls_pki_types::CertificateDer;
use x509_parser::asn1_rs::{Any, Oid, Tag, oid};
use x509_parser::certificate::X509Certificate;

use super::CertificateError;
use crate::identity::CREDENTIAL_ID_KEY;

const COMMON_NAME: Oid<'static> = oid!(2.5.4.3);
const ORGANIZATION: Oid<'static> = oid!(2.5.4.10);
/// The arc of Kubernetes, and in it the uid of a user.
const UID: Oid<'static> = oid!(1.3.6.1.4.1.57683.2);

/// The user that a certificate names; `None` if it has no common name.
///
/// The name is the common name, the last one if there are several; the groups are all
/// organizations, in order.
pub(crate) fn user(
    der: &CertificateDer<'_>,
    certificate: &X509Certificate<'_>,
) -> Result<Option<User>, CertificateError> {
    let name = common_name(certificate)?;
    if name.is_empty() {
        return Ok(None);
    }
    let hash = digest::digest(&digest::SHA256, der.as_ref());
    let hex: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Some(User {
        name,
        uid: uid(certificate)?,
        groups: texts(certificate, &ORGANIZATION).ok_or(CertificateError::SubjectNotText)?,
        extra: [(CREDENTIAL_ID_KEY.to_owned(), vec![format!("X509SHA256={hex}")])].into(),
    }))
}

/// The common name; empty if there is none.
pub(crate) fn common_name(certificate: &X509Certificate<'_>) -> Result<String, CertificateError> {
    let names = texts(certificate, &COMMON_NAME).ok_or(CertificateError::SubjectNotText)?;
    Ok(names.into_iter().next_back().unwrap_or_default())
}

fn uid(certificate: &X509Certificate<'_>) -> Result<String, CertificateError> {
    let uids = texts(certificate, &UID).ok_or(CertificateError::UidNotText)?;
    match <[String; 1]>::try_from(uids) {
        Ok([uid]) if uid.is_empty() => Err(CertificateError::EmptyUid),
        Ok([uid]) => Ok(uid),
        Err(none) if none.is_empty() => Ok(String::new()),
        Err(several) => Err(CertificateError::SeveralUids(several)),
    }
}

/// All values of one kind, in order; `None` if one of them is not text.
fn texts(certificate: &X509Certificate<'_>, kind: &Oid<'_>) -> Option<Vec<String>> {
    certificate
        .subject()
        .iter_attributes()
        .filter(|attribute| attribute.attr_type() == kind)
        .map(|attribute| text(attribute.attr_value()))
        .collect()
}

/// The string types that names are written in, with their alphabets as Go reads them.
fn text(value: &Any<'_>) -> Option<String> {
    let ascii = |is_letter: fn(u8) -> bool| {
        let is_text = value.data.iter().copied().all(is_letter);
        String::from_utf8(value.data.to_vec()).ok().filter(|_| is_text)
    };
    match value.tag() {
        Tag::Utf8String => String::from_utf8(value.data.to_vec()).ok(),
        Tag::PrintableString => ascii(is_printable),
        Tag::Ia5String => ascii(|byte| byte.is_ascii()),
        Tag::NumericString => ascii(|byte| byte.is_ascii_digit() || byte == b' '),
        // Nobody uses T.61 for what it is; Latin 1 is what everybody reads.
        Tag::T61String => Some(value.data.iter().copied().map(char::from).collect()),
        Tag::BmpString => {
            let (pairs, rest) = value.data.as_chunks::<2>();
            let mut units: Vec<u16> = pairs.iter().map(|pair| u16::from_be_bytes(*pair)).collect();
            // A terminator is no part of the text.
            units.pop_if(|last| *last == 0);
            String::from_utf16(&units).ok().filter(|_| rest.is_empty())
        }
        _ => None,
    }
}

/// The letters of a PrintableString, and `*` and `&`, which many certificates have.
fn is_printable(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b" '()+,-./:=?*&".contains(&byte)
}
