//! TLS versions, HTTP versions and client certificates that the server accepts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::Response;
use https_server::{Body, CertificateFiles, Limits, Listener};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::host::{Client, Host, pki, request, soon, text};

#[tokio::test]
async fn http1_keeps_the_connection() {
    let host = Host::echo(Limits::default());
    let mut sender = host.http1(&Client::default()).await;
    for n in 0..3 {
        let response = sender.send_request(request("/", &format!("hello {n}"))).await.unwrap();
        assert_eq!(response.headers().get("connection"), None);
        assert!(response.headers().contains_key("date"));
        assert_eq!(text(response).await, format!("Http1 0 hello {n}"));
    }
    assert_eq!(host.shutdown.n_connections(), 1);
}

#[tokio::test]
async fn http2_carries_requests_at_one_time() {
    let host = Host::echo(Limits::default());
    let sender = host.http2(&Client::default()).await;
    let requests: Vec<_> = (0..50)
        .map(|n| {
            let mut sender = sender.clone();
            tokio::spawn(async move {
                let request = request("https://localhost/", &format!("hello {n}"));
                assert_eq!(
                    text(sender.send_request(request).await.unwrap()).await,
                    format!("Http2 0 hello {n}")
                );
            })
        })
        .collect();
    for request in requests {
        request.await.unwrap();
    }
    assert_eq!(host.shutdown.n_connections(), 1);
}

#[tokio::test]
async fn http2_is_preferred_and_http1_is_spoken_without_alpn() {
    let host = Host::echo(Limits::default());
    let stream = host.tls(&Client::default()).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), None);
    let mut stream = stream;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    // The server need not say goodbye on the level of TLS.
    let _ = stream.read_to_string(&mut answer).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("Http1 0 "), "{answer}");
}

#[tokio::test]
async fn tls_1_2_is_spoken() {
    let host = Host::echo(Limits::default());
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let client = Client { version: Some(version), ..Client::default() };
        let mut sender = host.http1(&client).await;
        assert_eq!(text(sender.send_request(request("/", "")).await.unwrap()).await, "Http1 0 ");
    }
}

#[tokio::test]
async fn a_client_certificate_is_handed_on_whoever_issued_it() {
    let host = Host::echo(Limits::default());
    let elsewhere = tempfile::tempdir().unwrap();
    let stranger = pki(&elsewhere).admin_certificate;
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        for certificate in [host.pki.admin_certificate.clone(), stranger.clone()] {
            let client = Client { certificate, version: Some(version), ..Client::default() };
            let mut one = host.http1(&client).await;
            assert_eq!(text(one.send_request(request("/", "")).await.unwrap()).await, "Http1 1 ");
            let mut two = host.http2(&client).await;
            let response = two.send_request(request("https://localhost/", "")).await.unwrap();
            assert_eq!(text(response).await, "Http2 1 ");
        }
    }
}

/// Whether it means anything is for others to say, with more than an alert.
#[tokio::test]
async fn a_client_certificate_may_say_what_nobody_understands() {
    let host = Host::echo(Limits::default());
    let directory = tempfile::tempdir().unwrap();
    let mut odd = rcgen::CustomExtension::from_oid_content(&[1, 2, 3, 4, 5], vec![5, 0]);
    odd.set_criticality(true);
    let mut params = rcgen::CertificateParams::default();
    params.custom_extensions = vec![odd];
    let key = rcgen::KeyPair::generate().unwrap();
    let files = CertificateFiles {
        certificate_path: directory.path().join("odd.crt"),
        key: directory.path().join("odd.key"),
    };
    std::fs::write(&files.certificate_path, params.self_signed(&key).unwrap().pem()).unwrap();
    std::fs::write(&files.key, key.serialize_pem()).unwrap();
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let certificate = Some(files.clone());
        let client = Client { certificate, version: Some(version), ..Client::default() };
        let mut one = host.http1(&client).await;
        assert_eq!(text(one.send_request(request("/", "")).await.unwrap()).await, "Http1 1 ");
    }
}

