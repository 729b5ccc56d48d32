//! Generates keys and issues certificates.

use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, Error, ExtendedKeyUsagePurpose,
    IsCa, Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType, SerialNumber,
    date_time_ymd,
};
use ring::rand::{SecureRandom, SystemRandom};

use super::certificate_file::Certificate;
use super::server_names::ServerNames;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The validity of the authority: ten years.
const AUTHORITY_VALIDITY: Duration = Duration::from_secs(3652 * 24 * 60 * 60);

/// The validity of issued certificates: one year.
const LEAF_VALIDITY: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// New certificates are valid from this long ago, for clients whose clock is late.
const BACKDATE: Duration = Duration::from_secs(5 * 60);

/// A certificate authority with its key.
pub(super) struct IssuingAuthority {
    issuer: Issuer<'static, KeyPair>,
    not_after: SystemTime,
}

pub(super) fn generate_key_pair() -> Result<KeyPair, Error> {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)
}

/// Issues the self-signed certificate of a new authority.
pub(super) fn issue_self_signed_ca(
    key: &KeyPair,
    common_name: &str,
    now: SystemTime,
) -> Result<String, Error> {
    let mut params = certificate_params(common_name, None, now, now + AUTHORITY_VALIDITY)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
    ];
    params.use_authority_key_identifier_extension = false;
    Ok(params.self_signed(key)?.pem())
}

impl IssuingAuthority {
    pub(super) fn new(certificate: &Certificate, key: KeyPair) -> Result<Self, Error> {
        Ok(Self {
            issuer: Issuer::from_ca_cert_der(&certificate.certificate_der, key)?,
            not_after: certificate.not_after,
        })
    }

    pub(super) fn issue_serving_certificate(
        &self,
        key: &KeyPair,
        names: &ServerNames,
        now: SystemTime,
    ) -> Result<String, Error> {
        let mut params =
            certificate_params("kube-apiserver", None, now, self.leaf_certificate_expiry(now))?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        for name in names.dns_names() {
            params.subject_alt_names.push(SanType::DnsName(name.as_str().try_into()?));
        }
        let addresses = names.ip_addresses().iter().copied().map(SanType::IpAddress);
        params.subject_alt_names.extend(addresses);
        Ok(params.signed_by(key, &self.issuer)?.pem())
    }

    pub(super) fn issue_admin_certificate(
        &self,
        key: &KeyPair,
        now: SystemTime,
    ) -> Result<String, Error> {
        self.issue_client_certificate(key, "kubernetes-admin", Some("system:masters"), now)
    }

    pub(super) fn issue_client_certificate(
        &self,
        key: &KeyPair,
        common_name: &str,
        group: Option<&str>,
        now: SystemTime,
    ) -> Result<String, Error> {
        let mut params =
            certificate_params(common_name, group, now, self.leaf_certificate_expiry(now))?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        Ok(params.signed_by(key, &self.issuer)?.pem())
    }

    /// An issued certificate expires no later than its authority.
    fn leaf_certificate_expiry(&self, now: SystemTime) -> SystemTime {
        self.not_after.min(now + LEAF_VALIDITY)
    }
}

fn certificate_params(
    common_name: &str,
    organization: Option<&str>,
    now: SystemTime,
    not_after: SystemTime,
) -> Result<CertificateParams, Error> {
    let epoch = date_time_ymd(1970, 1, 1);
    let since_epoch = |time: SystemTime| {
        // Times before 1970 cannot be encoded; such a certificate is expired at once.
        time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(DAY)
    };
    let mut params = CertificateParams::default();
    params.not_before = epoch + since_epoch(now.checked_sub(BACKDATE).unwrap_or(now));
    params.not_after = epoch + since_epoch(not_after);
    params.serial_number = Some(random_serial()?);
    params.distinguished_name = DistinguishedName::new();
    if let Some(organization) = organization {
        params.distinguished_name.push(DnType::OrganizationName, organization);
    }
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

/// A random serial number. A renewed certificate keeps its key, so the number cannot be derived
/// from the key.
fn random_serial() -> Result<SerialNumber, Error> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).map_err(|_| Error::RingUnspecified)?;
    // The number is positive and has no leading zero byte, which encoders treat differently.
    bytes[0] = bytes[0] & 0x7f | 0x40;
    Ok(SerialNumber::from_slice(&bytes))
}
