use std::process::Command;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyUsagePurpose, SanType, SerialNumber, date_time_ymd,
};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use super::*;

const NOW: Duration = Duration::from_secs(20_000 * 24 * 60 * 60);

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + NOW
}

fn names() -> ServerNames {
    ServerNames::new(Some("Gate"), ["192.0.2.7".parse().unwrap(), "2001:db8::1".parse().unwrap()])
}

/// A key of our type and the same key of the other implementation.
fn same_keys() -> (KeyPair, rcgen::KeyPair) {
    let pem = KeyPair::generate_pem().unwrap();
    (KeyPair::from_pem(&pem).unwrap(), rcgen::KeyPair::from_pem(&pem).unwrap())
}

/// The certificate without its signature, which is random.
fn signed_part(der: &[u8]) -> Vec<u8> {
    let mut outer = x509_verify::DerReader::new(der);
    let mut certificate = outer.read_nested(DerTag::SEQUENCE).unwrap();
    certificate.read_value(DerTag::SEQUENCE).unwrap().encoding.to_vec()
}

fn serial_number(der: &CertificateDer<'_>) -> Vec<u8> {
    let bytes = signed_part(der);
    let mut reader = x509_verify::DerReader::new(&bytes).read_nested(DerTag::SEQUENCE).unwrap();
    reader.read_value(DerTag::constructed_context_tag(0)).unwrap();
    reader.read_value(DerTag::INTEGER).unwrap().contents.to_vec()
}

/// The parameters of the other implementation for the same certificate.
fn params(
    ours: &CertificateDer<'_>,
    subject: &[(DnType, &str)],
    not_after: Duration,
) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.not_before = date_time_ymd(1970, 1, 1) + (NOW - BACKDATE);
    params.not_after = date_time_ymd(1970, 1, 1) + not_after;
    params.serial_number = Some(SerialNumber::from_slice(&serial_number(ours)));
    params.distinguished_name = DistinguishedName::new();
    for (kind, text) in subject {
        params.distinguished_name.push(kind.clone(), *text);
    }
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    params
}

fn from_pem(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}

/// Each kind of certificate has the same bytes as that of another implementation, `rcgen`.
#[test]
fn certificates_have_the_bytes_of_another_implementation() {
    let (ca_key, their_ca_key) = same_keys();
    let (key, their_key) = same_keys();
    let ca = from_pem(&issue_self_signed_ca(&ca_key, "portcullis-ca", now()).unwrap());
    let ca_name = [(DnType::CommonName, "portcullis-ca")];
    let mut ca_params = params(&ca, &ca_name, NOW + AUTHORITY_VALIDITY);
    ca_params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca_params.key_usages.extend([KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign]);
    ca_params.use_authority_key_identifier_extension = false;
    let their_ca = ca_params.self_signed(&their_ca_key).unwrap();
    assert_eq!(signed_part(&ca), signed_part(their_ca.der()));
    let issuer = Issuer::new(ca_params, their_ca_key);
    let authority = IssuingAuthority::new(&Certificate::from_der(&ca).unwrap(), ca_key);

    let ours = from_pem(&authority.issue_serving_certificate(&key, &names(), now()).unwrap());
    let mut server = params(&ours, &[(DnType::CommonName, "kube-apiserver")], NOW + LEAF_VALIDITY);
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    for name in names().dns_names() {
        server.subject_alt_names.push(SanType::DnsName(name.as_str().try_into().unwrap()));
    }
    server.subject_alt_names.extend(names().ip_addresses().iter().copied().map(SanType::IpAddress));
    let theirs = server.signed_by(&their_key, &issuer).unwrap();
    assert_eq!(signed_part(&ours), signed_part(theirs.der()));

    let ours = from_pem(&authority.issue_admin_certificate(&key, now()).unwrap());
    let subject =
        [(DnType::OrganizationName, "system:masters"), (DnType::CommonName, "kubernetes-admin")];
    let mut client = params(&ours, &subject, NOW + LEAF_VALIDITY);
    client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let theirs = client.signed_by(&their_key, &issuer).unwrap();
    assert_eq!(signed_part(&ours), signed_part(theirs.der()));
}

