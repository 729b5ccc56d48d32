//! Streams of HTTP/2 that are opened only to be reset.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::Response;
use https_server::{Body, Limits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::host::{Client, Host, request, soon, text};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
/// The flags END_STREAM and END_HEADERS together.
const WHOLE: u8 = 5;
const ENHANCE_YOUR_CALM: u32 = 11;
/// How many streams the attacker opens.
const N_STREAMS: u32 = 5_000;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The code of the GOAWAY with which the server ends a connection.
async fn goaway(mut stream: impl tokio::io::AsyncRead + Unpin) -> Option<u32> {
    let mut head = [0; 9];
    while stream.read_exact(&mut head).await.is_ok() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload).await.ok()?;
        if head[3] == GOAWAY {
            return Some(u32::from_be_bytes(payload[4..8].try_into().unwrap()));
        }
    }
    None
}

/// L18, A12: the server ends the connection of such a peer after a few streams, begins little of the work
/// that they ask for, and goes on serving others.
#[tokio::test]
async fn one_who_resets_what_it_asks_for() {
    let n_begun = Arc::new(AtomicUsize::new(0));
    let host = {
        let n_begun = Arc::clone(&n_begun);
        Host::start(Limits::default(), move |request, _| {
            n_begun.fetch_add(1, Ordering::Relaxed);
            async move {
                if request.uri().path() == "/slow" {
                    std::future::pending::<()>().await;
                }
                Response::new(Body::from("served".to_owned().into_bytes()))
            }
        })
    };
    let mut innocent = host.http2(&Client::default()).await;
    let stream = host.tls(&Client { alpn: "h2", ..Client::default() }).await.unwrap();
    let (reading, mut writing) = tokio::io::split(stream);
    let ended = tokio::spawn(goaway(reading));
    let mut attack = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
    // `:method: GET`, `:scheme: https`, `:path: /slow`, `:authority: a`, by the table of HPACK.
    let head = b"\x82\x87\x04\x05/slow\x01\x01a";
    for n in 0..N_STREAMS {
        attack.extend(frame(HEADERS, WHOLE, 2 * n + 1, head));
        attack.extend(frame(RST_STREAM, 0, 2 * n + 1, &8_u32.to_be_bytes()));
    }
    // The server may hang up before it has read everything.
    let _ = writing.write_all(&attack).await;
    let code = soon("the end of the connection", ended).await.unwrap();
    assert!(code.is_none_or(|code| code == ENHANCE_YOUR_CALM), "{code:?}");
    let n_begun = n_begun.load(Ordering::Relaxed);
    assert!(n_begun < 200, "{n_begun} of {N_STREAMS} requests were begun");
    let answer = innocent.send_request(request("https://localhost/", "")).await.unwrap();
    assert_eq!(text(answer).await, "served");
}
