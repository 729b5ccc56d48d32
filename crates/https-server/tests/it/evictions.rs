//! What happens when there are more peers than connections.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use https_server::{Body, Limits};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::host::{Client, Host, request, soon, text};

/// Serves users, whose names are in a header; `root` is an administrator. The response to `/watch` has a first
/// line and no end.
fn host(limits: Limits) -> Arc<Host> {
    Arc::new(Host::start(limits, |request, connection| async move {
        let user = request.headers().get("x-user").map(|own| own.to_str().unwrap().to_owned());
        if let Some(user) = &user
            && connection.record_authenticated_user(user, user == "root").is_err()
        {
            connection.close();
            let mut response = Response::new(Body::empty_body());
            *response.status_mut() = http::StatusCode::TOO_MANY_REQUESTS;
            return response;
        }
        if request.uri().path() == "/watch" {
            let (sender, body) = Body::from_channel(1);
            sender.send("begin".into()).await.unwrap();
            tokio::spawn(async move { sender.wait_for_disconnect().await });
            return Response::new(body);
        }
        Response::new(Body::from(user.unwrap_or_default()))
    }))
}

fn by(user: &str, target: &str) -> Request<Full<Bytes>> {
    let mut request = request(target, "");
    request.headers_mut().insert("x-user", user.parse().unwrap());
    request
}

/// A connection of a user, with one answer.
async fn connect(host: &Host, user: &str) -> http1::SendRequest<Full<Bytes>> {
    let mut sender = soon("a connection", host.http1(&Client::default())).await;
    let answer = soon("an answer", sender.send_request(by(user, "/"))).await.unwrap();
    assert_eq!(text(answer).await, user);
    sender
}

/// Whether a user gets a connection and an answer at the first attempt. A handshake that takes long may be given
/// up while others begin.
async fn is_served(host: &Host, user: &str) -> bool {
    let client = Client { alpn: "http/1.1", ..Client::default() };
    let Ok(stream) = host.tls(&client).await else { return false };
    let Ok((mut sender, connection)) = http1::handshake(TokioIo::new(stream)).await else {
        return false;
    };
    tokio::spawn(connection);
    match sender.send_request(by(user, "/")).await {
        Ok(answer) => text(answer).await == user,
        Err(_) => false,
    }
}

/// A watch of a user, which stays open until it is dropped.
async fn watch(host: &Host, user: &str) -> hyper::body::Incoming {
    let mut sender = soon("a connection", host.http1(&Client::default())).await;
    let answer = soon("an answer", sender.send_request(by(user, "/watch"))).await.unwrap();
    assert_eq!(answer.status(), 200);
    let mut body = answer.into_body();
    begin(&mut body).await;
    // The connection lives as long as its body.
    tokio::spawn(async move { sender.ready().await });
    body
}

async fn begin(body: &mut hyper::body::Incoming) {
    let frame = soon("the first line", body.frame()).await.unwrap().unwrap();
    assert_eq!(frame.into_data().unwrap(), "begin");
}

async fn is_open(body: &mut hyper::body::Incoming) -> bool {
    tokio::time::timeout(Duration::from_millis(100), body.frame()).await.is_err()
}

/// A12: peers that only hold connections, half of them in the handshake, make room for others. A watch stays
/// open, and whoever connects is served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a12_peers_that_hold_connections_keep_nobody_out() {
    let limits = Limits {
        connections_max: 40,
        unauthenticated_per_address_max: 30,
        handshakes_max: 10,
        ..Limits::default()
    };
    let host = host(limits);
    let mut watching = watch(&host, "jane").await;
    let attack = {
        let host = Arc::clone(&host);
        tokio::spawn(async move {
            let (mut half_open, mut open) = (Vec::new(), Vec::new());
            for _ in 0..200 {
                half_open.push(TcpStream::connect(host.address).await);
                // The handshake may be given up for that of the next one.
                open.push(host.tls(&Client::default()).await);
            }
            (half_open, open)
        })
    };
    for n in 0..20 {
        let user = format!("user-{n}");
        soon("an answer under attack", async { while !is_served(&host, &user).await {} }).await;
    }
    let held = soon("the end of the attack", attack).await.unwrap();
    let mut innocent = connect(&host, "joe").await;
    assert!(is_open(&mut watching).await, "a watch was closed");
    let answer = innocent.send_request(by("joe", "/")).await.unwrap();
    assert_eq!(text(answer).await, "joe");
    let n_open = host.shutdown.n_connections();
    assert!(n_open <= 45, "{n_open} connections are open");
    for limit in ["`handshakes`", "`address`"] {
        host.trouble_with(&format!("closed at the limit {limit}")).await;
    }
    drop(held);
}