#[test]
fn keys_of_another_implementation_are_read_and_sign() {
    for algorithm in
        [&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ECDSA_P384_SHA384, &rcgen::PKCS_ED25519]
    {
        let theirs = rcgen::KeyPair::generate_for(algorithm).unwrap();
        let key = KeyPair::from_pem(&theirs.serialize_pem()).unwrap();
        assert_eq!(key.public_key_pem(), theirs.public_key_pem());
        let ca = from_pem(&issue_self_signed_ca(&key, "ca", now()).unwrap());
        let ca = Certificate::from_der(&ca).unwrap();
        assert!(ca.parsed.is_signed_by(&ca.parsed));
    }
}

/// Runs openssl and returns what it prints.
fn openssl(arguments: &[&str]) -> String {
    let output = Command::new("openssl").args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// An authority of the operator may have an RSA key.
#[test]
fn openssl_accepts_certificates_of_an_authority_with_an_rsa_key() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (ca_key_path, ca_path, leaf_path) = (path("ca.key"), path("ca.crt"), path("leaf.crt"));
    openssl(&["genpkey", "-algorithm", "RSA", "-out", &ca_key_path]);
    let ca_key = KeyPair::from_pem(&std::fs::read_to_string(&ca_key_path).unwrap()).unwrap();
    let ca_pem = issue_self_signed_ca(&ca_key, "ca", SystemTime::now()).unwrap();
    let authority =
        IssuingAuthority::new(&Certificate::from_der(&from_pem(&ca_pem)).unwrap(), ca_key);
    let (key, _) = same_keys();
    let leaf = authority.issue_serving_certificate(&key, &names(), SystemTime::now()).unwrap();
    std::fs::write(&ca_path, ca_pem).unwrap();
    std::fs::write(&leaf_path, leaf).unwrap();
    let strict = ["verify", "-x509_strict", "-purpose", "sslserver", "-verify_hostname", "gate"];
    openssl(&[&strict[..], &["-CAfile", &ca_path, &leaf_path]].concat());
    let text = openssl(&["x509", "-in", &leaf_path, "-noout", "-ext", "subjectAltName"]);
    assert!(text.contains("IP Address:192.0.2.7, IP Address:2001:DB8:0:0:0:0:0:1"), "{text}");
}

#[test]
fn a_name_that_is_not_ascii_is_refused() {
    let (ca_key, _) = same_keys();
    let ca = from_pem(&issue_self_signed_ca(&ca_key, "ca", now()).unwrap());
    let authority = IssuingAuthority::new(&Certificate::from_der(&ca).unwrap(), ca_key);
    let (key, _) = same_keys();
    let names = names().with_dns_names(["café.example.com".to_owned()]);
    let error = authority.issue_serving_certificate(&key, &names, now()).unwrap_err();
    assert_eq!(error.to_string(), "the name `café.example.com` is not ASCII");
}

#[test]
fn a_certificate_never_outlives_its_authority_and_serial_numbers_differ() {
    let (ca_key, _) = same_keys();
    let ca = from_pem(&issue_self_signed_ca(&ca_key, "ca", now()).unwrap());
    assert_ne!(
        serial_number(&ca),
        serial_number(&from_pem(&issue_self_signed_ca(&ca_key, "ca", now()).unwrap()))
    );
    let ca = Certificate::from_der(&ca).unwrap();
    let not_after = ca.not_after;
    let authority = IssuingAuthority::new(&ca, ca_key);
    let (key, _) = same_keys();
    let late = authority.issue_admin_certificate(&key, not_after - DAY).unwrap();
    assert_eq!(Certificate::from_der(&from_pem(&late)).unwrap().not_after, not_after);
}
