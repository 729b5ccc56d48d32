//! A place is resolved once for a connection, and the connection leads there.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use fake_http::{Answer, Authority, Leaf, Peer, ServerTls};
use https_client::{
    CaBundle, Client, Destination, FaultKind, HostPort, Limits, NoCertificateObserver,
    ResolveError, ServiceName, ServiceResolver, Target, Trust,
};

use crate::fixture::{close_connections, post};

/// A directory with another answer each time, which fails when it is asked too often.
struct Rebinding(Mutex<VecDeque<SocketAddr>>);

impl ServiceResolver for Rebinding {
    fn resolve_service(&self, _: &ServiceName) -> Result<HostPort, ResolveError> {
        let next = self.0.lock().unwrap().pop_front();
        let at = next.ok_or_else(|| ResolveError("asked too often".to_owned()))?;
        Ok(HostPort { host: at.ip().to_string(), port: at.port() })
    }
}

/// L6: a name can not resolve to something else after the check, because there is no second
/// time for one connection.
#[tokio::test]
async fn an_answer_that_changes_is_used_as_it_was_given() {
    let authority = Authority::new("ca").unwrap();
    let leaf = Leaf::server(&["some-service.some-namespace.svc"]);
    let tls = ServerTls::new(authority.issue(&leaf).unwrap());
    let peers = [(); 2].map(|()| Peer::start_tls(Answer::json("{}"), &tls).unwrap());
    let directory = Rebinding(Mutex::new(peers.iter().map(Peer::address).collect()));
    let name = ServiceName {
        namespace: "some-namespace".to_owned(),
        name: "some-service".to_owned(),
        port: 443,
    };
    let mut target = Target::new(Destination::Service(name), "");
    target.trust = Trust::CaBundle(CaBundle::from_pem(authority.pem().as_bytes()).unwrap());
    let resolver: Arc<dyn ServiceResolver> = Arc::new(directory);
    let client =
        Client::new(target, Some(resolver), Limits::default(), Arc::new(NoCertificateObserver))
            .unwrap();
    let counts = || [peers[0].n_requests(), peers[1].n_requests()];
    for _ in 0..2 {
        post(&client).await.unwrap();
    }
    assert_eq!(counts(), [2, 0]);
    close_connections(&peers[0]).await;
    post(&client).await.unwrap();
    assert_eq!(counts(), [2, 1]);
}

/// A19: an address is checked for every connection, so a name that leads to a permitted address first and
/// to another one later gains nothing by it.
#[tokio::test]
async fn a19_each_connection_is_checked() {
    let authority = Authority::new("ca").unwrap();
    let leaf = Leaf::server(&["some-service.some-namespace.svc"]);
    let tls = ServerTls::new(authority.issue(&leaf).unwrap());
    let peer = Peer::start_tls(Answer::json("{}"), &tls).unwrap();
    let metadata = SocketAddr::from(([169, 254, 169, 254], 443));
    let places = [peer.address(), metadata, peer.address()];
    let name = ServiceName {
        namespace: "some-namespace".to_owned(),
        name: "some-service".to_owned(),
        port: 443,
    };
    let mut target = Target::new(Destination::Service(name), "");
    target.trust = Trust::CaBundle(CaBundle::from_pem(authority.pem().as_bytes()).unwrap());
    let resolver: Arc<dyn ServiceResolver> = Arc::new(Rebinding(Mutex::new(places.into())));
    let client =
        Client::new(target, Some(resolver), Limits::default(), Arc::new(NoCertificateObserver))
            .unwrap();
    post(&client).await.unwrap();
    close_connections(&peer).await;
    let fault = post(&client).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::AddressRefused, "{fault}");
    let want = "dial tcp 169.254.169.254:443: webhooks may not be at a link-local address";
    assert!(fault.message.ends_with(want), "{fault}");
    post(&client).await.unwrap();
    assert_eq!(peer.n_requests(), 2);
}
