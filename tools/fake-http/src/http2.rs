//! HTTP/2 with hyper. The tests need requests that share a connection and lose it.

use std::convert::Infallible;
use std::io;
use std::os::fd::AsFd as _;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use socket2::SockRef;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::answer::{Answer, Body, Conduct};
use crate::http1::filler;
use crate::peer::Service;
use crate::request::Request;
use crate::stream::Stream;

/// The most concurrent requests on a connection. Real servers may permit as few, and a client must not let
/// requests wait because of it.
const STREAMS_MAX: u32 = 10;

/// Signals that end a connection, by behaviour.
#[derive(Default)]
struct ConnectionEndSignals {
    by_close: Notify,
    by_reset: Notify,
    by_freeze: Notify,
}

/// Answers the requests of a connection until one side closes it.
pub(crate) async fn serve(stream: Stream, service: &Arc<Service>) -> io::Result<()> {
    // The library owns the stream, so a second handle of the socket is needed to reset it.
    let socket = std::net::TcpStream::from(stream.tcp().as_fd().try_clone_to_owned()?);
    let ends = Arc::new(ConnectionEndSignals::default());
    let answer = service_fn(|request| {
        let (service, ends) = (Arc::clone(service), Arc::clone(&ends));
        async move { Ok::<_, Infallible>(respond(&service, &ends, request).await) }
    });
    let connection = http2::Builder::new(TokioExecutor::new())
        .max_concurrent_streams(STREAMS_MAX)
        .serve_connection(TokioIo::new(stream), answer);
    let mut connection = pin!(connection);
    tokio::select! {
        ended = &mut connection => ended.map_err(io::Error::other),
        () = ends.by_close.notified() => Ok(()),
        // From here on nothing polls the connection, so it stays open without progress.
        () = ends.by_freeze.notified() => std::future::pending().await,
        () = ends.by_reset.notified() => {
            SockRef::from(&socket).set_linger(Some(Duration::ZERO))
        }
    }
}

async fn respond(
    service: &Service,
    ends: &ConnectionEndSignals,
    request: http::Request<Incoming>,
) -> http::Response<Content> {
    let (head, body) = request.into_parts();
    let received = Request {
        connection: service.connection,
        http_version: 2,
        method: head.method.to_string(),
        target: head.uri.path_and_query().map_or("/", |target| target.as_str()).to_owned(),
        headers: fields(&head.headers),
        body: body.collect().await.map(|body| body.to_bytes().to_vec()).unwrap_or_default(),
        tls: service.handshake.clone(),
    };
    let Some((answer, _)) = service.answer(received).await else {
        ends.by_close.notify_one();
        return std::future::pending().await;
    };
    sleep(answer.delay).await;
    match answer.conduct {
        Conduct::Refuse | Conduct::Close => ends.by_close.notify_one(),
        Conduct::Reset => ends.by_reset.notify_one(),
        Conduct::Freeze => ends.by_freeze.notify_one(),
        Conduct::Hang => {}
        Conduct::Truncate => return response(answer, true),
        Conduct::Honest | Conduct::HangInBody | Conduct::Claim(_) | Conduct::Raw(_) => {
            return response(answer, false);
        }
    }
    std::future::pending().await
}

fn fields(headers: &HeaderMap) -> Vec<(String, String)> {
    let field = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    headers.iter().map(field).collect()
}

fn response(answer: Answer, is_truncated: bool) -> http::Response<Content> {
    let (bytes, n_filler) = match answer.body {
        Body::Bytes(bytes) => (bytes, 0),
        Body::Filler(n) => (Bytes::new(), n),
        Body::Endless => (Bytes::new(), u64::MAX),
    };
    let mut response = http::Response::new(Content { bytes, n_filler, is_truncated });
    if let Ok(status) = answer.status.try_into() {
        *response.status_mut() = status;
    }
    let content_type = answer.content_type.map(|value| ("content-type".to_owned(), value));
    for (name, value) in content_type.into_iter().chain(answer.headers) {
        if let (Ok(name), Ok(value)) = (http::HeaderName::try_from(name), value.try_into()) {
            response.headers_mut().append(name, value);
        }
    }
    response
}

/// The body of an answer as a stream of frames.
struct Content {
    bytes: Bytes,
    n_filler: u64,
    is_truncated: bool,
}

impl http_body::Body for Content {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if !self.bytes.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.bytes)))));
        }
        if self.n_filler > 0 {
            let mut chunk = filler();
            chunk.truncate(usize::try_from(self.n_filler).unwrap_or(usize::MAX));
            self.n_filler -= chunk.len() as u64;
            return Poll::Ready(Some(Ok(Frame::data(chunk))));
        }
        if std::mem::take(&mut self.is_truncated) {
            return Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into())));
        }
        Poll::Ready(None)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}
