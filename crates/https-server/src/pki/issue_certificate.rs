//! Issues the certificates of authorities, servers and clients.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use ring::digest;
use ring::rand::{SecureRandom, SystemRandom};
use x509_verify::{COMMON_NAME, DerTag, ORGANIZATION, encode_der_value, encode_time};

use super::certificate_file::Certificate;
use super::key_pair::{KeyPair, encode_pem};
use super::server_names::ServerNames;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The validity of the authority: ten years.
const AUTHORITY_VALIDITY: Duration = Duration::from_secs(3652 * 24 * 60 * 60);

/// The validity of issued certificates: one year.
const LEAF_VALIDITY: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// New certificates are valid from this long ago, for clients whose clock is late.
const BACKDATE: Duration = Duration::from_secs(5 * 60);

/// The last byte of the object identifiers 2.5.29.n of the extensions that RFC 5280 defines.
const SUBJECT_KEY_ID: u8 = 14;
const KEY_USAGE: u8 = 15;
const ALTERNATIVE_NAMES: u8 = 17;
const BASIC_CONSTRAINTS: u8 = 19;
const AUTHORITY_KEY_ID: u8 = 35;
const EXTENDED_KEY_USAGE: u8 = 37;

/// The reason why a key or a certificate cannot be generated.
#[derive(Debug, thiserror::Error)]
pub(super) enum IssueError {
    #[error("the system has no randomness")]
    Randomness,
    #[error("the key cannot sign a certificate")]
    Signing,
    #[error("the name `{0}` is not ASCII")]
    NameNotAscii(String),
}

/// A certificate authority with its key.
pub(super) struct IssuingAuthority {
    key: KeyPair,
    /// The DER encoding of the subject of the authority.
    name_der: Vec<u8>,
    /// The subject key identifier of the authority; empty if it has none.
    key_id: Vec<u8>,
    not_after: SystemTime,
}

/// The usage for which a certificate is issued.
enum Usage<'a> {
    Authority,
    Server(&'a ServerNames),
    Client,
}

/// The fields of a certificate that do not depend on its issuer.
struct CertificateFields<'a> {
    key: &'a KeyPair,
    /// The DER encoding of the subject.
    subject_der: Vec<u8>,
    usage: Usage<'a>,
    not_before: SystemTime,
    not_after: SystemTime,
    serial_number: [u8; 16],
}

/// Issues the self-signed certificate of a new authority.
pub(super) fn issue_self_signed_ca(
    key: &KeyPair,
    common_name: &str,
    now: SystemTime,
) -> Result<String, IssueError> {
    let not_after = now + AUTHORITY_VALIDITY;
    let subject = encode_name(common_name, None);
    let fields = CertificateFields::new(key, subject.clone(), Usage::Authority, now, not_after)?;
    fields.sign(&subject, &[], key)
}

impl IssuingAuthority {
    pub(super) fn new(certificate: &Certificate, key: KeyPair) -> Self {
        Self {
            key,
            name_der: certificate.parsed.subject_der().to_vec(),
            key_id: certificate.parsed.subject_key_id().to_vec(),
            not_after: certificate.not_after,
        }
    }

    pub(super) fn issue_serving_certificate(
        &self,
        key: &KeyPair,
        names: &ServerNames,
        now: SystemTime,
    ) -> Result<String, IssueError> {
        self.issue(key, encode_name("kube-apiserver", None), Usage::Server(names), now)
    }

    pub(super) fn issue_admin_certificate(
        &self,
        key: &KeyPair,
        now: SystemTime,
    ) -> Result<String, IssueError> {
        self.issue_client_certificate(key, "kubernetes-admin", Some("system:masters"), now)
    }

    pub(super) fn issue_client_certificate(
        &self,
        key: &KeyPair,
        common_name: &str,
        group: Option<&str>,
        now: SystemTime,
    ) -> Result<String, IssueError> {
        self.issue(key, encode_name(common_name, group), Usage::Client, now)
    }

