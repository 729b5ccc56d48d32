//! The floor of `cargo xtask bench floor`: a server with the TLS, HTTP and allocator of `portcullis` that answers
//! every request with bytes that it was given.
//!
//! `floor DIRECTORY` reads `DIRECTORY/answers`, with one line `METHOD PATH STATUS FILE` for each answer, and keeps
//! its certificates in the same directory. The line with the method `WATCH` names the event that a `POST` to its
//! path sends to every open watch of that path.

use std::collections::HashMap;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use anyhow::Context;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use https_server::{
    Body, BodySender, Connection, Limits, Listener, MinimumBodyRate, OperatorFiles, PkiOptions,
    ReloadingCertificate, ServerNames, Shutdown, collect_body,
};
use hyper::body::Incoming;

/// The allocator of `portcullis`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The longest request body that is read.
const BODY_BYTES_MAX: u64 = 3 << 20;
/// The number of events that wait for a slow watcher.
const EVENTS_MAX: usize = 256;

/// The answers by method and path.
#[derive(Default)]
struct Answers {
    fixed: HashMap<String, (StatusCode, Bytes)>,
    /// The event of each watched path.
    events: HashMap<String, Bytes>,
    watchers: Mutex<Vec<BodySender>>,
}

fn main() -> anyhow::Result<()> {
    let directory = std::env::args_os().nth(1).context("floor takes a directory")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run(Path::new(&directory)))
}

async fn run(directory: &Path) -> anyhow::Result<()> {
    let answers = Arc::new(Answers::read(directory)?);
    let pki = https_server::prepare_pki_files(&PkiOptions {
        directory: directory.to_owned(),
        server_names: ServerNames::new(None, [IpAddr::V4(Ipv4Addr::LOCALHOST)]),
        operator_files: OperatorFiles::default(),
        current_time: SystemTime::now(),
    })?;
    let certificate = Arc::new(ReloadingCertificate::load(pki.serving_certificate)?);
    let tls = Arc::new(https_server::tls_server_config(
        certificate,
        https_server::ClientCertificates::Optional,
    )?);
    let listener = Listener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), tls)?;
    println!("serving https://{} constants", listener.address());
    std::io::stdout().flush()?;
    let service = move |request: Request<Incoming>, _: Arc<Connection>| {
        let answers = Arc::clone(&answers);
        async move { answers.answer(request).await }
    };
    let report = Arc::new(|_: &https_server::ConnectionFault| {});
    https_server::serve(listener, Limits::default(), Shutdown::new(), report, service).await;
    Ok(())
}

impl Answers {
    fn read(directory: &Path) -> anyhow::Result<Self> {
        let mut answers = Self::default();
        for line in std::fs::read_to_string(directory.join("answers"))?.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [method, path, status, file] = words.as_slice() else {
                anyhow::bail!("not `METHOD PATH STATUS FILE`: {line}");
            };
            let content = Bytes::from(std::fs::read(directory.join(file))?);
            match *method {
                "WATCH" => drop(answers.events.insert((*path).to_owned(), content)),
                method => {
                    let answer = (StatusCode::from_bytes(status.as_bytes())?, content);
                    answers.fixed.insert(format!("{method} {path}"), answer);
                }
            }
        }
        Ok(answers)
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let (head, mut body) = request.into_parts();
        let path = head.uri.path();
        // The body is read as a server must read it; a body that breaks off gets the same answer.
        let _ = collect_body(&mut body, BODY_BYTES_MAX, MinimumBodyRate::default()).await;
        let is_watch = head.uri.query().is_some_and(|query| query.contains("watch="));
        let (status, body) = match self.events.get(path) {
            Some(_) if is_watch => {
                let (sender, body) = Body::from_channel(EVENTS_MAX);
                self.watchers.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
                (StatusCode::OK, body)
            }
            Some(event) => {
                self.send_to_watchers(event).await;
                (StatusCode::CREATED, Body::from("{}"))
            }
            None => match self.fixed.get(&format!("{} {path}", head.method)) {
                Some((status, content)) => (*status, Body::from(content.clone())),
                None => (StatusCode::OK, Body::from("ok")),
            },
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, json);
        response
    }

    /// Sends an event to every watcher, and forgets those that are gone.
    async fn send_to_watchers(&self, event: &Bytes) {
        let all = {
            let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *watchers)
        };
        let mut kept = Vec::with_capacity(all.len());
        for watcher in all {
            if watcher.send(event.clone()).await.is_ok() {
                kept.push(watcher);
            }
        }
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner).extend(kept);
    }
}
