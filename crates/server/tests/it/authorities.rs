//! The CAs of clients and of front proxies, and the reload of their files.

use std::path::Path;
use std::time::Duration;

use authn::{FrontProxyHeaders, FrontProxyOptions};
use component_base::CaFiles;
use http::Method;
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use rustls_pki_types::CertificateDer;
use server::ServerOptions;

use crate::client::{Answer, Client};
use crate::cluster::Cluster;

const SELF_REVIEW: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
/// The longest time until the server applies a change of a file. Only a broken server takes so
/// long.
const SOON: Duration = Duration::from_secs(20);

/// A client with a certificate.
struct Holder {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    der: CertificateDer<'static>,
    key: String,
}

fn params(name: &str, change: impl FnOnce(&mut CertificateParams)) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    change(&mut params);
    params
}

fn holder(params: CertificateParams, by: Option<&Holder>) -> Holder {
    let key = KeyPair::generate().unwrap();
    let certificate = match by {
        None => params.self_signed(&key).unwrap(),
        Some(by) => params.signed_by(&key, &by.issuer).unwrap(),
    };
    let (pem, der) = (certificate.pem(), certificate.der().clone());
    let text = key.serialize_pem();
    Holder { issuer: Issuer::new(params, key), pem, der, key: text }
}

fn authority(name: &str) -> Holder {
    holder(params(name, ca), None)
}

fn ca(params: &mut CertificateParams) {
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
}

/// A certificate that claims the group `system:masters`.
fn master(params: &mut CertificateParams) {
    params.distinguished_name.push(DnType::OrganizationName, "system:masters");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
}

fn evil(by: &Holder) -> Holder {
    holder(params("evil", master), Some(by))
}

/// Presents a certificate, and those that lead to its authority.
fn client(cluster: &Cluster, holder: &Holder, others: &[&Holder]) -> Client {
    let others: String = others.iter().map(|own| own.pem.as_str()).collect();
    let chain = format!("{}{others}", holder.pem);
    Client::with_certificate(cluster.address, &cluster.ca, &chain, &holder.key)
}

/// The response to a front proxy that names a user.
async fn ask_as_proxy(client: &Client) -> Answer {
    let headers = [("x-remote-user", "ana"), ("x-remote-group", "system:masters")];
    client.send(Method::POST, SELF_REVIEW, &headers, "{}").await
}

async fn ask(client: &Client) -> Answer {
    client.send(Method::POST, SELF_REVIEW, &[], "{}").await
}

fn trust_proxies(options: &mut ServerOptions, authorities: Vec<CertificateDer<'static>>) {
    options.authentication_options.front_proxy = Some(FrontProxyOptions {
        proxy_authorities: authorities,
        allowed_proxy_names: Vec::new(),
        headers: FrontProxyHeaders::default(),
    });
}

