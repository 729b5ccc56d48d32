//! The client resolves a name once for each connection, and connects to the resolved address.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use fake_http::{Answer, Authority, Leaf, Peer, ServerTls};
use https_client::{
    CaBundle, Client, Destination, FaultKind, HostPort, Limits, NoCertificateObserver,
    ResolveError, ServerTrust, ServiceName, ServiceResolver, Target,
};

use crate::fixture::{close_connections, post};

/// A resolver that returns another address each time, and fails when it is called too often.
struct ChangingResolver(Mutex<VecDeque<SocketAddr>>);

impl ServiceResolver for ChangingResolver {
    fn resolve_service(&self, _: &ServiceName) -> Result<HostPort, ResolveError> {
        let next = self.0.lock().unwrap().pop_front();
        let at = next.ok_or_else(|| ResolveError("asked too often".to_owned()))?;
        Ok(HostPort { host: at.ip().to_string(), port: at.port() })
    }
}

/// L6: a name cannot change its address between the check and the dial, because it is resolved only once for a
/// connection.
#[tokio::test]
async fn an_answer_that_changes_is_used_as_it_was_given() {
    let authority = Authority::new("ca").unwrap();
    let leaf = Leaf::server(&["some-service.some-namespace.svc"]);
    let tls = ServerTls::new(authority.issue(&leaf).unwrap());
    let peers = [(); 2].map(|()| Peer::start_tls(Answer::json("{}"), &tls).unwrap());
    let directory = ChangingResolver(Mutex::new(peers.iter().map(Peer::address).collect()));
    let name = ServiceName {
        namespace: "some-namespace".to_owned(),
        name: "some-service".to_owned(),
        port: Some(443),
    };
    let mut target = Target::new(Destination::Service(name), "");
    target.server_trust =
        ServerTrust::CaBundle(CaBundle::from_pem(authority.pem().as_bytes()).unwrap());
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

/// A19: the address is checked for every connection, so a name that changes from a permitted to a forbidden
/// address is refused.
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
        port: Some(443),
    };
    let mut target = Target::new(Destination::Service(name), "");
    target.server_trust =
        ServerTrust::CaBundle(CaBundle::from_pem(authority.pem().as_bytes()).unwrap());
    let resolver: Arc<dyn ServiceResolver> = Arc::new(ChangingResolver(Mutex::new(places.into())));
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
