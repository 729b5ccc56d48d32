//! Members that require client certificates.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use etcd_testing::Member;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use store::Store;
use store_etcd::{ClientCertificateFiles, EtcdStore, Options};
use tempfile::TempDir;

use crate::member::{open_with, options};
use crate::shorthand::{create, text};

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Issuer {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Writes a certificate for loopback and its key, for servers and clients.
fn issue(directory: &Path, name: &str, by: &Issuer) -> ClientCertificateFiles {
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().unwrap();
    let cert = params.signed_by(&key, by).unwrap();
    let cert_file = write(directory, &format!("{name}.crt"), &cert.pem());
    let key_file = write(directory, &format!("{name}.key"), &key.serialize_pem());
    ClientCertificateFiles { cert_file, key_file }
}

fn write(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, text).unwrap();
    path
}

#[tokio::test]
async fn mutual_tls() {
    let directory = TempDir::new().unwrap();
    let (ours, other) = (authority(), authority());
    let ca_file = write(directory.path(), "ca.crt", &ours.pem());
    let other_file = write(directory.path(), "other.crt", &other.pem());
    let server = issue(directory.path(), "server", &ours);
    let client = issue(directory.path(), "client", &ours);
    let stranger = issue(directory.path(), "stranger", &other);
    let member = Member::alone_with(
        "https",
        &[
            &format!("--cert-file={}", server.cert_file.display()),
            &format!("--key-file={}", server.key_file.display()),
            &format!("--trusted-ca-file={}", ca_file.display()),
            "--client-cert-auth",
        ],
    );
    let with = |ca_file: &PathBuf, client_certificate: Option<ClientCertificateFiles>| Options {
        ca_file: Some(ca_file.clone()),
        client_certificate,
        ..options(&[&member])
    };
    let store = open_with(with(&ca_file, Some(client.clone()))).await;
    create(&store, "a", "1").await;
    assert_eq!(text(&store, "a").await.as_deref(), Some("1"));
    for (refused, why) in [
        (with(&ca_file, None), "a client without certificate"),
        (with(&ca_file, Some(stranger)), "a client with a certificate of somebody else"),
        (with(&other_file, Some(client)), "a member with a certificate of somebody else"),
    ] {
        let store = EtcdStore::open(refused).await.unwrap();
        assert!(store.check_health().await.is_err(), "{why}");
    }
}

/// Every new connection uses the current content of the certificate files.
#[tokio::test]
async fn files_are_read_again_for_new_connections() {
    let directory = TempDir::new().unwrap();
    let (ours, other) = (authority(), authority());
    let member_ca = write(directory.path(), "member-ca.crt", &ours.pem());
    let server = issue(directory.path(), "server", &ours);
    let member = Member::alone_with(
        "https",
        &[
            &format!("--cert-file={}", server.cert_file.display()),
            &format!("--key-file={}", server.key_file.display()),
            &format!("--trusted-ca-file={}", member_ca.display()),
            "--client-cert-auth",
        ],
    );
    // The member works, so later failures are refusals.
    let known = issue(directory.path(), "known", &ours);
    let with = |ca_file: &PathBuf, client_certificate: ClientCertificateFiles| Options {
        ca_file: Some(ca_file.clone()),
        client_certificate: Some(client_certificate),
        ..options(&[&member])
    };
    open_with(with(&member_ca, known)).await;
    let ca_file = write(directory.path(), "ca.crt", &other.pem());
    let client = issue(directory.path(), "client", &other);
    let store = EtcdStore::open(with(&ca_file, client.clone())).await.unwrap();
    assert!(store.check_health().await.is_err(), "nobody knows anybody");
    fs::write(&ca_file, ours.pem()).unwrap();
    assert!(store.check_health().await.is_err(), "the member does not know us");
    issue(directory.path(), "client", &ours);
    healthy(&store).await;
    // While certificate and key do not match, the previous pair stays in use.
    fs::write(&client.key_file, KeyPair::generate().unwrap().serialize_pem()).unwrap();
    assert!(store.check_health().await.is_ok());
}

/// Waits until the store is healthy. The store probes a failed member at an interval.
async fn healthy(store: &EtcdStore) {
    let answered = async {
        while store.check_health().await.is_err() {
            // waits for a real process: etcd, which the store probes
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), answered).await.unwrap();
}

/// A member certificate in the CA file is trusted itself, but no certificate that it has signed.
#[tokio::test]
async fn a_member_certificate_in_the_ca_file_is_not_a_ca() {
    let directory = TempDir::new().unwrap();
    let loopback = || CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let key = KeyPair::generate().unwrap();
    let pretender = CertifiedIssuer::self_signed(loopback(), key).unwrap();
    let own = ClientCertificateFiles {
        cert_file: write(directory.path(), "own.crt", &pretender.pem()),
        key_file: write(directory.path(), "own.key", &pretender.key().serialize_pem()),
    };
    let forged = issue(directory.path(), "forged", &pretender);
    for (shown, is_trusted) in [(&forged, false), (&own, true)] {
        let member = Member::alone_with(
            "https",
            &[
                &format!("--cert-file={}", shown.cert_file.display()),
                &format!("--key-file={}", shown.key_file.display()),
            ],
        );
        let trusting =
            |ca_file: &PathBuf| Options { ca_file: Some(ca_file.clone()), ..options(&[&member]) };
        open_with(trusting(&shown.cert_file)).await;
        let store = EtcdStore::open(trusting(&own.cert_file)).await.unwrap();
        let health = store.check_health().await;
        assert_eq!(health.is_ok(), is_trusted, "{health:?}");
    }
}
