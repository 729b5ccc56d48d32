//! Certificates of servers and clients.

use std::sync::Arc;

use fake_http::{Answer, Authority, Issued, Leaf, Peer, ServerTls, self_signed, sha1_signed};
use https_client::{
    Client, ClientCertificate, FaultKind, Limits, PemLocation, Secret, ServerTrust, Target,
};

use crate::fixture::{
    CountingObserver, LONG, client, close_connections, https, post, secure, until,
};

fn identity(issued: &Issued) -> Option<ClientCertificate> {
    let inline = |pem: &str| PemLocation::Inline(Secret::new(pem));
    Some(ClientCertificate {
        certificate_location: inline(&issued.certificate_pem),
        key: inline(&issued.key_pem),
    })
}

/// Connects to a server with this certificate while trusting this CA. Returns the message of the fault and the
/// counts of the observer.
async fn refused(issued: Issued, authority_pem: &str) -> (String, (usize, usize)) {
    let peer = Peer::start_tls(Answer::json("{}"), &ServerTls::new(issued)).unwrap();
    let counted = Arc::new(CountingObserver::default());
    let target = https(peer.address(), authority_pem);
    let client = Client::new(target, None, Limits::default(), counted.clone()).unwrap();
    let fault = post(&client).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Tls, "{fault}");
    assert_eq!(client.check_connection(LONG).await.unwrap_err().kind, FaultKind::Tls);
    assert!(peer.requests().is_empty());
    let prefix = format!(
        "Post \"https://{}/authorize?timeout=3s\": tls: failed to verify certificate: x509: ",
        peer.address()
    );
    let counts = counted.counts();
    // Each weakness is counted once for the call and once for the connection check.
    let message = fault.message.strip_prefix(&prefix).unwrap_or(&fault.message).to_owned();
    (message, (counts.0 / 2, counts.1 / 2))
}

#[tokio::test]
async fn untrusted_server_certificates_are_refused() {
    let authority = Authority::new("ca").unwrap();
    let issue = |leaf: &Leaf| authority.issue(leaf).unwrap();
    let pem = authority.pem();

    let stranger = Authority::new("other").unwrap().issue(&Leaf::loopback()).unwrap();
    let unknown = "certificate signed by unknown authority".to_owned();
    assert_eq!(refused(stranger, &pem).await, (unknown.clone(), (0, 0)));
    assert_eq!(refused(self_signed(&Leaf::loopback()).unwrap(), &pem).await.1, (0, 0));

    let message =
        "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs";
    let wrong_name = issue(&Leaf::server(&["other.example.com"]));
    assert_eq!(refused(wrong_name, &pem).await, (message.to_owned(), (0, 0)));
    let wrong_address = issue(&Leaf::server(&["192.0.2.1", "192.0.2.2"]));
    let message = "certificate is valid for 192.0.2.1, 192.0.2.2, not 127.0.0.1";
    assert_eq!(refused(wrong_address, &pem).await, (message.to_owned(), (0, 0)));

    let (message, counts) = refused(issue(&Leaf::loopback().expired()), &pem).await;
    assert_eq!(counts, (0, 0));
    assert!(message.starts_with("certificate has expired or is not yet valid: current time 2"));
    assert!(message.ends_with(" is after 2021-01-01T00:00:00Z"), "{message}");
    let (message, _) = refused(issue(&Leaf::loopback().not_yet_valid()), &pem).await;
    assert!(message.ends_with(" is before 2110-01-01T00:00:00Z"), "{message}");

    let for_clients = issue(&Leaf { names: vec!["127.0.0.1".to_owned()], ..Leaf::client("x") });
    let message = "certificate specifies an incompatible key usage";
    assert_eq!(refused(for_clients, &pem).await.0, message);
}