    /// Issues a certificate, which expires no later than its authority.
    fn issue(
        &self,
        key: &KeyPair,
        subject_der: Vec<u8>,
        usage: Usage<'_>,
        now: SystemTime,
    ) -> Result<String, IssueError> {
        let not_after = self.not_after.min(now + LEAF_VALIDITY);
        let fields = CertificateFields::new(key, subject_der, usage, now, not_after)?;
        fields.sign(&self.name_der, &self.key_id, &self.key)
    }
}

impl<'a> CertificateFields<'a> {
    fn new(
        key: &'a KeyPair,
        subject_der: Vec<u8>,
        usage: Usage<'a>,
        now: SystemTime,
        not_after: SystemTime,
    ) -> Result<Self, IssueError> {
        let not_before = now.checked_sub(BACKDATE).unwrap_or(now);
        let serial_number = random_serial()?;
        Ok(Self { key, subject_der, usage, not_before, not_after, serial_number })
    }

    /// Signs the certificate and returns it as PEM.
    fn sign(
        &self,
        issuer_der: &[u8],
        issuer_key_id: &[u8],
        issuer_key: &KeyPair,
    ) -> Result<String, IssueError> {
        let issuer = issuer_key.certificate_signer()?;
        let algorithm = encode_der_value(DerTag::SEQUENCE, &[issuer.algorithm.as_ref()]);
        let signed = self.encode_signed_part(issuer_der, issuer_key_id, &algorithm)?;
        let signature = issuer.signer.sign(&signed).map_err(|_| IssueError::Signing)?;
        // The first byte is the number of unused bits.
        let signature = encode_der_value(DerTag::BIT_STRING, &[&[0], &signature]);
        let der = encode_der_value(DerTag::SEQUENCE, &[&signed, &algorithm, &signature]);
        Ok(encode_pem("CERTIFICATE", &der))
    }

    /// Encodes the `TBSCertificate` (RFC 5280, 4.1.2).
    fn encode_signed_part(
        &self,
        issuer_der: &[u8],
        issuer_key_id: &[u8],
        algorithm: &[u8],
    ) -> Result<Vec<u8>, IssueError> {
        let version = encode_der_value(DerTag::INTEGER, &[&[2]]);
        let version = encode_der_value(DerTag::constructed_context_tag(0), &[&version]);
        let serial_number = encode_der_value(DerTag::INTEGER, &[&self.serial_number]);
        let times = [self.not_before, self.not_after].map(|time| encode_time(unix_seconds(time)));
        let validity = encode_der_value(DerTag::SEQUENCE, &[&times[0], &times[1]]);
        let extensions =
            encode_der_value(DerTag::SEQUENCE, &[&self.encode_extensions(issuer_key_id)?]);
        let extensions = encode_der_value(DerTag::constructed_context_tag(3), &[&extensions]);
        Ok(encode_der_value(
            DerTag::SEQUENCE,
            &[
                &version,
                &serial_number,
                algorithm,
                issuer_der,
                &validity,
                &self.subject_der,
                self.key.public_key_der(),
                &extensions,
            ],
        ))
    }

    fn encode_extensions(&self, issuer_key_id: &[u8]) -> Result<Vec<u8>, IssueError> {
        let mut extensions = Vec::new();
        if !issuer_key_id.is_empty() {
            let id = encode_der_value(DerTag::primitive_context_tag(0), &[issuer_key_id]);
            let id = encode_der_value(DerTag::SEQUENCE, &[&id]);
            extensions.push(encode_extension(AUTHORITY_KEY_ID, false, &id));
        }
        if let Usage::Server(names) = &self.usage {
            let names = encode_alternative_names(names)?;
            extensions.push(encode_extension(ALTERNATIVE_NAMES, false, &names));
        }
        // One byte of usages, with the number of its unused bits before it: digitalSignature is the highest bit,
        // keyCertSign and cRLSign are the second and the first of the lower ones.
        let (key_usage, extended_usage) = match &self.usage {
            Usage::Authority => ([1, 0b1000_0110], None),
            Usage::Server(_) => ([7, 0b1000_0000], Some(SERVER_AUTH)),
            Usage::Client => ([7, 0b1000_0000], Some(CLIENT_AUTH)),
        };
        let key_usage = encode_der_value(DerTag::BIT_STRING, &[&key_usage]);
        extensions.push(encode_extension(KEY_USAGE, true, &key_usage));
        if let Some(usage) = extended_usage {
            let usage = encode_der_value(DerTag::OID, &[usage]);
            let usages = encode_der_value(DerTag::SEQUENCE, &[&usage]);
            extensions.push(encode_extension(EXTENDED_KEY_USAGE, false, &usages));
        }
        if let Usage::Authority = &self.usage {
            let id = encode_der_value(DerTag::OCTET_STRING, &[&key_id(self.key)]);
            extensions.push(encode_extension(SUBJECT_KEY_ID, false, &id));
            let is_ca = encode_der_value(DerTag::BOOLEAN, &[&[0xff]]);
            let constraints = encode_der_value(DerTag::SEQUENCE, &[&is_ca]);
            extensions.push(encode_extension(BASIC_CONSTRAINTS, true, &constraints));
        }
        Ok(extensions.concat())
    }
}

