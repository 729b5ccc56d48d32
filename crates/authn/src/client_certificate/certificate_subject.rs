//! The user that the subject of a certificate names.

use authz::User;
use ring::digest;
use x509_verify::{COMMON_NAME, Certificate, ORGANIZATION};

use super::CertificateError;
use crate::well_known_identities::CREDENTIAL_ID_KEY;

/// The object identifier 1.3.6.1.4.1.57683.2, which Kubernetes assigned to the uid of a user, in DER.
const UID: &[u8] = &[0x2b, 6, 1, 4, 1, 0x83, 0xc2, 0x53, 2];

/// The user that a certificate names; `None` if it has no common name.
///
/// The user name is the last common name; the groups are all organizations, in order.
pub(crate) fn user_from_subject(
    certificate: &Certificate,
) -> Result<Option<User>, CertificateError> {
    let name = common_name(certificate)?;
    if name.is_empty() {
        return Ok(None);
    }
    let hash = digest::digest(&digest::SHA256, certificate.der());
    let hex: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Some(User {
        name,
        uid: subject_uid(certificate)?,
        groups: certificate.subject_texts(ORGANIZATION).ok_or(CertificateError::SubjectNotText)?,
        extra: [(CREDENTIAL_ID_KEY.to_owned(), vec![format!("X509SHA256={hex}")])].into(),
    }))
}

/// The last common name; empty if there is none.
pub(crate) fn common_name(certificate: &Certificate) -> Result<String, CertificateError> {
    let names = certificate.subject_texts(COMMON_NAME).ok_or(CertificateError::SubjectNotText)?;
    Ok(names.into_iter().next_back().unwrap_or_default())
}

fn subject_uid(certificate: &Certificate) -> Result<String, CertificateError> {
    let uids = certificate.subject_texts(UID).ok_or(CertificateError::UidNotText)?;
    match <[String; 1]>::try_from(uids) {
        Ok([uid]) if uid.is_empty() => Err(CertificateError::EmptyUid),
        Ok([uid]) => Ok(uid),
        Err(none) if none.is_empty() => Ok(String::new()),
        Err(several) => Err(CertificateError::SeveralUids(several)),
    }
}
