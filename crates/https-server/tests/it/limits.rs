//! At each limit, and one past it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Response;
use https_server::{Body, Limits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;

use crate::host::{Client, Host, request, soon, text};

#[tokio::test]
async fn the_url() {
    let host = Host::echo(Limits::default());
    let max = Limits::default().url_bytes_max;
    let at = format!("/{}", "a".repeat(max - 1));
    let past = format!("{at}a");
    for (target, want) in [(&at, 200), (&past, 414)] {
        let mut one = host.http1(&Client::default()).await;
        assert_eq!(one.send_request(request(target, "")).await.unwrap().status(), want);
        let mut two = host.http2(&Client::default()).await;
        let absolute = format!("https://localhost{target}");
        assert_eq!(two.send_request(request(&absolute, "")).await.unwrap().status(), want);
    }
}

#[tokio::test]
async fn the_bytes_of_a_header() {
    let host = Host::echo(Limits::default());
    let max = Limits::default().header_bytes_max as usize;
    let with_header = |target: &str, bytes: usize| {
        let mut request = request(target, "");
        request.headers_mut().insert("x-long", "a".repeat(bytes).parse().unwrap());
        request
    };
    for (bytes, want) in [(max - 1024, 200), (max, 431), (4 * max, 431)] {
        let mut one = host.http1(&Client::default()).await;
        let response = one.send_request(with_header("/", bytes)).await.unwrap();
        assert_eq!(response.status(), want, "{bytes} bytes over HTTP/1.1");
    }
    let mut two = host.http2(&Client::default()).await;
    let fits = with_header("https://localhost/", max - 1024);
    assert_eq!(two.send_request(fits).await.unwrap().status(), 200);
    // The client knows the limit and may refuse to send more by itself.
    let past = two.send_request(with_header("https://localhost/", max)).await;
    assert!(past.is_err() || past.unwrap().status() == 431);
}

#[tokio::test]
async fn the_number_of_header_fields() {
    let host = Host::echo(Limits { header_fields_max: 300, ..Limits::default() });
    // The host is a field as well.
    for (fields, want) in [(299, 200), (300, 431)] {
        let mut request = request("/", "");
        for n in 0..fields - 1 {
            request.headers_mut().append("impersonate-group", format!("g{n}").parse().unwrap());
        }
        request.headers_mut().append("x-last", "1".parse().unwrap());
        let mut sender = host.http1(&Client::default()).await;
        assert_eq!(sender.send_request(request).await.unwrap().status(), want, "{fields}");
    }
}

#[tokio::test]
async fn the_body_is_the_caller_s_to_bound() {
    let host = Host::echo(Limits::default());
    let body = "a".repeat((1 << 20) + 1);
    let mut one = host.http1(&Client::default()).await;
    let response = one.send_request(request("/", &body[1..])).await.unwrap();
    assert_eq!(text(response).await.len(), (1 << 20) + "Http1 0 ".len());
    let response = one.send_request(request("/", &body)).await.unwrap();
    assert_eq!(text(response).await, "the body is longer than 1048576 bytes");
}

#[tokio::test]
async fn who_sends_all_before_listening_hears_that_it_was_too_much() {
    let host = Host::echo(Limits::default());
    let body = vec![b'a'; 5 << 20];
    for _ in 0..5 {
        let client = Client { alpn: "http/1.1", ..Client::default() };
        let mut stream = host.tls(&client).await.unwrap();
        let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&body).await.unwrap();
        let mut answer = [0; 1024];
        let count = soon("the answer", stream.read(&mut answer)).await.unwrap();
        let answer = String::from_utf8_lossy(&answer[..count]);
        assert!(answer.ends_with("the body is longer than 1048576 bytes"), "{answer}");
    }
}

/// L18: the streams of a connection are limited, and more so until somebody has authenticated on it.
#[tokio::test]
async fn requests_at_one_time_over_http2() {
    for (is_authenticated, n_at_once) in [(false, 10), (true, 100)] {
        let running = Arc::new(AtomicUsize::new(0));
        let gate = Arc::new(Semaphore::new(0));
        let host = {
            let (running, gate) = (Arc::clone(&running), Arc::clone(&gate));
            Host::start(Limits::default(), move |_, connection| {
                let (running, gate) = (Arc::clone(&running), Arc::clone(&gate));
                async move {
                    if is_authenticated {
                        connection.record_authenticated_user("jane", false).unwrap();
                    }
                    running.fetch_add(1, Ordering::Relaxed);
                    gate.acquire().await.unwrap().forget();
                    Response::new(Body::empty_body())
                }
            })
        };
        let sender = host.http2(&Client::default()).await;
        let requests: Vec<_> = (0..101)
            .map(|_| {
                let mut sender = sender.clone();
                tokio::spawn(async move {
                    sender.send_request(request("https://localhost/", "")).await.unwrap()
                })
            })
            .collect();
        let begun = |count: usize| {
            let running = Arc::clone(&running);
            async move {
                while running.load(Ordering::Relaxed) < count {
                    tokio::task::yield_now().await;
                }
            }
        };
        soon("the last request at once", begun(n_at_once)).await;
        let early = tokio::time::timeout(Duration::from_millis(100), begun(n_at_once + 1)).await;
        assert!(early.is_err(), "more than {n_at_once} requests run");
        gate.add_permits(1);
        soon("one more request", begun(n_at_once + 1)).await;
        gate.add_permits(100);
        for request in requests {
            assert_eq!(request.await.unwrap().status(), 200);
        }
    }
}

#[tokio::test]
async fn many_connections() {
    let host = Arc::new(Host::echo(Limits::default()));
    let clients: Vec<_> = (0..200)
        .map(|n| {
            let host = Arc::clone(&host);
            tokio::spawn(async move {
                let mut sender = host.http1(&Client::default()).await;
                let response = sender.send_request(request("/", &n.to_string())).await.unwrap();
                assert_eq!(text(response).await, format!("Http1 0 {n}"));
                sender
            })
        })
        .collect();
    let mut senders = Vec::new();
    for client in clients {
        senders.push(client.await.unwrap());
    }
    assert_eq!(host.shutdown.n_connections(), 200);
    drop(senders);
    soon("the end of all connections", async {
        while host.shutdown.n_connections() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