/// The object identifier 1.3.6.1.5.5.7.3.1 of the usage `serverAuth`, in DER.
const SERVER_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 1];
/// The object identifier 1.3.6.1.5.5.7.3.2 of the usage `clientAuth`, in DER.
const CLIENT_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 2];

/// Encodes a name with an organization, if there is one, and a common name.
fn encode_name(common_name: &str, organization: Option<&str>) -> Vec<u8> {
    let encode_attribute = |oid: &[u8], text: &str| {
        let oid = encode_der_value(DerTag::OID, &[oid]);
        let text = encode_der_value(DerTag::UTF8_STRING, &[text.as_bytes()]);
        let attribute = encode_der_value(DerTag::SEQUENCE, &[&oid, &text]);
        encode_der_value(DerTag::SET, &[&attribute])
    };
    let organization = organization.map(|text| encode_attribute(ORGANIZATION, text));
    let common_name = encode_attribute(COMMON_NAME, common_name);
    encode_der_value(DerTag::SEQUENCE, &[&organization.unwrap_or_default(), &common_name])
}

fn encode_extension(number: u8, is_critical: bool, value: &[u8]) -> Vec<u8> {
    let oid = encode_der_value(DerTag::OID, &[&[0x55, 0x1d, number]]);
    // DER leaves out a value that is the default.
    let critical = match is_critical {
        true => encode_der_value(DerTag::BOOLEAN, &[&[0xff]]),
        false => Vec::new(),
    };
    let value = encode_der_value(DerTag::OCTET_STRING, &[value]);
    encode_der_value(DerTag::SEQUENCE, &[&oid, &critical, &value])
}

fn encode_alternative_names(names: &ServerNames) -> Result<Vec<u8>, IssueError> {
    let mut encoded = Vec::new();
    for name in names.dns_names() {
        if !name.is_ascii() {
            return Err(IssueError::NameNotAscii(name.clone()));
        }
        encoded.extend(encode_der_value(DerTag::primitive_context_tag(2), &[name.as_bytes()]));
    }
    for address in names.ip_addresses() {
        let tag = DerTag::primitive_context_tag(7);
        encoded.extend(match address {
            IpAddr::V4(address) => encode_der_value(tag, &[&address.octets()]),
            IpAddr::V6(address) => encode_der_value(tag, &[&address.octets()]),
        });
    }
    Ok(encode_der_value(DerTag::SEQUENCE, &[&encoded]))
}

/// The identifier of a key: the first 20 bytes of a hash of the public key (RFC 7093, method 4).
fn key_id(key: &KeyPair) -> Vec<u8> {
    digest::digest(&digest::SHA256, key.public_key_der())
        .as_ref()
        .iter()
        .copied()
        .take(20)
        .collect()
}

fn unix_seconds(time: SystemTime) -> i64 {
    // Times before 1970 cannot be encoded; such a certificate is expired at once.
    let since_epoch = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(DAY);
    i64::try_from(since_epoch.as_secs()).unwrap_or(i64::MAX)
}

/// A random serial number. A renewed certificate keeps its key, so the number cannot be derived
/// from the key.
fn random_serial() -> Result<[u8; 16], IssueError> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).map_err(|_| IssueError::Randomness)?;
    // The number is positive and has no leading zero byte, which encoders treat differently.
    bytes[0] = bytes[0] & 0x7f | 0x40;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
