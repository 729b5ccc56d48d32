//! Streams of HTTP/2 that are opened only to be reset.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::Response;
use https_server::{Body, Limits};
use tokio::io::AsyncWriteExt;

use crate::host::{Client, Host, request, soon, text};
use crate::raw_http2::{
    ENHANCE_YOUR_CALM, HEADERS, PREFACE, RST_STREAM, SETTINGS, WHOLE, frame, goaway,
};

/// How many streams the attacker opens.
const N_STREAMS: u32 = 5_000;

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