/// A connection with a request under way is never closed for another one, and one without is.
#[tokio::test]
async fn full_of_watches_the_next_peer_is_refused() {
    let host = host(Limits {
        connections_max: 2,
        loopback_reserve_connections_max: 0,
        ..Limits::default()
    });
    let mut first = watch(&host, "jane").await;
    let mut second = watch(&host, "joe").await;
    let mut stream = TcpStream::connect(host.address).await.unwrap();
    let end = soon("the refusal", stream.read(&mut [0; 1])).await;
    assert!(end.is_err() || end.unwrap() == 0);
    host.trouble_with("refused at the limit `connections`").await;
    assert!(is_open(&mut first).await && is_open(&mut second).await);
    drop(first);
    soon("room", async {
        while host.shutdown.n_connections() > 1 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let mut idle = connect(&host, "ada").await;
    let _other = connect(&host, "bob").await;
    soon("the end of the idle connection", async {
        while !idle.is_closed() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(idle.send_request(by("ada", "/")).await.is_err());
    assert!(is_open(&mut second).await);
}

/// Another user's connections never go at the limit of one user.
#[tokio::test]
async fn a_user_with_too_many_connections_closes_none_of_others() {
    let host = host(Limits { connections_per_user_max: 2, ..Limits::default() });
    let mut innocent = connect(&host, "joe").await;
    let mut first = watch(&host, "mallory").await;
    let idle = connect(&host, "mallory").await;
    let mut third = watch(&host, "mallory").await;
    soon("the end of the idle connection", async {
        while !idle.is_closed() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let mut fourth = host.http1(&Client::default()).await;
    let refused = soon("an answer", fourth.send_request(by("mallory", "/"))).await.unwrap();
    assert_eq!(refused.status(), 429);
    assert!(is_open(&mut first).await && is_open(&mut third).await);
    let answer = innocent.send_request(by("joe", "/")).await.unwrap();
    assert_eq!(text(answer).await, "joe");
}

/// If all connections are busy, an administrator of this machine gets one of the reserve, and others do not.
#[tokio::test]
async fn an_administrator_of_this_machine_gets_a_connection() {
    let host = host(Limits {
        connections_max: 2,
        loopback_reserve_connections_max: 1,
        ..Limits::default()
    });
    let mut first = watch(&host, "jane").await;
    let mut second = watch(&host, "joe").await;
    let mut other = soon("a connection", host.http1(&Client::default())).await;
    let refused = soon("a refusal", other.send_request(by("mallory", "/"))).await;
    assert!(refused.is_err() || refused.unwrap().status() == 429);
    // Somebody who holds the reserve without asking gives it to the next one.
    let _holding = soon("a connection", host.tls(&Client::default())).await;
    let mut administrator = connect(&host, "root").await;
    let answer = administrator.send_request(by("root", "/")).await.unwrap();
    assert_eq!(text(answer).await, "root");
    assert!(is_open(&mut first).await && is_open(&mut second).await);
    host.trouble_with("closed at the limit `loopback-reserve`").await;
}

/// A peer over HTTP/2 is told that its idle connection ends.
#[tokio::test]
async fn an_idle_connection_over_http2_ends_with_goaway() {
    let host = host(Limits { connections_max: 1, ..Limits::default() });
    let mut two = host.http2(&Client::default()).await;
    let answer = two.send_request(by("jane", "https://localhost/")).await.unwrap();
    assert_eq!(text(answer).await, "jane");
    let _other = connect(&host, "joe").await;
    soon("the end of the connection", async {
        while !two.is_closed() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(two.send_request(by("jane", "https://localhost/")).await.is_err());
}
