//! The requests that a client sends, and the responses that it returns.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fake_http::{Answer, Body, Peer};
use flate2::Compression;
use flate2::write::GzEncoder;
use https_client::{
    Client, Credentials, FaultKind, Impersonation, Limits, NoCertificateObserver, PathRequest,
    RESPONSE_SIZE_FACTOR, Secret, Target,
};

use crate::fixture::{LONG, client, http, https, post, secure};

/// The request line, the content type, and the body as given.
#[tokio::test]
async fn request_line_headers_and_body() {
    let peer = Peer::start(Answer::json(r#"{"a":1}"#)).unwrap();
    let client = client(http(peer.address()));
    let reply = client.post("timeout=5s", Bytes::from_static(b"{\"x\":2}"), LONG).await.unwrap();
    assert_eq!((reply.status, &*reply.body), (200, &b"{\"a\":1}"[..]));
    assert_eq!(reply.headers["content-type"], "application/json");
    let request = peer.requests().remove(0);
    assert_eq!((&*request.method, &*request.target), ("POST", "/authorize?timeout=5s"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("accept"), Some("application/json, */*"));
    assert_eq!(request.header("user-agent"), Some("portcullis"));
    assert_eq!(request.header("host"), Some(&*peer.address().to_string()));
    assert_eq!(request.header("accept-encoding"), None);
    assert_eq!(request.body, b"{\"x\":2}");
}

/// Every status is a response. L2: the client does not follow redirects.
#[tokio::test]
async fn any_status_is_an_answer() {
    let elsewhere = Peer::start(Answer::json("{}")).unwrap();
    let location = format!("http://{}/", elsewhere.address());
    let answers = vec![
        Answer::json("{}").status(500),
        Answer::json("{}").status(429).header("Retry-After", "7"),
        Answer::json("").status(304),
        Answer::redirect(&location),
        Answer::json("{}").status(307).header("Location", &location),
    ];
    let peer = Peer::start(answers).unwrap();
    let client = client(http(peer.address()));
    let mut seen = Vec::new();
    for _ in 0..5 {
        seen.push(post(&client).await.unwrap());
    }
    assert_eq!(seen.iter().map(|it| it.status).collect::<Vec<_>>(), [500, 429, 304, 302, 307]);
    assert_eq!(seen[1].headers["retry-after"], "7");
    assert_eq!(elsewhere.n_accepted(), 0);
}

#[tokio::test]
async fn request_content_types() {
    let answers =
        vec![Answer::json("x").content_type(None), Answer::json("x").content_type(Some("a/b"))];
    let peer = Peer::start(answers).unwrap();
    let client = client(http(peer.address()));
    assert!(!post(&client).await.unwrap().headers.contains_key("content-type"));
    assert_eq!(post(&client).await.unwrap().headers["content-type"], "a/b");
}

#[tokio::test]
async fn credentials_are_sent_over_tls_only() {
    let basic = Credentials::Basic { username: "u".to_owned(), password: Secret::new("p") };
    let token = Credentials::Token(Secret::new("sesame"));
    let (authority, tls) = secure();
    for (credentials, want) in [(basic, "Basic dTpw"), (token, "Bearer sesame")] {
        let peer = Peer::start_tls(Answer::json("{}"), &tls).unwrap();
        let secure = https(peer.address(), &authority.pem());
        let secure = Target { credentials: credentials.clone(), ..secure };
        post(&client(secure)).await.unwrap();
        assert_eq!(peer.requests()[0].header("authorization"), Some(want));
        let peer = Peer::start(Answer::json("{}")).unwrap();
        let clear = Target { credentials, ..http(peer.address()) };
        post(&client(clear)).await.unwrap();
        assert_eq!(peer.requests()[0].header("authorization"), None);
    }
}

#[tokio::test]
async fn a_changed_token_file_is_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("token");
    std::fs::write(&path, "one").unwrap();
    let (authority, tls) = secure();
    let peer = Peer::start_tls(Answer::json("{}"), &tls).unwrap();
    let credentials = Credentials::TokenFile { path: path.clone(), fallback: None };
    let client = client(Target { credentials, ..https(peer.address(), &authority.pem()) });
    let sent = async || {
        post(&client).await.unwrap();
        peer.take_requests()[0].header("authorization").unwrap().to_owned()
    };
    assert_eq!(sent().await, "Bearer one");
    std::fs::write(&path, "two\n").unwrap();
    assert_eq!(sent().await, "Bearer one");
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(60)).await;
    tokio::time::resume();
    assert_eq!(sent().await, "Bearer two");
    assert_eq!(peer.n_accepted(), 1);
}

#[tokio::test]
async fn impersonation_headers_are_sent() {
    let peer = Peer::start(Answer::json("{}")).unwrap();
    let impersonate = Impersonation {
        user: "jane".to_owned(),
        groups: vec!["a".to_owned()],
        ..Impersonation::default()
    };
    post(&client(Target { impersonation: impersonate, ..http(peer.address()) })).await.unwrap();
    let request = peer.requests().remove(0);
    assert_eq!(request.header("impersonate-user"), Some("jane"));
    assert_eq!(request.header("impersonate-group"), Some("a"));
}

fn gzip(bytes: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap().into()
}

#[tokio::test]
async fn compressed_answers() {
    let compressed = |bytes: &[u8]| Answer::json(gzip(bytes)).header("Content-Encoding", "gzip");
    let mut broken = gzip(b"hello").to_vec();
    broken.truncate(12);
    let answers = vec![
        compressed(b"hello"),
        Answer::json("plain"),
        Answer::json(broken).header("Content-Encoding", "gzip"),
        Answer::json("junk").header("Content-Encoding", "gzip"),
        compressed(&vec![b'x'; 9 << 20]),
    ];
    let peer = Peer::start(answers).unwrap();
    let client = client(Target { accepts_gzip: true, ..http(peer.address()) });
    let reply = post(&client).await.unwrap();
    assert_eq!(&*reply.body, b"hello");
    assert!(!reply.headers.contains_key("content-encoding"));
    assert_eq!(peer.requests()[0].header("accept-encoding"), Some("gzip"));
    assert_eq!(&*post(&client).await.unwrap().body, b"plain");
    assert_eq!(post(&client).await.unwrap_err().kind, FaultKind::Other);
    assert_eq!(post(&client).await.unwrap_err().kind, FaultKind::Other);
    assert_eq!(post(&client).await.unwrap_err().kind, FaultKind::TooLarge);
}

#[tokio::test]
async fn unrequested_compression_is_not_decoded() {
    let body = gzip(b"hello");
    let peer = Peer::start(Answer::json(body.clone()).header("Content-Encoding", "gzip")).unwrap();
    let reply = post(&client(http(peer.address()))).await.unwrap();
    assert_eq!(reply.body, body);
    assert_eq!(reply.headers["content-encoding"], "gzip");
}

/// A body at the limit is accepted, and one byte more is refused.
#[tokio::test]
async fn the_response_body_is_limited() {
    let max = 8 << 20;
    let filler = |n| Answer::json("").body(Body::Filler(n));
    let peer = Peer::start(vec![filler(max), filler(max + 1)]).unwrap();
    let client = client(http(peer.address()));
    assert_eq!(post(&client).await.unwrap().body.len() as u64, max);
    let fault = post(&client).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::TooLarge);
    assert_eq!(fault.message, "the body of the response exceeds 8388608 bytes");
}

