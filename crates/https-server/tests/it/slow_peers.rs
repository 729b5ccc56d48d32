//! Peers that keep the server waiting.

use std::time::Duration;

use http::Response;
use https_server::{Body, Limits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::host::{Client, Host, SOON, request, soon};

/// Short enough for a test to wait for, and long enough for a handshake on a busy machine.
const SHORT: Duration = Duration::from_millis(300);

/// Completes when the server closed the stream.
async fn closed(stream: &mut (impl tokio::io::AsyncRead + Unpin)) {
    let mut buffer = [0; 1024];
    soon("the end of the connection", async {
        while stream.read(&mut buffer).await.is_ok_and(|count| count > 0) {}
    })
    .await;
}

#[tokio::test]
async fn one_who_does_not_shake_hands() {
    let host = Host::echo(Limits { handshake_timeout: SHORT, ..Limits::default() });
    let mut stream = TcpStream::connect(host.address).await.unwrap();
    closed(&mut stream).await;
    host.trouble_with("TLS handshake").await;
}

#[tokio::test]
async fn one_who_does_not_speak_tls() {
    let host = Host::echo(Limits::default());
    let mut stream = TcpStream::connect(host.address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    closed(&mut stream).await;
    host.trouble_with("TLS handshake").await;
}

#[tokio::test]
async fn one_who_asks_for_nothing() {
    let host = Host::echo(Limits { header_timeout: SHORT, ..Limits::default() });
    for alpn in ["http/1.1", "h2"] {
        let client = Client { alpn, ..Client::default() };
        let mut stream = host.tls(&client).await.unwrap();
        closed(&mut stream).await;
    }
    host.trouble_with("the peer sends no complete request").await;
}

#[tokio::test]
async fn one_who_sends_a_head_byte_by_byte() {
    let host = Host::echo(Limits { header_timeout: SHORT, ..Limits::default() });
    let mut stream = host.tls(&Client { alpn: "http/1.1", ..Client::default() }).await.unwrap();
    // A first request shows that the limit holds for each of them.
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    assert!(stream.read(&mut [0; 1024]).await.unwrap() > 0);
    let (mut reader, mut writer) = tokio::io::split(stream);
    let writing = tokio::spawn(async move {
        writer.write_all(b"GET / HTTP/1.1\r\nX: ").await?;
        let mut pace = tokio::time::interval(Duration::from_millis(20));
        loop {
            writer.write_all(b"a").await?;
            writer.flush().await?;
            pace.tick().await;
        }
        #[expect(unreachable_code, reason = "it gives the block its type")]
        std::io::Result::Ok(())
    });
    closed(&mut reader).await;
    host.trouble_with("the peer sends no complete request").await;
    writing.abort();
}

#[tokio::test]
async fn one_who_goes_idle() {
    let host = Host::echo(Limits { idle_timeout: SHORT, ..Limits::default() });
    let mut one = host.http1(&Client::default()).await;
    one.send_request(request("/", "")).await.unwrap();
    let mut two = host.http2(&Client::default()).await;
    two.send_request(request("https://localhost/", "")).await.unwrap();
    assert_eq!(host.shutdown.n_connections(), 2);
    soon("the end of idle connections", async {
        while host.shutdown.n_connections() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(host.troubles(), Vec::<String>::new());
}

#[tokio::test]
async fn one_who_waits_for_an_answer_is_not_idle() {
    let short = Duration::from_millis(100);
    let limits = Limits { idle_timeout: short, header_timeout: SHORT, ..Limits::default() };
    let host = Host::start(limits, move |_, _| async move {
        let (sender, body) = Body::from_channel(1);
        tokio::spawn(async move {
            let mut pace = tokio::time::interval(2 * short);
            pace.tick().await;
            for _ in 0..4 {
                pace.tick().await;
                sender.send("tick\n".into()).await.unwrap();
            }
        });
        Response::new(body)
    });
    let mut one = host.http1(&Client::default()).await;
    let mut two = host.http2(&Client::default()).await;
    let (first, second) = tokio::join!(
        one.send_request(request("/", "")),
        two.send_request(request("https://localhost/", "")),
    );
    assert_eq!(crate::host::text(first.unwrap()).await, "tick\n".repeat(4));
    assert_eq!(crate::host::text(second.unwrap()).await, "tick\n".repeat(4));
}

#[tokio::test]
async fn one_who_does_not_read() {
    let limits = Limits { write_stall_timeout: SHORT, ..Limits::default() };
    let host = Host::start(limits, |_, _| async { Response::new(Body::from(vec![0; 64 << 20])) });
    let mut stream = host.tls(&Client { alpn: "http/1.1", ..Client::default() }).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    host.trouble_with("the peer takes no bytes").await;
    soon("the end of the connection", async {
        while host.shutdown.n_connections() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn one_who_reads_slowly_gets_everything() {
    let limits = Limits { write_stall_timeout: SHORT, ..Limits::default() };
    let host = Host::start(limits, |_, _| async { Response::new(Body::from(vec![0; 24 << 20])) });
    let mut stream = host.tls(&Client { alpn: "http/1.1", ..Client::default() }).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
    let (mut total, mut buffer) = (0, vec![0; 2 << 20]);
    let mut pace = tokio::time::interval(Duration::from_millis(20));
    loop {
        let read = tokio::time::timeout(SOON, stream.read(&mut buffer)).await.unwrap();
        match read {
            Ok(0) | Err(_) => break,
            Ok(count) => total += count,
        }
        if total % 7 == 0 {
            pace.reset();
            pace.tick().await;
        }
    }
    assert!(total > 24 << 20, "{total}");
}
