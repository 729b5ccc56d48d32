//! Peers that misbehave: each causes its kind of fault within the timeout.

use std::time::{Duration, Instant};

use bytes::Bytes;
use fake_http::{Answer, Body, Conduct, NOBODY, Peer};
use https_client::{Client, Fault, FaultKind};

use crate::fixture::{LONG, client, close_connections, http, https, post, secure, until};

const SHORT: Duration = Duration::from_millis(300);

async fn fails_within(client: &Client, limit: Duration) -> Fault {
    let start = Instant::now();
    let fault = client.post("timeout=3s", Bytes::new(), limit).await.unwrap_err();
    assert!(start.elapsed() < limit + Duration::from_secs(5), "{:?}", start.elapsed());
    fault
}

/// Checks the fault over plain TCP and over TLS.
async fn check(answer: Answer, kind: FaultKind, message: &str) {
    let (authority, tls) = secure();
    let clear = Peer::start(answer.clone()).unwrap();
    let sealed = Peer::start_tls(answer, &tls).unwrap();
    let targets = [http(clear.address()), https(sealed.address(), &authority.pem())];
    for (target, peer) in targets.into_iter().zip([clear, sealed]) {
        let client = client(target);
        let fault = fails_within(&client, SHORT).await;
        let scheme = if peer.handshakes().is_empty() { "http" } else { "https" };
        let url = format!("{scheme}://{}/authorize?timeout=3s", peer.address());
        assert_eq!(fault.message, message.replace("URL", &url));
        assert_eq!(fault.kind, kind, "{fault}");
        until(|| peer.n_open() == 0).await;
    }
}

#[tokio::test]
async fn peer_hangs_before_the_response() {
    let message = "Post \"URL\": context deadline exceeded (Client.Timeout exceeded while awaiting \
                   headers)";
    check(Answer::misbehave(Conduct::Hang), FaultKind::Timeout, message).await;
    check(Answer::json("{}").delay(LONG), FaultKind::Timeout, message).await;
}

#[tokio::test]
async fn peer_hangs_within_the_response() {
    let message = "unexpected error when reading response body. Please retry. Original error: \
                   context deadline exceeded (Client.Timeout or context cancellation while reading \
                   body)";
    check(Answer::json("{}").conduct(Conduct::HangInBody), FaultKind::Timeout, message).await;
    check(Answer::json("{}").conduct(Conduct::Claim(3)), FaultKind::Timeout, message).await;
}

#[tokio::test]
async fn peer_closes_without_a_response() {
    check(Answer::misbehave(Conduct::Close), FaultKind::Eof, "Post \"URL\": EOF").await;
}

#[tokio::test]
async fn peer_closes_within_the_response() {
    let message = "unexpected error when reading response body. Please retry. Original error: \
                   unexpected EOF";
    check(Answer::json("{}").conduct(Conduct::Truncate), FaultKind::Eof, message).await;
}

#[tokio::test]
async fn peer_resets_the_connection() {
    let (authority, tls) = secure();
    let clear = Peer::start(Answer::misbehave(Conduct::Reset)).unwrap();
    let sealed = Peer::start_tls(Answer::misbehave(Conduct::Reset), &tls).unwrap();
    for target in [http(clear.address()), https(sealed.address(), &authority.pem())] {
        let fault = fails_within(&client(target), LONG).await;
        assert_eq!(fault.kind, FaultKind::Reset, "{fault}");
        assert!(fault.message.ends_with(": read: connection reset by peer"), "{fault}");
        assert!(fault.message.contains(": read tcp 127.0.0.1:"), "{fault}");
    }
}

#[tokio::test]
async fn connection_is_refused() {
    let fault = fails_within(&client(http(NOBODY)), LONG).await;
    assert_eq!(fault.kind, FaultKind::Refused);
    let message = "Post \"http://127.0.0.1:1/authorize?timeout=3s\": dial tcp 127.0.0.1:1: \
                   connect: connection refused";
    assert_eq!(fault.message, message);
}

#[tokio::test]
async fn peer_stops_listening_and_returns() {
    let peer = Peer::start(Answer::json("{}")).unwrap();
    let client = client(http(peer.address()));
    assert_eq!(post(&client).await.unwrap().status, 200);
    peer.stop_listening().unwrap();
    close_connections(&peer).await;
    assert_eq!(post(&client).await.unwrap_err().kind, FaultKind::Refused);
    peer.listen().unwrap();
    assert_eq!(post(&client).await.unwrap().status, 200);
}

#[tokio::test]
async fn peer_refuses_connections_after_a_response() {
    let answers = vec![Answer::json("{}"), Answer::misbehave(Conduct::Refuse)];
    let peer = Peer::start(answers).unwrap();
    let client = client(http(peer.address()));
    assert_eq!(post(&client).await.unwrap().status, 200);
    // The idle connection may end while the client reuses it. After that the port is closed.
    let mut fault = post(&client).await.unwrap_err();
    if fault.kind == FaultKind::Eof {
        fault = post(&client).await.unwrap_err();
    }
    assert_eq!(fault.kind, FaultKind::Refused);
    peer.replace(Answer::json("{}")).unwrap();
    assert_eq!(post(&client).await.unwrap().status, 200);
}