/// The certificates in a file of authorities, and what is presented: the own certificate first.
fn forged() -> Vec<(&'static str, Holder, Vec<Holder>)> {
    let below = |top: Holder, middle: fn(&mut CertificateParams)| {
        let middle = holder(params("middle", middle), Some(&top));
        let leaf = evil(&middle);
        (top, vec![leaf, middle])
    };
    let direct = |top: Holder| {
        let leaf = evil(&top);
        (top, vec![leaf])
    };
    let (client, of_client) = direct(holder(params("client", master), None));
    let (not_ca, of_not_ca) = direct(holder(
        params("ca", |own| {
            ca(own);
            own.is_ca = IsCa::ExplicitNoCa;
        }),
        None,
    ));
    let (no_sign, of_no_sign) = direct(holder(
        params("ca", |own| {
            ca(own);
            own.key_usages = vec![KeyUsagePurpose::CrlSign];
        }),
        None,
    ));
    let (servers, of_servers) = direct(holder(
        params("ca", |own| {
            ca(own);
            own.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        }),
        None,
    ));
    let (short, of_short) = below(
        holder(
            params("ca", |own| {
                ca(own);
                own.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
            }),
            None,
        ),
        ca,
    );
    let (middle_no_sign, of_middle_no_sign) = below(authority("ca"), |own| {
        ca(own);
        own.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    });
    let (middle_not_ca, of_middle_not_ca) = below(authority("ca"), |own| own.is_ca = IsCa::NoCa);
    vec![
        ("a client certificate in the file", client, of_client),
        ("a CA:FALSE certificate in the file", not_ca, of_not_ca),
        ("an authority without keyCertSign", no_sign, of_no_sign),
        ("an authority for servers only", servers, of_servers),
        ("a path longer than pathLen", short, of_short),
        ("an intermediate without keyCertSign", middle_no_sign, of_middle_no_sign),
        ("an intermediate that is no authority", middle_not_ca, of_middle_not_ca),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_in_a_file_of_authorities_is_not_an_authority_by_standing_there() {
    let forged = forged();
    let trusted: Vec<_> = forged.iter().map(|(_, top, _)| top.der.clone()).collect();
    let good = authority("good");
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::start_by(
        folder,
        |_, _| {},
        |options| {
            options.authentication_options.client_authorities = trusted.clone();
            options.authentication_options.client_authorities.push(good.der.clone());
            trust_proxies(options, trusted);
        },
    )
    .await;
    for (name, _, presented) in &forged {
        let (leaf, others) = presented.split_first().unwrap();
        let others: Vec<&Holder> = others.iter().collect();
        let evil = client(&cluster, leaf, &others);
        assert_eq!(ask(&evil).await.code, 401, "{name}");
        assert_eq!(ask_as_proxy(&evil).await.code, 401, "{name}");
    }
    // The nearest things that are trusted: a client of a good authority, and a certificate itself.
    let review = ask(&client(&cluster, &evil(&good), &[])).await.expect(201);
    assert_eq!(review["status"]["userInfo"]["username"], "evil");
    let (_, itself, _) = &forged[0];
    let review = ask(&client(&cluster, itself, &[])).await.expect(201);
    assert_eq!(review["status"]["userInfo"]["username"], "client");
    let review = ask_as_proxy(&client(&cluster, itself, &[])).await.expect(201);
    assert_eq!(review["status"]["userInfo"]["username"], "ana");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_critical_extension_is_no_broken_handshake() {
    let good = authority("good");
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::start_by(
        folder,
        |_, _| {},
        |options| {
            options.authentication_options.client_authorities = vec![good.der.clone()];
        },
    )
    .await;
    for (is_critical, code) in [(true, 401), (false, 201)] {
        let leaf = params("bob", |own| {
            let mut odd = CustomExtension::from_oid_content(&[1, 2, 3, 4, 5], vec![5, 0]);
            odd.set_criticality(is_critical);
            own.custom_extensions = vec![odd];
        });
        let bob = client(&cluster, &holder(leaf, Some(&good)), &[]);
        assert_eq!(ask(&bob).await.code, code, "critical: {is_critical}");
    }
}

fn replace(path: &Path, contents: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, contents).unwrap();
    std::fs::rename(new, path).unwrap();
}

/// Waits until the metric of reloads of a file has counted so many.
async fn reloads(cluster: &Cluster, file: &str, status: &str, n: u32) {
    let line = format!(
        "portcullis_authentication_ca_reloads_total{{file=\"{file}\",status=\"{status}\"}} {n}"
    );
    let counted = async {
        while !cluster.admin().get("/metrics").await.text().lines().any(|own| own == line) {
            crate::polling::pause().await;
        }
    };
    tokio::time::timeout(SOON, counted).await.unwrap_or_else(|_| panic!("not seen: {line}"));
}

/// A removed authority of clients, and one of proxies, on live and on new connections.
#[tokio::test(flavor = "multi_thread")]
async fn removed_authorities_are_not_trusted_any_more() {
    let (old, new) = (authority("old"), authority("new"));
    let (old_client, new_client) = (evil(&old), evil(&new));
    let files = tempfile::tempdir().unwrap();
    for (flag, is_proxy) in [("client-ca-file", false), ("requestheader-client-ca-file", true)] {
        let path = files.path().join(flag);
        std::fs::write(&path, &old.pem).unwrap();
        let follow = CaFiles {
            client_ca_file: (!is_proxy).then(|| path.clone()),
            requestheader_client_ca_file: is_proxy.then(|| path.clone()),
            ca_reload_interval: Duration::from_millis(5),
        };
        let folder = tempfile::tempdir().unwrap();
        let cluster = Cluster::start_by(
            folder,
            |_, _| {},
            |options| {
                options.ca_files = follow;
                match is_proxy {
                    true => trust_proxies(options, vec![old.der.clone()]),
                    false => {
                        options.authentication_options.client_authorities = vec![old.der.clone()]
                    }
                }
            },
        )
        .await;
        let of_old = client(&cluster, &old_client, &[]);
        let of_new = client(&cluster, &new_client, &[]);
        let ask = async |client: &Client| match is_proxy {
            true => ask_as_proxy(client).await.code,
            false => ask(client).await.code,
        };
        let mut live = of_old.session().await;
        let ask_live = async |live: &mut crate::client::Session| {
            let headers = [("x-remote-user", "ana")];
            live.send_with(Method::POST, SELF_REVIEW, &headers, "{}").await.code
        };
        reloads(&cluster, flag, "success", 1).await;
        assert_eq!(ask_live(&mut live).await, 201, "{flag}");
        assert_eq!((ask(&of_old).await, ask(&of_new).await), (201, 401), "{flag}");

        // An unusable file does not replace the authorities in use.
        let cut = &new.pem[..new.pem.len() / 2];
        let key = KeyPair::generate().unwrap().serialize_pem();
        let bad_der = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
        let half_bad = format!("{}{bad_der}", new.pem);
        for (n_before, bad) in ["", cut, &key, bad_der, &half_bad].into_iter().enumerate() {
            replace(&path, bad);
            reloads(&cluster, flag, "failure", n_before as u32 + 1).await;
            assert_eq!((ask(&of_old).await, ask(&of_new).await), (201, 401), "{flag} {bad}");
            assert_eq!(ask_live(&mut live).await, 201, "{flag} {bad}");
        }

        replace(&path, &new.pem);
        reloads(&cluster, flag, "success", 2).await;
        assert_eq!((ask(&of_old).await, ask(&of_new).await), (401, 201), "{flag}");
        assert_eq!(ask_live(&mut live).await, 401, "{flag}");
    }
}

/// A front proxy may name `system:anonymous`, who is in no group then. No flow schema names that user.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_of_a_front_proxy_without_groups_has_a_flow() {
    let top = authority("top");
    let is_client = |own: &mut CertificateParams| {
        own.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    };
    let proxy = holder(params("proxy", is_client), Some(&top));
    let cluster = Cluster::start_by(
        tempfile::tempdir().unwrap(),
        |_, _| {},
        |options| trust_proxies(options, vec![top.der.clone()]),
    )
    .await;
    let headers = [("x-remote-user", "system:anonymous")];
    let of_proxy = client(&cluster, &proxy, &[]);
    let answer = of_proxy.send(Method::GET, "/api/v1/secrets", &headers, "").await;
    assert_eq!(answer.code, 403, "{}", answer.text());
}
