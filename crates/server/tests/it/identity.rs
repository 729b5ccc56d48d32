//! The user that a client certificate authenticates.

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair};
use serde_json::json;

use crate::client::Client;
use crate::cluster::Cluster;

/// A certificate of the cluster's authority for bob of the group dev.
fn issue(cluster: &Cluster, purpose: ExtendedKeyUsagePurpose) -> (String, String) {
    let mut authority = CertificateParams::default();
    authority.distinguished_name.push(DnType::CommonName, "portcullis-ca");
    let ca_key = std::fs::read_to_string(cluster.pki.client_ca_file.with_extension("key")).unwrap();
    let issuer = Issuer::new(authority, KeyPair::from_pem(&ca_key).unwrap());
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::OrganizationName, "dev");
    params.distinguished_name.push(DnType::CommonName, "bob");
    params.extended_key_usages = vec![purpose];
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    (certificate.pem(), key.serialize_pem())
}

/// The subject of a client certificate is the user and the groups.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_certificate_names_user_and_groups() {
    let cluster = Cluster::start().await;
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let (certificate, key) = issue(&cluster, ExtendedKeyUsagePurpose::ClientAuth);
    let bob = Client::with_certificate(cluster.address, &cluster.ca, &certificate, &key);
    let review = bob.post(path, &json!({})).await.expect(201);
    let user = &review["status"]["userInfo"];
    assert_eq!(user["username"], "bob");
    assert_eq!(user["groups"], json!(["dev", "system:authenticated"]));
    let credential = user["extra"]["authentication.kubernetes.io/credential-id"][0].as_str();
    assert!(credential.is_some_and(|own| own.starts_with("X509SHA256=")), "{user}");
    // A certificate that is for servers is none for a client.
    let (certificate, key) = issue(&cluster, ExtendedKeyUsagePurpose::ServerAuth);
    let nobody = Client::with_certificate(cluster.address, &cluster.ca, &certificate, &key);
    nobody.post(path, &json!({})).await.expect(401);
}
