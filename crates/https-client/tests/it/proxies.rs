//! Calls through HTTP proxies, with and without a tunnel.

use std::net::SocketAddr;

use fake_http::{Answer, Asked, Authority, Leaf, Peer, Relay, RelayKind, ServerTls};
use https_client::{Client, Destination, FaultKind, Proxy, ProxyUrl, Target};

use crate::fixture::{client, http, https, post};

const NAME: &str = "hook.example.test";

fn asked(target: &str, login: Option<(&str, &str)>) -> Asked {
    let login = login.map(|(user, password)| (user.to_owned(), password.to_owned()));
    Asked { target: target.to_owned(), login }
}

fn through(relay: &str, address: SocketAddr, base: Target) -> Client {
    let Destination::Url { scheme, .. } = base.destination else { panic!("not a URL") };
    let place = Destination::Url { scheme, host: NAME.to_owned(), port: Some(address.port()) };
    let proxy = Proxy::Url(ProxyUrl::parse(relay).unwrap());
    client(Target { destination: place, proxy, ..base })
}

/// For each kind of proxy: one call over TLS and one over plain HTTP, with a login.
#[tokio::test]
async fn calls_through_each_proxy_type() {
    let authority = Authority::new("ca").unwrap();
    let issued = authority.issue(&Leaf::server(&[NAME, "127.0.0.1"])).unwrap();
    let tls = ServerTls::new(issued);
    let sealed = Peer::start_tls(Answer::json("{}"), &tls).unwrap();
    let clear = Peer::start(Answer::json("{}")).unwrap();
    let names = [&sealed, &clear].map(|peer| format!("{NAME}:{}", peer.address().port()));
    let routes = [(&*names[0], sealed.address()), (&*names[1], clear.address())];
    let login = Some(("us@er", "pass"));
    let kinds = [
        ("http", RelayKind::Http),
        ("https", RelayKind::Https(Box::new(tls.clone()))),
        ("socks5", RelayKind::Socks5),
    ];
    for (scheme, kind) in kinds {
        let relay = Relay::start(kind, login, &routes).unwrap();
        let url = format!("{scheme}://us%40er:pass@{}", relay.address());
        let secure = https(sealed.address(), &authority.pem());
        let client = through(&url, sealed.address(), secure);
        assert_eq!(post(&client).await.unwrap().status, 200, "{scheme}");
        assert_eq!(post(&client).await.unwrap().status, 200, "{scheme}");
        let trusted = Target {
            server_trust: https(clear.address(), &authority.pem()).server_trust,
            ..http(clear.address())
        };
        assert_eq!(post(&through(&url, clear.address(), trusted)).await.unwrap().status, 200);
        assert_eq!(relay.asked(), [asked(&names[0], login), asked(&names[1], login)], "{scheme}");
    }
    let requests = sealed.requests();
    assert_eq!(requests.len(), 6);
    for request in requests {
        assert_eq!(request.target, "/authorize?timeout=3s");
        assert_eq!(request.header("host"), Some(&*names[0]));
        assert_eq!(request.header("proxy-authorization"), None);
        assert_eq!(request.tls.unwrap().server_name.as_deref(), Some(NAME));
    }
    for request in clear.requests() {
        assert_eq!(request.target, "/authorize?timeout=3s");
        assert_eq!(request.header("proxy-authorization"), None);
    }
}

/// L1: a tunnel that the proxy did not open is not used.
#[tokio::test]
async fn proxies_that_refuse() {
    let authority = Authority::new("ca").unwrap();
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 443));
    for (scheme, kind, want) in [
        ("http", RelayKind::Http, ": Proxy Authentication Required"),
        ("socks5", RelayKind::Socks5, ": username/password authentication failed"),
    ] {
        let relay = Relay::start(kind, Some(("a", "b")), &[]).unwrap();
        let url = format!("{scheme}://a:hunter2@{}", relay.address());
        let fault =
            post(&through(&url, nowhere, https(nowhere, &authority.pem()))).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Other);
        assert!(fault.message.ends_with(want), "{fault}");
        assert!(!fault.message.contains("hunter2"), "{fault}");
    }
    for (scheme, kind, want) in [
        ("http", RelayKind::Http, ": Bad Gateway"),
        ("socks5", RelayKind::Socks5, ": unknown error connection refused"),
    ] {
        let relay = Relay::start(kind, None, &[]).unwrap();
        let url = format!("{scheme}://{}", relay.address());
        let fault =
            post(&through(&url, nowhere, https(nowhere, &authority.pem()))).await.unwrap_err();
        assert!(fault.message.ends_with(want), "{fault}");
    }
}

#[tokio::test]
async fn unreachable_proxy() {
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 443));
    let client = through("http://127.0.0.1:1", nowhere, http(nowhere));
    let fault = post(&client).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Refused);
    let message = "Post \"http://hook.example.test:443/authorize?timeout=3s\": proxyconnect tcp: \
                   dial tcp 127.0.0.1:1: connect: connection refused";
    assert_eq!(fault.message, message);
}
