//! Members that want certificates.

use std::fs;
use std::path::{Path, PathBuf};

use etcd_rig::Member;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use store::Store;
use store_etcd::{Etcd, IdentityFiles, Options};
use tempfile::TempDir;

use crate::member::{open_with, options};
use crate::shorthand::{create, text};

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Issuer {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Writes a certificate for loopback, which serves and asks, and its key.
fn issue(directory: &Path, name: &str, by: &Issuer) -> IdentityFiles {
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().unwrap();
    let cert = params.signed_by(&key, by).unwrap();
    let cert_file = write(directory, &format!("{name}.crt"), &cert.pem());
    let key_file = write(directory, &format!("{name}.key"), &key.serialize_pem());
    IdentityFiles { cert_file, key_file }
}

fn write(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, text).unwrap();
    path
}

#[tokio::test]
async fn both_sides_show_certificates() {
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
    let with = |ca_file: &PathBuf, identity: Option<IdentityFiles>| Options {
        ca_file: Some(ca_file.clone()),
        identity,
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
        let store = Etcd::open(refused).await.unwrap();
        assert!(store.health().await.is_err(), "{why}");
    }
}