#[tokio::test]
async fn insecure_certificates_are_refused_and_counted() {
    let authority = Authority::new("ca").unwrap();
    let nameless = authority.issue(&Leaf::loopback().without_names()).unwrap();
    let (message, counts) = refused(nameless, &authority.pem()).await;
    assert_eq!(message, "certificate relies on legacy Common Name field, use SANs instead");
    assert_eq!(counts, (1, 0));

    let sha1 = sha1_signed();
    let (message, counts) = refused(sha1.issued, &sha1.authority_pem).await;
    assert!(message.contains("insecure algorithm SHA1"), "{message}");
    assert_eq!(counts, (0, 1));
}

#[tokio::test]
async fn insecure_clients_accept_and_count_bad_certificates() {
    let nameless = self_signed(&Leaf::loopback().without_names().expired()).unwrap();
    for (issued, want) in [(nameless, (1, 0)), (sha1_signed().issued, (0, 1))] {
        let peer = Peer::start_tls(Answer::json("{}"), &ServerTls::new(issued)).unwrap();
        let (authority, _) = secure();
        let target = Target {
            server_trust: ServerTrust::DangerousAcceptAny,
            ..https(peer.address(), &authority.pem())
        };
        let counted = Arc::new(CountingObserver::default());
        let client = Client::new(target, None, Limits::default(), counted.clone()).unwrap();
        assert_eq!(post(&client).await.unwrap().status, 200);
        assert_eq!(counted.counts(), want);
    }
}

/// A server certificate in a bundle is trusted itself, but no certificate that it signs is.
#[tokio::test]
async fn a_server_certificate_in_a_bundle_is_not_a_ca() {
    let pretender = Authority::pretended(&Leaf::server(&["other.example.com"])).unwrap();
    let forged = pretender.issue(&Leaf::loopback()).unwrap();
    let message = "certificate signed by unknown authority (possibly because of \"x509: invalid \
                   signature: parent certificate cannot sign this kind of certificate\" while \
                   trying to verify candidate authority certificate)";
    assert_eq!(refused(forged, &pretender.pem()).await, (message.to_owned(), (0, 0)));
}

/// A certificate of `openssl req -x509` is an authority and a server certificate at once.
#[tokio::test]
async fn a_self_signed_ca_certificate_is_trusted() {
    let good = self_signed(&Leaf::loopback()).unwrap();
    let peer = Peer::start_tls(Answer::json("{}"), &ServerTls::new(good.clone())).unwrap();
    let target = https(peer.address(), &good.certificate_pem);
    assert_eq!(post(&client(target)).await.unwrap().status, 200);

    let leaves = [
        (Leaf::loopback().expired(), "is after 2021-01-01T00:00:00Z"),
        (Leaf::loopback().not_yet_valid(), "is before 2110-01-01T00:00:00Z"),
        (Leaf::server(&["a.example.com"]), "because it doesn't contain any IP SANs"),
        (
            Leaf { names: vec!["127.0.0.1".to_owned()], ..Leaf::client("x") },
            "incompatible key usage",
        ),
    ];
    for (leaf, want) in leaves {
        let bad = self_signed(&leaf).unwrap();
        let (message, _) = refused(bad.clone(), &bad.certificate_pem).await;
        assert!(message.ends_with(want), "{message}");
    }
}

/// The CAs of the system do not include the CA of the test.
#[tokio::test]
async fn system_cas_do_not_trust_the_test_ca() {
    let (authority, tls) = secure();
    let peer = Peer::start_tls(Answer::json("{}"), &tls).unwrap();
    let target =
        Target { server_trust: ServerTrust::System, ..https(peer.address(), &authority.pem()) };
    let fault = post(&client(target)).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Tls);
    assert!(fault.message.ends_with("certificate signed by unknown authority"), "{fault}");
}