#[tokio::test]
async fn unknown_host() {
    let mut target = http(NOBODY);
    target.destination = https_client::Destination::Url {
        scheme: https_client::Scheme::Http,
        host: "no-such-host.invalid".to_owned(),
        port: None,
    };
    let fault = fails_within(&client(target), LONG).await;
    assert_eq!(fault.kind, FaultKind::Dns, "{fault}");
    let message = "Post \"http://no-such-host.invalid/authorize?timeout=3s\": dial tcp: lookup \
                   no-such-host.invalid: ";
    assert!(fault.message.starts_with(message), "{fault}");
}

/// Bytes after the announced length belong neither to this response nor to the next one.
#[tokio::test]
async fn content_length_shorter_than_the_body() {
    let peer = Peer::start(Answer::json("0123456789").conduct(Conduct::Claim(4))).unwrap();
    let client = client(http(peer.address()));
    assert_eq!(&*post(&client).await.unwrap().body, b"0123");
    for _ in 0..3 {
        // The surplus bytes end the connection, either at once or when the client reads them as a response.
        match post(&client).await {
            Ok(reply) => assert_eq!(&*reply.body, b"0123"),
            Err(fault) => assert_eq!(fault.kind, FaultKind::Other, "{fault}"),
        }
    }
}

#[tokio::test]
async fn content_length_above_the_limit() {
    let announced = Answer::json("").body(Body::Filler(100 << 20));
    let message = "the body of the response exceeds 8388608 bytes";
    check(announced, FaultKind::TooLarge, message).await;
    let absurd = Answer::json("{}").conduct(Conduct::Claim(1 << 60));
    check(absurd, FaultKind::TooLarge, message).await;
}

#[tokio::test]
async fn endless_body() {
    let peer = Peer::start(Answer::json("").body(Body::Endless)).unwrap();
    let client = client(http(peer.address()));
    let fault = fails_within(&client, LONG).await;
    assert_eq!(fault.kind, FaultKind::TooLarge);
    until(|| peer.n_open() == 0).await;
}

#[tokio::test]
async fn response_is_not_http() {
    let raw = |bytes: &'static [u8]| Answer::misbehave(Conduct::Raw(Bytes::from_static(bytes)));
    let cases = [
        (raw(b"220 mail.example.com ESMTP\r\n\r\n"), FaultKind::Other),
        (raw(b"HTTP/1.1 two hundred\r\n\r\n"), FaultKind::Other),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"), FaultKind::Other),
        (raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), FaultKind::Other),
        (raw(b"HTTP/1.1 200 OK\r\nContent-"), FaultKind::Eof),
        (raw(b""), FaultKind::Eof),
    ];
    for (answer, kind) in cases {
        let peer = Peer::start(answer.clone()).unwrap();
        let fault = fails_within(&client(http(peer.address())), LONG).await;
        assert_eq!(fault.kind, kind, "{answer:?}: {fault}");
    }
}

#[tokio::test]
async fn endless_response_head() {
    let mut head = b"HTTP/1.1 200 OK\r\nA: ".to_vec();
    head.resize(1 << 20, b'x');
    let mut many = b"HTTP/1.1 200 OK\r\n".to_vec();
    for idx in 0..1000 {
        many.extend_from_slice(format!("a{idx}: b\r\n").as_bytes());
    }
    many.extend_from_slice(b"\r\n");
    for head in [head, many] {
        let peer = Peer::start(Answer::misbehave(Conduct::Raw(head.into()))).unwrap();
        let fault = fails_within(&client(http(peer.address())), LONG).await;
        assert_eq!(fault.kind, FaultKind::TooLarge, "{fault}");
        until(|| peer.n_open() == 0).await;
    }
}

#[tokio::test]
async fn tls_with_a_plain_http_peer() {
    let plain = b"HTTP/1.1 400 Bad Request\r\n\r\n";
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serve = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_u8().await.unwrap();
        stream.write_all(plain).await.unwrap();
        stream.read_to_end(&mut Vec::new()).await.ok();
    });
    let (authority, _) = secure();
    let fault = fails_within(&client(https(address, &authority.pem())), LONG).await;
    assert_eq!(fault.kind, FaultKind::Tls);
    assert!(fault.message.ends_with(": tls: first record does not look like a TLS handshake"));
    serve.await.unwrap();
}

/// The peer accepts the connection and sends nothing, not even in the TLS handshake.
#[tokio::test]
async fn peer_is_silent_in_the_tls_handshake() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (authority, _) = secure();
    let client = client(https(listener.local_addr().unwrap(), &authority.pem()));
    assert_eq!(fails_within(&client, SHORT).await.kind, FaultKind::Timeout);
    assert_eq!(client.check_connection(SHORT).await.unwrap_err().kind, FaultKind::Timeout);
}
