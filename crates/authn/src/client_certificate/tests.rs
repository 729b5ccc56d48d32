use std::slice::from_ref;

use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, date_time_ymd,
};
use rustls_pki_types::pem::PemObject;

use super::*;

type Der = CertificateDer<'static>;

const UID: &[u64] = &[1, 3, 6, 1, 4, 1, 57683, 2];

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date_time_ymd(2026, 1, 1);
    params.not_after = date_time_ymd(2027, 1, 1);
    params
}

fn authority(name: &str) -> CertificateParams {
    let mut params = params(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

fn client(name: &str) -> CertificateParams {
    let mut params = params(name);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params
}

/// An authority that can sign, and its certificate.
fn root(params: CertificateParams) -> (Issuer<'static, KeyPair>, Der) {
    let key = KeyPair::generate().unwrap();
    let der = params.self_signed(&key).unwrap().der().clone();
    (Issuer::new(params, key), der)
}

fn issue(issuer: &Issuer<'_, KeyPair>, params: &CertificateParams) -> Der {
    params.signed_by(&KeyPair::generate().unwrap(), issuer).unwrap().der().clone()
}

fn verify(root: &Der, presented: &[Der]) -> Result<ValidityPeriod, CertificateError> {
    CertificateAuthorities::new(from_ref(root))
        .unwrap()
        .verify_chain(presented, at("2026-06-01T00:00:00Z"))
}

fn reason(result: Result<ValidityPeriod, CertificateError>) -> String {
    match result {
        Err(CertificateError::Untrusted { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_certificate_of_an_authority_is_trusted_as_long_as_it_is_valid() {
    let (issuer, ca) = root(authority("ca"));
    let leaf = issue(&issuer, &client("c"));
    let validity = verify(&ca, from_ref(&leaf)).unwrap();
    let (begin, end) = (at("2026-01-01T00:00:00Z"), at("2027-01-01T00:00:00Z"));
    assert_eq!(validity, ValidityPeriod { not_before: begin, not_after: end });
    let authorities = CertificateAuthorities::new(&[ca]).unwrap();
    for (now, is_valid) in [
        ("2025-12-31T23:59:59Z", false),
        ("2026-01-01T00:00:00Z", true),
        ("2026-12-31T23:59:59Z", true),
        ("2027-01-01T00:00:01Z", false),
        ("1960-01-01T00:00:00Z", false),
    ] {
        assert_eq!(authorities.verify_chain(from_ref(&leaf), at(now)).is_ok(), is_valid, "{now}");
        assert_eq!(validity.contains(at(now)), is_valid, "{now}");
    }
}

#[test]
fn strangers_and_servers_are_refused() {
    let (issuer, ca) = root(authority("ca"));
    let (_, self_signed) = root(client("c"));
    let unknown = "x509: certificate signed by unknown authority";
    assert_eq!(reason(verify(&ca, &[self_signed])), unknown);
    let (stranger, _) = root(authority("ca"));
    assert!(verify(&ca, &[issue(&stranger, &client("c"))]).is_err());
    let mut server = client("c");
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let reason = reason(verify(&ca, &[issue(&issuer, &server)]));
    assert_eq!(reason, "x509: certificate specifies an incompatible key usage");
    for usages in [vec![], vec![ExtendedKeyUsagePurpose::Any]] {
        let mut open = params("c");
        open.extended_key_usages = usages;
        assert!(verify(&ca, &[issue(&issuer, &open)]).is_ok());
    }
}

#[test]
fn what_else_is_presented_leads_to_the_root() {
    let (issuer, ca) = root(authority("ca"));
    let mut middle_params = authority("middle");
    middle_params.not_after = date_time_ymd(2026, 9, 1);
    let middle_key = KeyPair::generate().unwrap();
    let middle = middle_params.signed_by(&middle_key, &issuer).unwrap().der().clone();
    let leaf = issue(&Issuer::new(middle_params, middle_key), &client("c"));
    assert!(verify(&ca, from_ref(&leaf)).is_err());
    let validity = verify(&ca, &[leaf, middle]).unwrap();
    assert_eq!(validity.not_after, at("2026-09-01T00:00:00Z"));
}

#[test]
fn an_authority_expires_too() {
    let mut old = authority("ca");
    old.not_after = date_time_ymd(2026, 5, 1);
    let (issuer, ca) = root(old);
    let leaf = issue(&issuer, &client("c"));
    assert!(verify(&ca, from_ref(&leaf)).is_err());
    let authorities = CertificateAuthorities::new(&[ca]).unwrap();
    let validity = authorities.verify_chain(&[leaf], at("2026-04-01T00:00:00Z")).unwrap();
    assert_eq!(validity.not_after, at("2026-05-01T00:00:00Z"));
}

#[test]
fn a_refusal_names_the_certificate() {
    let (stranger, _) = root(authority("other"));
    let (_, ca) = root(authority("ca"));
    let mut numbered = client("c");
    numbered.serial_number = Some(77u64.into());
    numbered.use_authority_key_identifier_extension = true;
    let error = verify(&ca, &[issue(&stranger, &numbered)]).unwrap_err().to_string();
    assert!(error.starts_with("verifying certificate SN=77, SKID="), "{error}");
    let authority_id = error.split("AKID=").nth(1).unwrap().split(' ').next().unwrap();
    assert!(authority_id.split(':').count() == 20, "{error}");
}

#[test]
fn the_number_of_certificates_is_limited() {
    let (issuer, ca) = root(authority("ca"));
    let leaf = issue(&issuer, &client("c"));
    let mut presented = vec![leaf; PRESENTED_CERTIFICATES_MAX];
    assert!(verify(&ca, &presented).is_ok());
    presented.push(ca.clone());
    assert_eq!(verify(&ca, &presented), Err(CertificateError::TooMany));
}

#[test]
fn what_is_not_a_certificate_is_refused() {
    let (_, ca) = root(authority("ca"));
    assert_eq!(verify(&ca, &[]), Err(CertificateError::Malformed));
    for bytes in [vec![], vec![0x30, 0x80], [ca.as_ref(), &[0]].concat()] {
        let error = verify(&ca, &[Der::from(bytes.clone())]).unwrap_err();
        assert_eq!(error, CertificateError::Malformed);
        assert_eq!(
            CertificateAuthorities::new(&[ca.clone(), bytes.into()]).unwrap_err().authority_index,
            1
        );
    }
}

/// Every verdict that Go's verifier gave on clients, as `peers/x509` recorded it.
#[test]
fn clients_are_trusted_as_by_kubernetes() {
    let recorded = include_str!("../../../x509-verify/testdata/go.jsonl");
    let all = |pem: &serde_json::Value| -> Vec<Der> {
        let pem = pem.as_str().unwrap().as_bytes();
        Der::pem_slice_iter(pem).map(|own| own.unwrap()).collect()
    };
    let mut n_cases = 0;
    for line in recorded.lines() {
        let case: serde_json::Value = serde_json::from_str(line).unwrap();
        if case["usage"] != "client" {
            continue;
        }
        n_cases += 1;
        let authorities = CertificateAuthorities::new(&all(&case["roots"])).unwrap();
        let verified =
            authorities.verify_chain(&all(&case["presented"]), at("2030-06-01T00:00:00Z"));
        assert_eq!(verified.is_ok(), case["ok"], "{}: {verified:?}", case["name"]);
    }
    assert!(n_cases >= 48, "{n_cases}");
}

fn user_of(der: &Der) -> Result<Option<authz::User>, CertificateError> {
    user_from_subject(&Certificate::parse(der).unwrap())
}

fn from_pem(pem: &str) -> Der {
    Der::from_pem_slice(pem.as_bytes()).unwrap()
}

#[test]
fn the_subject_names_the_user() {
    let leaf = from_pem(include_str!("../../testdata/client.pem"));
    let user = user_of(&leaf).unwrap().unwrap();
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("client_cn", "client_id"));
    assert_eq!(user.groups, ["My Org", "second", "third"]);
    let id = "X509SHA256=a1692d6b568688fab6d48ca6daa9d53e6c22c6dba2b8fdcb162ecfb46b239273";
    assert_eq!(user.extra[crate::CREDENTIAL_ID_KEY], [id]);
    let ca = from_pem(include_str!("../../testdata/ca.pem"));
    let now = at("2030-01-01T00:00:00Z");
    assert!(CertificateAuthorities::new(&[ca]).unwrap().verify_chain(&[leaf], now).is_ok());
}

#[test]
fn a_uid_is_one_string_that_is_not_empty() {
    let two = from_pem(include_str!("../../testdata/two-uids.pem"));
    let error = user_of(&two).unwrap_err();
    assert_eq!(error.to_string(), "expected 1 UID, but found multiple: [a b]");
    let with_uid = |uid: &str| {
        let mut params = client("c");
        let kind = DnType::CustomDnType(UID.to_vec());
        params.distinguished_name.push(kind, rcgen::DnValue::Utf8String(uid.to_owned()));
        root(params).1
    };
    assert_eq!(user_of(&with_uid("u")).unwrap().unwrap().uid, "u");
    assert_eq!(user_of(&with_uid("")), Err(CertificateError::EmptyUid));
    assert_eq!(
        user_of(&with_tag(&with_uid("swordfish"), "swordfish", 0x04)),
        Err(CertificateError::UidNotText)
    );
}

/// The certificate with another type for this text. Its signature does not fit any more.
fn with_tag(der: &Der, text: &str, tag: u8) -> Der {
    let mut bytes = der.to_vec();
    let places: Vec<usize> =
        (2..bytes.len()).filter(|&place| bytes[place..].starts_with(text.as_bytes())).collect();
    for place in places {
        bytes[place - 2] = tag;
    }
    bytes.into()
}

#[test]
fn names_are_read_in_every_string_type() {
    let (_, named) = root(client("swordfish"));
    let name =
        |tag: u8| user_of(&with_tag(&named, "swordfish", tag)).map(|user| user.unwrap().name);
    for tag in [0x0c, 0x13, 0x14, 0x16] {
        assert_eq!(name(tag).as_deref(), Ok("swordfish"), "{tag}");
    }
    // Nine bytes are no UTF-16.
    for tag in [0x04, 0x1e, 0x02] {
        assert_eq!(name(tag), Err(CertificateError::SubjectNotText), "{tag}");
    }
    let mut wide = params("");
    wide.distinguished_name.push(
        DnType::CommonName,
        rcgen::DnValue::BmpString(rcgen::string::BmpString::try_from("añ").unwrap()),
    );
    assert_eq!(user_of(&root(wide).1).unwrap().unwrap().name, "añ");
}

#[test]
fn without_a_common_name_there_is_no_user() {
    let (_, unnamed) = root(client(""));
    assert_eq!(user_of(&unnamed), Ok(None));
    let mut odd = client("c");
    odd.custom_extensions = vec![CustomExtension::from_oid_content(&[1, 2, 3], vec![5, 0])];
    assert_eq!(user_of(&root(odd).1).unwrap().unwrap().name, "c");
}