#[tokio::test]
async fn the_server_name_is_sent_and_verified() {
    let authority = Authority::new("ca").unwrap();
    let tls = ServerTls::new(authority.issue(&Leaf::server(&["hook.example.com"])).unwrap());
    let peer = Peer::start_tls(Answer::json("{}"), &tls).unwrap();
    let named = |name: &str| Target {
        server_name: Some(name.to_owned()),
        ..https(peer.address(), &authority.pem())
    };
    post(&client(named("hook.example.com"))).await.unwrap();
    let request = peer.requests().remove(0);
    assert_eq!(request.tls.unwrap().server_name.as_deref(), Some("hook.example.com"));
    let fault = post(&client(named("b.example.com"))).await.unwrap_err();
    let message = "x509: certificate is valid for hook.example.com, not b.example.com";
    assert!(fault.message.ends_with(message), "{fault}");
}

#[tokio::test]
async fn mutual_tls() {
    let (authority, tls) = secure();
    let ours = authority.issue(&Leaf::client("portcullis")).unwrap();
    let strict = tls.clone().require_clients_of(&authority.pem());
    for (tls, certificate) in [(&strict, identity(&ours)), (&tls, identity(&ours)), (&tls, None)] {
        let peer = Peer::start_tls(Answer::json("{}"), tls).unwrap();
        let target = https(peer.address(), &authority.pem());
        let client = client(Target { client_certificate: certificate, ..target });
        client.check_connection(LONG).await.unwrap();
        assert_eq!(post(&client).await.unwrap().status, 200);
        let is_shown = peer.requests()[0].tls.as_ref().unwrap().client_certificate.is_some();
        assert_eq!(is_shown, tls.clients.is_some());
    }
}

/// The client may see the end of the connection before the alert of the server.
#[tokio::test]
async fn a_server_refuses_the_client_certificate() {
    let (authority, tls) = secure();
    let strict = tls.require_clients_of(&authority.pem());
    let stranger = Authority::new("other").unwrap().issue(&Leaf::client("x")).unwrap();
    let expired = authority.issue(&Leaf::client("x").expired()).unwrap();
    for certificate in [None, identity(&stranger), identity(&expired)] {
        let peer = Peer::start_tls(Answer::json("{}"), &strict).unwrap();
        let target = https(peer.address(), &authority.pem());
        let client = client(Target { client_certificate: certificate, ..target });
        let fault = post(&client).await.unwrap_err();
        match fault.kind {
            FaultKind::Tls => assert!(fault.message.contains(": remote error: tls: "), "{fault}"),
            FaultKind::Reset => {}
            _ => panic!("{fault}"),
        }
        until(|| peer.n_failed_handshakes() == 1).await;
        assert!(peer.requests().is_empty());
    }
}

#[tokio::test]
async fn new_connections_present_a_renewed_client_certificate() {
    let (authority, tls) = secure();
    let directory = tempfile::tempdir().unwrap();
    let first = authority.issue(&Leaf::client("first")).unwrap();
    let second = authority.issue(&Leaf::client("second")).unwrap();
    let (certificate, key) = first.write(directory.path(), "tls").unwrap();
    let peer =
        Peer::start_tls(Answer::json("{}"), &tls.require_clients_of(&authority.pem())).unwrap();
    let identity = ClientCertificate {
        certificate_location: PemLocation::File(certificate),
        key: PemLocation::File(key),
    };
    let target = https(peer.address(), &authority.pem());
    let client = client(Target { client_certificate: Some(identity), ..target });
    let shown = async || {
        post(&client).await.unwrap();
        close_connections(&peer).await;
        peer.handshakes().last().unwrap().client_certificate.clone().unwrap()
    };
    let before = shown().await;
    // After a change of only one of the two files, the client still uses the previous pair.
    std::fs::write(directory.path().join("tls.crt"), &second.certificate_pem).unwrap();
    assert_eq!(shown().await, before);
    std::fs::write(directory.path().join("tls.key"), &second.key_pem).unwrap();
    let after = shown().await;
    assert_ne!(after, before);
    assert!(after.windows(6).any(|window| window == b"second"));
    std::fs::remove_file(directory.path().join("tls.key")).unwrap();
    assert_eq!(shown().await, after);
}