#[tokio::test]
async fn a_client_certificate_needs_its_key() {
    let host = Host::echo(Limits::default());
    let elsewhere = tempfile::tempdir().unwrap();
    let (own, stranger) =
        (host.pki.admin_certificate.clone().unwrap(), pki(&elsewhere).admin_certificate.unwrap());
    let stolen = CertificateFiles { certificate_path: own.certificate_path, key: stranger.key };
    for (n_before, version) in
        [&rustls::version::TLS12, &rustls::version::TLS13].into_iter().enumerate()
    {
        let certificate = Some(stolen.clone());
        let client = Client { certificate, version: Some(version), ..Client::default() };
        // The server ends the handshake, and clients may not wait for its last message.
        let _ = host.tls(&client).await;
        let failed = async {
            while host.troubles().len() <= n_before {
                tokio::task::yield_now().await;
            }
        };
        soon("the end of the handshake", failed).await;
        let trouble = &host.troubles()[n_before];
        assert!(trouble.contains("TLS handshake"), "{trouble}");
        assert!(trouble.contains("BadSignature"), "{trouble}");
    }
}

#[tokio::test]
async fn the_identity_is_computed_once_for_a_connection() {
    let computed = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&computed);
    let host = Host::start(Limits::default(), move |_, connection| {
        let counter = Arc::clone(&counter);
        async move {
            connection
                .get_or_compute_identity(|_| true, |_| counter.fetch_add(1, Ordering::Relaxed));
            Response::new(Body::empty_body())
        }
    });
    for connections in 1..=3 {
        let mut sender = host.http2(&Client::default()).await;
        for _ in 0..5 {
            sender.send_request(request("https://localhost/", "")).await.unwrap();
        }
        assert_eq!(computed.load(Ordering::Relaxed), connections);
    }
}

#[tokio::test]
async fn a_service_can_ask_for_the_end_of_a_connection() {
    let host = Host::start(Limits::default(), |_, connection| async move {
        connection.close();
        Response::new(Body::from("bye"))
    });
    let mut one = host.http1(&Client::default()).await;
    let response = one.send_request(request("/", "")).await.unwrap();
    assert_eq!(response.headers()["connection"], "close");
    assert_eq!(text(response).await, "bye");
    soon("the end of HTTP/1.1", async { while one.ready().await.is_ok() {} }).await;

    let mut two = host.http2(&Client::default()).await;
    let response = two.send_request(request("https://localhost/", "")).await.unwrap();
    assert_eq!(response.headers().get("connection"), None);
    assert_eq!(text(response).await, "bye");
    soon("the end of HTTP/2", async {
        while two.ready().await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn chunks_arrive_one_by_one() {
    let host = Host::start(Limits::default(), |_, _| async {
        let (sender, body) = Body::from_channel(1);
        tokio::spawn(async move {
            for n in 0..3 {
                sender.send(format!("{n}\n").into()).await.unwrap();
            }
        });
        Response::new(body)
    });
    let mut sender = host.http1(&Client::default()).await;
    let response = sender.send_request(request("/", "")).await.unwrap();
    assert_eq!(response.headers()["transfer-encoding"], "chunked");
    assert_eq!(text(response).await, "0\n1\n2\n");
}

#[tokio::test]
async fn a_panic_takes_one_request_only() {
    let host = Host::start(Limits::default(), |request, _| async move {
        assert_ne!(request.uri().path(), "/panic");
        Response::new(Body::empty_body())
    });
    let mut sender = host.http1(&Client::default()).await;
    assert_eq!(sender.send_request(request("/panic", "")).await.unwrap().status(), 500);
    host.trouble_with("panic").await;
    sender.ready().await.unwrap();
    assert_eq!(sender.send_request(request("/", "")).await.unwrap().status(), 200);
}

#[tokio::test]
async fn plain_http_is_for_loopback() {
    let error = Listener::dangerous_bind_plain("0.0.0.0:0".parse().unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot listen on 0.0.0.0:0: plain HTTP is for loopback addresses only"
    );
    let listener = Listener::dangerous_bind_plain("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.bound_address();
    let report: https_server::ConnectionFaultReporter = Arc::new(|_| {});
    tokio::spawn(https_server::serve(
        listener,
        Limits::default(),
        https_server::Shutdown::new(),
        report,
        |_, _: Arc<https_server::Connection>| async { Response::new(Body::from("plain")) },
    ));
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("plain"), "{answer}");
}

#[tokio::test]
async fn an_address_in_use_is_named() {
    let first = Listener::dangerous_bind_plain("127.0.0.1:0".parse().unwrap()).unwrap();
    let error = Listener::dangerous_bind_plain(first.bound_address()).unwrap_err().to_string();
    let want = format!(
        "cannot listen on {}: the address is in use, perhaps by another server",
        first.bound_address()
    );
    assert_eq!(error, want);
}
