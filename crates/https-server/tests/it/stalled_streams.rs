//! HTTP/2 peers that read some streams and not others.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body_util::{BodyExt, Full};
use https_server::{Body, Limits, ResponseBodyError};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::host::{Client, Host, request, soon, text};

const SHORT: Duration = Duration::from_millis(300);

/// Yields chunks without end, and shows by its reference that it exists.
struct Endless(#[expect(dead_code, reason = "it is counted")] Arc<()>);

impl futures_core::Stream for Endless {
    type Item = Result<Bytes, ResponseBodyError>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(Some(Ok(Bytes::from_static(&[b'x'; 16 << 10]))))
    }
}

/// A server of endless bodies, of bodies of 1 MiB, and of bodies that say nothing.
fn host(limits: Limits, alive: &Arc<()>) -> Host {
    let alive = Arc::clone(alive);
    Host::start(limits, move |request, _| {
        let body = match request.uri().path() {
            "/endless" => Body::from_stream(Endless(Arc::clone(&alive))),
            "/long" => Body::from(vec![0; 1 << 20]),
            "/silent" => Body::from_stream(Silent),
            _ => Body::from("short"),
        };
        async { Response::new(body) }
    })
}

struct Silent;

impl futures_core::Stream for Silent {
    type Item = Result<Bytes, ResponseBodyError>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Pending
    }
}

/// Connects with a window for each stream, and one that never ends for the connection.
async fn connect(host: &Host, stream_window: u32) -> http2::SendRequest<Full<Bytes>> {
    let stream = host.tls(&Client { alpn: "h2", ..Client::default() }).await.unwrap();
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(stream_window).initial_connection_window_size(64 << 20);
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

async fn until_dropped(alive: &Arc<()>) {
    soon("the end of the bodies", async {
        while Arc::strong_count(alive) > 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// A9: streams that nobody reads end and free their bodies, whatever the window. The connection and its other streams
/// stay.
#[tokio::test(flavor = "multi_thread")]
async fn a9_streams_that_are_not_read_end_alone() {
    for window in [0, 1, 65_535] {
        let alive = Arc::new(());
        let limits = Limits { stream_stall_timeout: SHORT, ..Limits::default() };
        let host = host(limits, &alive);
        let mut attacker = connect(&host, window).await;
        let mut unread = Vec::new();
        for _ in 0..40 {
            let target = "https://localhost/endless";
            unread.push(attacker.send_request(request(target, "")).await.unwrap());
        }
        let silent = attacker.send_request(request("https://localhost/silent", "")).await.unwrap();
        until_dropped(&alive).await;
        host.trouble_with("the peer takes no bytes of a stream").await;
        for response in unread {
            let error = response.into_body().collect().await.unwrap_err();
            assert!(error.to_string().contains("error reading a body"), "{window}: {error}");
        }
        // Another client is not affected, and neither is a stream that had nothing to send.
        let mut innocent = connect(&host, 65_535).await;
        let answer = innocent.send_request(request("https://localhost/", "")).await.unwrap();
        assert_eq!(text(answer).await, "short");
        if window > 100 {
            let answer = attacker.send_request(request("https://localhost/", "")).await.unwrap();
            assert_eq!(text(answer).await, "short");
        }
        let silence = tokio::time::timeout(SHORT, silent.into_body().frame()).await;
        assert!(silence.is_err(), "{window}: a stream that says nothing has ended");
    }
}

/// A peer that reads slowly, but reads, gets everything.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_read_slowly_goes_on() {
    let alive = Arc::new(());
    let limits = Limits { stream_stall_timeout: 3 * SHORT, ..Limits::default() };
    let host = host(limits, &alive);
    let mut client = connect(&host, 65_535).await;
    let response = client.send_request(request("https://localhost/long", "")).await.unwrap();
    let (mut body, mut total) = (response.into_body(), 0);
    let mut pace = tokio::time::interval(Duration::from_millis(20));
    while let Some(frame) = body.frame().await {
        total += frame.unwrap().into_data().unwrap().len();
        pace.tick().await;
    }
    assert_eq!(total, 1 << 20);
}