/// A response that repeats a long request must not exceed the body limit.
#[tokio::test]
async fn the_body_limit_grows_with_the_request() {
    let sent = Bytes::from(vec![b'x'; 8 << 20]);
    let max = (RESPONSE_SIZE_FACTOR * sent.len()) as u64;
    let filler = |n| Answer::json("").body(Body::Filler(n));
    let peer = Peer::start(vec![filler(max), filler(max + 1)]).unwrap();
    let client = client(http(peer.address()));
    assert_eq!(client.post("", sent.clone(), LONG).await.unwrap().body.len() as u64, max);
    let fault = client.post("", sent, LONG).await.unwrap_err();
    assert_eq!(
        (fault.kind, fault.message.ends_with("16777216 bytes")),
        (FaultKind::TooLarge, true)
    );
}

/// Each of several concurrent calls has its own connection, although the server offers HTTP/2.
#[tokio::test]
async fn http_1_1_is_used_with_a_peer_that_offers_http_2() {
    let (authority, tls) = secure();
    let slow = Answer::json("{}").delay(Duration::from_millis(100));
    let peer = Peer::start_tls(slow, &tls.offer_http2()).unwrap();
    let client = client(https(peer.address(), &authority.pem()));
    let (one, two, three) = tokio::join!(post(&client), post(&client), post(&client));
    assert!([one, two, three].iter().all(Result::is_ok));
    assert!(peer.requests().iter().all(|request| request.http_version == 1));
    assert_eq!(peer.n_accepted(), 3);
}

#[tokio::test]
async fn custom_user_agent() {
    let peer = Peer::start(Answer::json("{}")).unwrap();
    let named = Target { user_agent: "portcullis-admission", ..http(peer.address()) };
    post(&client(named)).await.unwrap();
    assert_eq!(peer.requests()[0].header("user-agent"), Some("portcullis-admission"));
    let unspeakable = Target { user_agent: "a\nb", ..http(peer.address()) };
    let error = Client::new(unspeakable, None, Limits::default(), Arc::new(NoCertificateObserver));
    assert_eq!(error.unwrap_err().to_string(), "the user agent cannot be written in a header");
}

#[tokio::test]
async fn requests_to_other_paths_of_the_server() {
    let peer = Peer::start(Answer::json(r#"{"items":[]}"#)).unwrap();
    let client = client(http(peer.address()));
    let request = PathRequest::get("/api/v1/pods?limit=500");
    let reply = client.exchange(request, LONG).await.unwrap();
    assert_eq!((reply.status, &*reply.body), (200, &br#"{"items":[]}"#[..]));
    let body = Bytes::from_static(b"{}");
    client.exchange(PathRequest::post("/apis/a/v1/b", body), LONG).await.unwrap();
    let mut stream =
        client.open_stream(PathRequest::get("/api/v1/pods?watch=1"), LONG).await.unwrap();
    assert_eq!(stream.status, 200);
    assert_eq!(stream.next_bytes().await.unwrap().unwrap(), &br#"{"items":[]}"#[..]);
    assert_eq!(stream.next_bytes().await.unwrap(), None);
    let lines: Vec<(String, String)> =
        peer.requests().into_iter().map(|it| (it.method, it.target)).collect();
    let want = [
        ("GET", "/authorize/api/v1/pods?limit=500"),
        ("POST", "/authorize/apis/a/v1/b"),
        ("GET", "/authorize/api/v1/pods?watch=1"),
    ];
    assert_eq!(lines, want.map(|(method, target)| (method.to_owned(), target.to_owned())));
    let fault = client.exchange(PathRequest::get("/a b"), LONG).await.unwrap_err();
    assert_eq!(fault.to_string(), "the path cannot be part of a URL");
}
