//! The user that the subject of a certificate names.

use authz::User;
use ring::digest;
use rustls_pki_types::CertificateDer;
use x509_parser::asn1_rs::{Any, Oid, Tag, oid};
use x509_parser::certificate::X509Certificate;

use super::CertificateError;
use crate::well_known_identities::CREDENTIAL_ID_KEY;

const COMMON_NAME: Oid<'static> = oid!(2.5.4.3);
const ORGANIZATION: Oid<'static> = oid!(2.5.4.10);
/// The object identifier that Kubernetes assigned to the uid of a user.
const UID: Oid<'static> = oid!(1.3.6.1.4.1.57683.2);

/// The user that a certificate names; `None` if it has no common name.
///
/// The user name is the last common name; the groups are all organizations, in order.
pub(crate) fn user_from_subject(
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
        uid: subject_uid(certificate)?,
        groups: read_subject_attribute_texts(certificate, &ORGANIZATION)
            .ok_or(CertificateError::SubjectNotText)?,
        extra: [(CREDENTIAL_ID_KEY.to_owned(), vec![format!("X509SHA256={hex}")])].into(),
    }))
}

/// The last common name; empty if there is none.
pub(crate) fn common_name(certificate: &X509Certificate<'_>) -> Result<String, CertificateError> {
    let names = read_subject_attribute_texts(certificate, &COMMON_NAME)
        .ok_or(CertificateError::SubjectNotText)?;
    Ok(names.into_iter().next_back().unwrap_or_default())
}

fn subject_uid(certificate: &X509Certificate<'_>) -> Result<String, CertificateError> {
    let uids =
        read_subject_attribute_texts(certificate, &UID).ok_or(CertificateError::UidNotText)?;
    match <[String; 1]>::try_from(uids) {
        Ok([uid]) if uid.is_empty() => Err(CertificateError::EmptyUid),
        Ok([uid]) => Ok(uid),
        Err(none) if none.is_empty() => Ok(String::new()),
        Err(several) => Err(CertificateError::SeveralUids(several)),
    }
}

/// All values of one attribute type, in order; `None` if one of them is not text.
fn read_subject_attribute_texts(
    certificate: &X509Certificate<'_>,
    kind: &Oid<'_>,
) -> Option<Vec<String>> {
    certificate
        .subject()
        .iter_attributes()
        .filter(|attribute| attribute.attr_type() == kind)
        .map(|attribute| decode_subject_attribute_text(attribute.attr_value()))
        .collect()
}

/// Decodes the ASN.1 string types with the alphabets that Go accepts.
fn decode_subject_attribute_text(value: &Any<'_>) -> Option<String> {
    let ascii = |is_letter: fn(u8) -> bool| {
        let is_text = value.data.iter().copied().all(is_letter);
        String::from_utf8(value.data.to_vec()).ok().filter(|_| is_text)
    };
    match value.tag() {
        Tag::Utf8String => String::from_utf8(value.data.to_vec()).ok(),
        Tag::PrintableString => ascii(is_printable_string_byte),
        Tag::Ia5String => ascii(|byte| byte.is_ascii()),
        Tag::NumericString => ascii(|byte| byte.is_ascii_digit() || byte == b' '),
        // T.61 is read as Latin-1, as other implementations do.
        Tag::T61String => Some(value.data.iter().copied().map(char::from).collect()),
        Tag::BmpString => {
            let (pairs, rest) = value.data.as_chunks::<2>();
            let mut units: Vec<u16> = pairs.iter().map(|pair| u16::from_be_bytes(*pair)).collect();
            // A final NUL is a terminator and not part of the text.
            units.pop_if(|last| *last == 0);
            String::from_utf16(&units).ok().filter(|_| rest.is_empty())
        }
        _ => None,
    }
}

/// Reports whether a byte may stand in a PrintableString. `*` and `&` are not in the standard but
/// occur in many certificates.
fn is_printable_string_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b" '()+,-./:=?*&".contains(&byte)
}
