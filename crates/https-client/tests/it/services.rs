//! Calls to Services of the cluster.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use fake_http::{Answer, Authority, Leaf, NOBODY, Peer, ServerTls};
use https_client::{
    CaBundle, Client, Destination, FaultKind, HostPort, Limits, NoCertificateObserver,
    ResolveError, Scheme, ServerTrust, ServiceName, ServiceResolver, Target,
};

use crate::fixture::{close_connections, post};

struct FakeResolver(Mutex<Result<SocketAddr, ResolveError>>);

impl FakeResolver {
    fn set(&self, at: Result<SocketAddr, &str>) {
        *self.0.lock().unwrap() = at.map_err(|why| ResolveError(why.to_owned()));
    }
}

impl ServiceResolver for FakeResolver {
    fn resolve_service(&self, service: &ServiceName) -> Result<HostPort, ResolveError> {
        assert_eq!(service.to_string(), "some-service.some-namespace.svc:443");
        let at = self.0.lock().unwrap().clone()?;
        Ok(HostPort { host: at.ip().to_string(), port: at.port() })
    }

    fn override_address(&self, host: &str, port: u16) -> Option<SocketAddr> {
        assert_eq!((host, port), ("hook.example.test", 80));
        self.0.lock().unwrap().clone().ok()
    }
}

fn service(trust: &str, directory: &Arc<FakeResolver>) -> Client {
    let name = ServiceName {
        namespace: "some-namespace".to_owned(),
        name: "some-service".to_owned(),
        port: Some(443),
    };
    let mut target = Target::new(Destination::Service(name), "");
    target.server_trust = ServerTrust::CaBundle(CaBundle::from_pem(trust.as_bytes()).unwrap());
    let resolver: Arc<dyn ServiceResolver> = directory.clone();
    Client::new(target, Some(resolver), Limits::default(), Arc::new(NoCertificateObserver)).unwrap()
}

/// The client uses the DNS name of the Service and HTTP/1.1, and a new connection goes to the current endpoint.
#[tokio::test]
async fn new_connections_use_the_current_endpoint() {
    let authority = Authority::new("ca").unwrap();
    let leaf = Leaf::server(&["some-service.some-namespace.svc"]);
    let tls = ServerTls::new(authority.issue(&leaf).unwrap()).offer_http2();
    let first = Peer::start_tls(Answer::json("{}"), &tls).unwrap();
    let second = Peer::start_tls(Answer::json("{}"), &tls).unwrap();
    let directory = Arc::new(FakeResolver(Mutex::new(Ok(first.address()))));
    let client = service(&authority.pem(), &directory);
    post(&client).await.unwrap();
    let request = first.requests().remove(0);
    assert_eq!(request.http_version, 1);
    assert_eq!(request.target, "/?timeout=3s");
    assert_eq!(request.header("host"), Some("some-service.some-namespace.svc:443"));
    let name = request.tls.unwrap().server_name;
    assert_eq!(name.as_deref(), Some("some-service.some-namespace.svc"));

    directory.set(Ok(second.address()));
    post(&client).await.unwrap();
    assert_eq!((first.requests().len(), second.requests().len()), (2, 0));
    close_connections(&first).await;
    post(&client).await.unwrap();
    assert_eq!((first.requests().len(), second.requests().len()), (2, 1));
}

#[tokio::test]
async fn unresolvable_and_misdirected_services_fail() {
    let authority = Authority::new("ca").unwrap();
    let reason = "cannot route to service with ClusterIP \"None\"";
    let directory = Arc::new(FakeResolver(Mutex::new(Err(ResolveError(reason.to_owned())))));
    let client = service(&authority.pem(), &directory);
    let url = "Post \"https://some-service.some-namespace.svc:443/?timeout=3s\": ";
    let fault = post(&client).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Dns);
    assert_eq!(fault.message, format!("{url}{reason}"));

    directory.set(Ok(NOBODY));
    assert_eq!(post(&client).await.unwrap_err().kind, FaultKind::Refused);

    let other = ServerTls::new(authority.issue(&Leaf::server(&["other.default.svc"])).unwrap());
    let peer = Peer::start_tls(Answer::json("{}"), &other).unwrap();
    directory.set(Ok(peer.address()));
    let fault = post(&client).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Tls);
    let message = "x509: certificate is valid for other.default.svc, not \
                   some-service.some-namespace.svc";
    assert!(fault.message.ends_with(message), "{fault}");
}

#[tokio::test]
async fn overridden_hosts_bypass_dns() {
    let peer = Peer::start(Answer::json("{}")).unwrap();
    let directory = Arc::new(FakeResolver(Mutex::new(Ok(peer.address()))));
    let place =
        Destination::Url { scheme: Scheme::Http, host: "hook.example.test".to_owned(), port: None };
    let target = Target::new(place, "/authorize");
    let resolver: Arc<dyn ServiceResolver> = directory.clone();
    let client =
        Client::new(target, Some(resolver), Limits::default(), Arc::new(NoCertificateObserver))
            .unwrap();
    post(&client).await.unwrap();
    assert_eq!(peer.requests()[0].header("host"), Some("hook.example.test"));
    close_connections(&peer).await;
    directory.set(Ok(NOBODY));
    let message = "Post \"http://hook.example.test/authorize?timeout=3s\": dial tcp 127.0.0.1:1: \
                   connect: connection refused";
    assert_eq!(post(&client).await.unwrap_err().message, message);
}
