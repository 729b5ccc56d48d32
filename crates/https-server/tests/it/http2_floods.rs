//! Floods of frames over HTTP/2: each ends its own connection, and others do not notice.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use https_server::Limits;
use tokio::io::AsyncWriteExt;

use crate::host::{Client, Host, request, soon, text};
use crate::raw_http2::{
    CONTINUATION, END_HEADERS, HEADERS, PING, PREFACE, SETTINGS, WINDOW_UPDATE, frame, goaway,
};

/// How often a frame without end is repeated before the test gives up.
const N_FRAMES: u32 = 200_000;

/// The smallest request: `:method: GET`, `:scheme: https`, `:path: /`, `:authority: a`.
const HEAD: &[u8] = b"\x82\x87\x84\x01\x01a";

/// A flood, and the frames with the numbers from `0`.
struct Flood {
    name: &'static str,
    n_frames: u32,
    frames: fn(u32) -> Vec<u8>,
    /// Whether the attacker reads what the server sends.
    reads: bool,
}

/// A header field with a value of 16,000 bytes, which the table of HPACK does not keep.
fn long_field() -> Vec<u8> {
    // A length of 16,000 is 127 in the first byte, and 15,873 in groups of seven bits.
    [&b"\x00\x01x\x7f\x81\x7c"[..], &[b'a'; 16_000]].concat()
}

const FLOODS: &[Flood] = &[
    Flood {
        name: "continuations without end",
        n_frames: N_FRAMES,
        frames: |n| match n {
            0 => frame(HEADERS, 0, 1, HEAD),
            _ => frame(CONTINUATION, 0, 1, b""),
        },
        reads: true,
    },
    Flood {
        name: "a header list without end",
        n_frames: N_FRAMES,
        frames: |n| match n {
            0 => frame(HEADERS, 0, 1, HEAD),
            _ => frame(CONTINUATION, 0, 1, &long_field()),
        },
        reads: true,
    },
    Flood {
        name: "settings that nobody waits for",
        n_frames: u32::MAX,
        frames: |_| frame(SETTINGS, 0, 0, &[]).repeat(1_000),
        reads: true,
    },
    Flood {
        name: "settings whose answers nobody reads",
        n_frames: u32::MAX,
        frames: |_| frame(SETTINGS, 0, 0, &[]).repeat(1_000),
        reads: false,
    },
    Flood {
        name: "pings whose answers nobody reads",
        n_frames: u32::MAX,
        frames: |_| frame(PING, 0, 0, &[0; 8]).repeat(1_000),
        reads: false,
    },
    Flood {
        name: "streams that are all in error",
        n_frames: N_FRAMES,
        frames: |n| {
            let stream = 2 * n + 1;
            // A window must not grow by nothing.
            [frame(HEADERS, END_HEADERS, stream, HEAD), frame(WINDOW_UPDATE, 0, stream, &[0; 4])]
                .concat()
        },
        reads: true,
    },
];

/// A12: each flood ends its connection, whether it reads or not, and others are served meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a12_a_flood_of_frames_ends_its_connection() {
    // A flood that is no fault of the protocol ends because it is no request either.
    let short = Duration::from_secs(1);
    let limits = Limits { header_timeout: short, write_stall_timeout: short, ..Limits::default() };
    for flood in FLOODS {
        let host = Host::echo(limits.clone());
        let mut innocent = host.http2(&Client::default()).await;
        let stream = host.tls(&Client { alpn: "h2", ..Client::default() }).await.unwrap();
        let (reading, mut writing) = tokio::io::split(stream);
        let reading = match flood.reads {
            true => Ok(tokio::spawn(goaway(reading))),
            false => Err(reading),
        };
        let attack = tokio::spawn(async move {
            writing.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()).await?;
            for n in 0..flood.n_frames {
                writing.write_all(&(flood.frames)(n)).await?;
            }
            std::io::Result::Ok(())
        });
        let during = innocent.send_request(request("https://localhost/", "during")).await.unwrap();
        assert_eq!(text(during).await, "Http2 0 during", "{}", flood.name);
        let ended = soon(flood.name, attack).await.unwrap();
        assert!(ended.is_err(), "{}: the server took it all", flood.name);
        if let Ok(reading) = reading {
            soon(flood.name, reading).await.unwrap();
        }
        let after = innocent.send_request(request("https://localhost/", "after")).await.unwrap();
        assert_eq!(text(after).await, "Http2 0 after", "{}", flood.name);
        println!("{}: held, {:?}", flood.name, host.troubles());
    }
}

/// A12: a header list of 1 MB is no request, and the server does not even decode it to the end.
#[tokio::test]
async fn a12_a_header_list_of_a_megabyte_is_no_request() {
    let paths = Arc::new(Mutex::new(Vec::new()));
    let host = {
        let paths = Arc::clone(&paths);
        Host::start(Limits::default(), move |request, _| {
            paths.lock().unwrap().push(request.uri().path().to_owned());
            async { http::Response::new(https_server::Body::empty_body()) }
        })
    };
    let stream = host.tls(&Client { alpn: "h2", ..Client::default() }).await.unwrap();
    let (reading, mut writing) = tokio::io::split(stream);
    let ended = tokio::spawn(goaway(reading));
    let mut attack = [PREFACE, &frame(SETTINGS, 0, 0, &[]), &frame(HEADERS, 1, 1, HEAD)].concat();
    for n in 0..64 {
        let flags = if n == 63 { END_HEADERS } else { 0 };
        attack.extend(frame(CONTINUATION, flags, 1, &long_field()));
    }
    let _ = writing.write_all(&attack).await;
    let _ = writing.shutdown().await;
    soon("the end of the connection", ended).await.unwrap();
    assert_eq!(*paths.lock().unwrap(), Vec::<String>::new());
    // The next one is served.
    let mut innocent = host.http2(&Client::default()).await;
    let answer = innocent.send_request(request("https://localhost/next", "")).await.unwrap();
    assert_eq!((answer.status().as_u16(), paths.lock().unwrap().len()), (200, 1));
}
