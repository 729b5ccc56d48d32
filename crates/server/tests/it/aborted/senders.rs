//! Clients that send a request and hang up before they have the answer.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::AsyncWriteExt;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::client::Client;

/// How many requests are sent at one time.
const AT_ONE_TIME: usize = 8;

/// After how many requests of HTTP/2 the connection itself is closed under them.
const REQUESTS_PER_CONNECTION: usize = 50;

/// A request, and when its client hangs up.
pub(super) struct Aborted {
    pub(super) id: String,
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) body: String,
    pub(super) delay: Duration,
}

impl Aborted {
    fn content_type(&self) -> &'static str {
        match self.method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        }
    }
}

/// Sends each request on a connection of its own, which is closed. Some send only a part of their body.
pub(super) async fn send_over_http1(client: &Client, requests: Vec<Aborted>) {
    let room = Arc::new(Semaphore::new(AT_ONE_TIME));
    let mut sending = JoinSet::new();
    for (n, request) in requests.into_iter().enumerate() {
        let permit = Arc::clone(&room).acquire_owned().await.unwrap();
        let client = client.clone();
        sending.spawn(async move {
            let mut stream = client.connect("http/1.1").await;
            let Aborted { id, method, path, body, .. } = &request;
            let (kind, n_bytes) = (request.content_type(), body.len());
            let head = format!(
                "{method} {path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer admin-token\r\n\
                 audit-id: {id}\r\ncontent-type: {kind}\r\ncontent-length: {n_bytes}\r\n\r\n"
            );
            let sent = if n % 17 == 0 { &body[..n_bytes / 2] } else { body };
            stream.write_all(format!("{head}{sent}").as_bytes()).await.unwrap();
            stream.flush().await.unwrap();
            // The test waits for a real process: the server is at another step of each request.
            tokio::time::sleep(request.delay).await;
            drop((stream, permit));
        });
        while let Some(sent) = sending.try_join_next() {
            sent.unwrap();
        }
    }
    sending.join_all().await;
}

/// Sends requests on few connections and resets their streams.
pub(super) async fn send_over_http2(client: &Client, requests: Vec<Aborted>) {
    let mut requests = requests.into_iter();
    loop {
        let some: Vec<Aborted> = requests.by_ref().take(REQUESTS_PER_CONNECTION).collect();
        if some.is_empty() {
            return;
        }
        let io = TokioIo::new(client.connect("h2").await);
        let handshake = http2::handshake(TokioExecutor::new(), io).await;
        let (sender, connection) = handshake.unwrap();
        let driving = tokio::spawn(connection);
        let room = Arc::new(Semaphore::new(AT_ONE_TIME));
        let mut sending = JoinSet::new();
        for request in some {
            let permit = Arc::clone(&room).acquire_owned().await.unwrap();
            let mut sender = sender.clone();
            sending.spawn(async move {
                let whole = Request::builder()
                    .method(request.method)
                    .uri(format!("https://a{}", request.path))
                    .header("authorization", "Bearer admin-token")
                    .header("audit-id", &request.id)
                    .header("content-type", request.content_type())
                    .body(Full::new(Bytes::from(request.body)))
                    .unwrap();
                // Giving up the answer resets the stream.
                let _ = tokio::time::timeout(request.delay, sender.send_request(whole)).await;
                drop(permit);
            });
        }
        sending.join_all().await;
        driving.abort();
    }
}
