//! The CA bundle that the client trusts, and the client certificate.

use document::WarningCode;
use https_client::{CaBundle, PemLocation, ServerTrust};

use crate::test_folder::{TestFolder, base64, config, is_at};

const SERVER: &str = "server: 'https://h'";

fn cluster(rest: &str) -> String {
    config(&format!("{SERVER}, {rest}"), "")
}

fn user(rest: &str) -> String {
    config(SERVER, rest)
}

#[test]
fn ca_bundles_come_from_a_file_or_inline_data() {
    let test_folder = TestFolder::new();
    let pem = std::fs::read(test_folder.path("ca.pem")).unwrap();
    let roots = ServerTrust::CaBundle(CaBundle::from_pem(&pem).unwrap());
    let connection = test_folder.connection(&cluster("certificate-authority: ./ca.pem"));
    assert_eq!(connection.client_target.server_trust, roots);
    assert_eq!(test_folder.names(&connection.source_files), ["config", "ca.pem"]);
    let absolute = format!("certificate-authority: '{}'", test_folder.path("ca.pem").display());
    assert_eq!(test_folder.connection(&cluster(&absolute)).client_target.server_trust, roots);
    let data = format!("certificate-authority-data: {}", base64(&pem));
    let connection = test_folder.connection(&cluster(&data));
    assert_eq!(connection.client_target.server_trust, roots);
    assert_eq!(test_folder.names(&connection.source_files), ["config"]);
    assert_eq!(test_folder.connection(&user("")).client_target.server_trust, ServerTrust::System);
}

#[test]
fn ca_bundles_conflict_with_each_other_and_the_insecure_flag() {
    let test_folder = TestFolder::new();
    assert_eq!(
        test_folder
            .refusal(&cluster("certificate-authority: ca.pem, certificate-authority-data: YQ==")),
        "2:57 invalid configuration: certificate-authority-data and certificate-authority are both \
         specified for . certificate-authority-data will override."
    );
    for ca in ["certificate-authority: ca.pem", "certificate-authority-data: YQ=="] {
        let message =
            test_folder.refusal(&cluster(&format!("{ca}, insecure-skip-tls-verify: true")));
        assert!(
            message.ends_with(
                " specifying a root certificates file with the insecure flag is not allowed"
            ),
            "{message}"
        );
    }
    let connection = test_folder.connection(&cluster("insecure-skip-tls-verify: true"));
    assert_eq!(connection.client_target.server_trust, ServerTrust::DangerousAcceptAny);
    assert_eq!(connection.warnings[0].code, WarningCode::UnverifiedServer);
}

#[test]
fn whk_51_invalid_ca_bundles_are_refused() {
    let test_folder = TestFolder::new();
    let data = |bytes: &[u8]| format!("certificate-authority-data: {}", base64(bytes));
    let key = test_folder.client.key_pem.clone();
    for (ca, want) in [
        (data(b"junk"), "unable to parse bytes as PEM block"),
        (data(key.as_bytes()), "no valid certificate authority data seen"),
        ("certificate-authority: junk".to_owned(), "unable to parse bytes as PEM block"),
        (
            "certificate-authority: client.key".to_owned(),
            "no valid certificate authority data seen",
        ),
    ] {
        let message = test_folder.refusal(&cluster(&ca));
        assert!(
            message.ends_with(&format!(" unable to load root certificates: {want}")),
            "{message}"
        );
    }
}

#[test]
fn client_certificate_files_are_not_inlined() {
    let test_folder = TestFolder::new();
    let connection =
        test_folder.connection(&user("client-certificate: client.pem, client-key: client.key"));
    let identity = connection.client_target.client_certificate.unwrap();
    let is_file = |material: &PemLocation, name: &str| match material {
        PemLocation::File(path) => is_at(path, &test_folder, name),
        PemLocation::Inline(_) => false,
    };
    assert!(
        is_file(&identity.certificate_location, "client.pem")
            && is_file(&identity.key, "client.key")
    );
    assert_eq!(test_folder.names(&connection.source_files), ["config", "client.pem", "client.key"]);

    let data = base64(test_folder.client.key_pem.as_bytes());
    let mixed = user(&format!("client-certificate: client.pem, client-key-data: {data}"));
    let identity = test_folder.connection(&mixed).client_target.client_certificate.unwrap();
    assert!(is_file(&identity.certificate_location, "client.pem"));
    assert!(matches!(identity.key, PemLocation::Inline(_)));

    // As in Kubernetes, a key without a certificate is ignored.
    assert_eq!(
        test_folder.connection(&user("client-key: missing")).client_target.client_certificate,
        None
    );
}

#[test]
fn duplicate_or_incomplete_client_certificates() {
    let test_folder = TestFolder::new();
    let invalid = |rest: &str| {
        let message = test_folder.refusal(&user(rest));
        message.split_once(" invalid configuration: ").unwrap().1.to_owned()
    };
    assert_eq!(
        invalid("client-certificate: client.pem"),
        "client-key-data or client-key must be specified for  to use the clientCert authentication \
         method."
    );
    assert_eq!(
        invalid(
            "client-certificate: client.pem, client-certificate-data: YQ==, client-key: client.key"
        ),
        "client-cert-data and client-cert are both specified for . client-cert-data will override."
    );
    assert_eq!(
        invalid("client-certificate: client.pem, client-key: client.key, client-key-data: YQ=="),
        "client-key-data and client-key are both specified for ; client-key-data will override"
    );
    assert_eq!(
        invalid("client-certificate: no.pem, client-key: no.key"),
        "[unable to read client-cert no.pem for  due to open no.pem: no such file or directory, \
         unable to read client-key no.key for  due to open no.key: no such file or directory]"
    );
}

#[test]
fn whk_52_mismatched_certificate_and_key_are_refused() {
    let test_folder = TestFolder::new();
    let other = fake_http::self_signed(&fake_http::Leaf::client("other")).unwrap();
    test_folder.write("other.key", &other.key_pem);
    for (certificate, key, want) in [
        (
            "client.key",
            "client.pem",
            "4:3 tls: failed to find certificate PEM data in certificate input, but did find a \
             private key; PEM inputs may have been switched",
        ),
        ("client.pem", "other.key", "4:3 tls: private key does not match public key"),
        ("junk", "client.key", "4:3 tls: failed to find any PEM data in certificate input"),
        ("client.pem", "junk", "4:3 tls: failed to find any PEM data in key input"),
    ] {
        let config = user(&format!("client-certificate: {certificate}, client-key: {key}"));
        assert_eq!(test_folder.refusal(&config), want);
    }
}
