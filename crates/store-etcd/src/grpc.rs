//! A gRPC client: HTTP/2 connections, and the framing of messages.
//!
//! Only what etcd needs: calls with one request, and calls whose responses are a stream. Nothing is compressed.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use http::header::{CONTENT_TYPE, TE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, Version};
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::{Mutex, oneshot};
use tokio::time::timeout;

use crate::tls::Connector;

/// Timeout of a connection attempt, with the TLS handshake.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Keep-alive interval of a connection in use. Members refuse less than five seconds.
const PING_INTERVAL: Duration = Duration::from_secs(6);
/// Keep-alive timeout. Together with the interval it is below the maximum silence of a watch.
const PING_TIMEOUT: Duration = Duration::from_secs(3);
/// HTTP/2 flow control window of one stream.
const STREAM_WINDOW_BYTES: u32 = 512 * 1024;
/// HTTP/2 flow control window of a connection. It covers all streams that may stall, so that others never
/// wait for them.
const CONNECTION_WINDOW_BYTES: u32 = 32 * 1024 * 1024;

/// Largest request in bytes: the largest value plus overhead.
const SEND_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Largest answer in bytes. Lists are read in rounds far below it.
const RECEIVE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The bytes before each message: whether it is compressed, and its length in four bytes.
const PREFIX_BYTES: usize = 5;

/// The status codes of gRPC that this crate distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GrpcCode {
    InvalidArgument,
    DeadlineExceeded,
    NotFound,
    AlreadyExists,
    PermissionDenied,
    ResourceExhausted,
    FailedPrecondition,
    OutOfRange,
    Unimplemented,
    Unauthenticated,
    /// Any other code: the member may have carried out the request or not.
    Other,
}

/// The reason why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GrpcError {
    /// There is no connection, so the request was not sent.
    NotConnected(String),
    /// The request exceeds [`SEND_BYTES_MAX`] and was not sent.
    RequestTooLarge,
    /// The answer exceeds [`RECEIVE_BYTES_MAX`].
    ResponseTooLarge,
    /// The member has answered with an error.
    Status(GrpcCode, String),
    /// The connection broke, or the answer is not one of gRPC.
    Broken(String),
}

impl GrpcError {
    /// The text of the error.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::NotConnected(text) | Self::Status(_, text) | Self::Broken(text) => text,
            Self::RequestTooLarge => "the request is too large",
            Self::ResponseTooLarge => "the answer is too large",
        }
    }
}

/// A connection to one member, which is opened by the first call and opened again after it broke.
pub(crate) struct Channel {
    uri: Uri,
    connector: Connector,
    /// The open connection. The lock is held while one is opened, so that calls share it.
    open_connection: Mutex<Option<SendRequest<RequestBody>>>,
}

impl Channel {
    pub(crate) fn new(uri: Uri, connector: Connector) -> Self {
        Self { uri, connector, open_connection: Mutex::new(None) }
    }

    /// Sends one message and receives one.
    pub(crate) async fn call(
        &self,
        path: &'static str,
        message: &[u8],
    ) -> Result<Bytes, GrpcError> {
        let body = RequestBody { message: Some(frame_message(message)?), end_signal: None };
        let mut answer = self.send(path, body, HeaderMap::new()).await?;
        let Some(message) = answer.next_message().await? else {
            return Err(GrpcError::Broken("the answer has no message".to_owned()));
        };
        // The status follows the message.
        match answer.next_message().await? {
            None => Ok(message),
            Some(_) => Err(GrpcError::Broken("the answer has two messages".to_owned())),
        }
    }

    /// Sends one message and receives a stream of messages, until the returned value is dropped.
    pub(crate) async fn open_stream(
        &self,
        path: &'static str,
        headers: HeaderMap,
        message: &[u8],
    ) -> Result<ResponseStream, GrpcError> {
        let (sender, receiver) = oneshot::channel();
        let body =
            RequestBody { message: Some(frame_message(message)?), end_signal: Some(receiver) };
        let mut stream = self.send(path, body, headers).await?;
        stream.request_end = Some(sender);
        Ok(stream)
    }

    async fn send(
        &self,
        path: &'static str,
        body: RequestBody,
        mut headers: HeaderMap,
    ) -> Result<ResponseStream, GrpcError> {
        let mut sender = self.connection().await?;
        let mut uri = self.uri.clone().into_parts();
        uri.path_and_query = Some(http::uri::PathAndQuery::from_static(path));
        let uri =
            Uri::from_parts(uri).map_err(|error| GrpcError::NotConnected(error.to_string()))?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert(TE, HeaderValue::from_static("trailers"));
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri;
        *request.version_mut() = Version::HTTP_2;
        *request.headers_mut() = headers;
        let answer = sender.send_request(request).await;
        ResponseStream::begin(answer.map_err(|error| GrpcError::Broken(error_text(&error)))?)
    }

    /// The open connection; opens one if there is none.
    async fn connection(&self) -> Result<SendRequest<RequestBody>, GrpcError> {
        let mut current = self.open_connection.lock().await;
        if let Some(sender) = current.as_ref().filter(|sender| !sender.is_closed()) {
            return Ok(sender.clone());
        }
        let opened = timeout(CONNECT_TIMEOUT, self.open_connection()).await;
        let timed_out = || GrpcError::NotConnected("the connection attempt timed out".to_owned());
        let sender = opened.unwrap_or_else(|_| Err(timed_out()))?;
        Ok(current.insert(sender).clone())
    }

    async fn open_connection(&self) -> Result<SendRequest<RequestBody>, GrpcError> {
        let stream = self.connector.connect(&self.uri).await;
        let stream = stream.map_err(|error| GrpcError::NotConnected(error_text(&*error)))?;
        let (sender, connection) = Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .handshake(stream)
            .await
            .map_err(|error| GrpcError::NotConnected(error_text(&error)))?;
        // The connection ends when nothing uses it any more. Its error is also that of each call.
        tokio::spawn(async {
            let _ = connection.await;
        });
        Ok(sender)
    }
}

/// The body of a request: one message.
struct RequestBody {
    message: Option<Bytes>,
    /// Keeps the body open after the message, until the sender is dropped. etcd treats the end of the body as the
    /// end of a watch.
    end_signal: Option<oneshot::Receiver<Infallible>>,
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(message) = self.message.take() {
            return Poll::Ready(Some(Ok(Frame::data(message))));
        }
        match self.end_signal.as_mut().map(|signal| Pin::new(signal).poll(cx)) {
            Some(Poll::Pending) => Poll::Pending,
            Some(Poll::Ready(_)) | None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.message.is_none() && self.end_signal.is_none()
    }
}

fn frame_message(message: &[u8]) -> Result<Bytes, GrpcError> {
    let length = u32::try_from(message.len()).ok().filter(|_| message.len() <= SEND_BYTES_MAX);
    let length = length.ok_or(GrpcError::RequestTooLarge)?;
    Ok([&[0][..], &length.to_be_bytes(), message].concat().into())
}

/// The messages of an answer.
pub(crate) struct ResponseStream {
    body: Incoming,
    /// Bytes of messages that are not complete yet.
    received_bytes: BytesMut,
    /// Ends the body of the request when it is dropped.
    request_end: Option<oneshot::Sender<Infallible>>,
}

impl ResponseStream {
    /// Checks the head of an answer. An error may be in the head: then the answer has no body.
    fn begin(answer: Response<Incoming>) -> Result<Self, GrpcError> {
        let (head, body) = answer.into_parts();
        if head.status != StatusCode::OK {
            return Err(GrpcError::Broken(format!("HTTP status {}", head.status.as_u16())));
        }
        if head.headers.contains_key("grpc-status") {
            check_status(&head.headers)?;
        }
        Ok(Self { body, received_bytes: BytesMut::new(), request_end: None })
    }

    /// The next message; `None` at the end of an answer with the status `OK`. Dropping the future loses no message.
    pub(crate) async fn next_message(&mut self) -> Result<Option<Bytes>, GrpcError> {
        loop {
            if let Some(message) = self.take_message()? {
                return Ok(Some(message));
            }
            let frame = std::future::poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx)).await;
            let frame = match frame {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Err(GrpcError::Broken(error_text(&error))),
                None => return Err(GrpcError::Broken("the answer has no status".to_owned())),
            };
            match frame.into_data() {
                Ok(data) => self.received_bytes.extend_from_slice(&data),
                Err(frame) => {
                    check_status(frame.trailers_ref().unwrap_or(&HeaderMap::new()))?;
                    return match self.received_bytes.is_empty() {
                        true => Ok(None),
                        false => Err(GrpcError::Broken("the answer is incomplete".to_owned())),
                    };
                }
            }
        }
    }

    /// Takes a message out of the received bytes; `None` if it is not complete yet.
    fn take_message(&mut self) -> Result<Option<Bytes>, GrpcError> {
        let Some((prefix, rest)) = self.received_bytes.split_first_chunk::<PREFIX_BYTES>() else {
            return Ok(None);
        };
        let [is_compressed, length @ ..] = *prefix;
        if is_compressed != 0 {
            return Err(GrpcError::Broken("the answer is compressed".to_owned()));
        }
        let length = u32::from_be_bytes(length) as usize;
        if length > RECEIVE_BYTES_MAX {
            return Err(GrpcError::ResponseTooLarge);
        }
        if rest.len() < length {
            self.received_bytes.reserve(length - rest.len());
            return Ok(None);
        }
        self.received_bytes.advance(PREFIX_BYTES);
        Ok(Some(self.received_bytes.split_to(length).freeze()))
    }
}

/// Reads the status of an answer from its trailers, or from its headers if there is no body.
fn check_status(headers: &HeaderMap) -> Result<(), GrpcError> {
    let code = match headers.get("grpc-status").map(HeaderValue::as_bytes) {
        None => return Err(GrpcError::Broken("the answer has no status".to_owned())),
        Some(b"0") => return Ok(()),
        Some(b"3") => GrpcCode::InvalidArgument,
        Some(b"4") => GrpcCode::DeadlineExceeded,
        Some(b"5") => GrpcCode::NotFound,
        Some(b"6") => GrpcCode::AlreadyExists,
        Some(b"7") => GrpcCode::PermissionDenied,
        Some(b"8") => GrpcCode::ResourceExhausted,
        Some(b"9") => GrpcCode::FailedPrecondition,
        Some(b"11") => GrpcCode::OutOfRange,
        Some(b"12") => GrpcCode::Unimplemented,
        Some(b"16") => GrpcCode::Unauthenticated,
        Some(_) => GrpcCode::Other,
    };
    let message = headers.get("grpc-message").map(HeaderValue::as_bytes).unwrap_or_default();
    Err(GrpcError::Status(code, percent_decode(message)))
}

/// Decodes the percent-encoding of a status message. Malformed escapes stay as they are.
fn percent_decode(text: &[u8]) -> String {
    let (mut decoded, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((first, after)) = rest.split_first() {
        let escaped = match rest {
            [b'%', high, low, ..] => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                digit(high)
                    .zip(digit(low))
                    .and_then(|(high, low)| u8::try_from(high * 16 + low).ok())
            }
            _ => None,
        };
        decoded.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// The texts of an error and of its causes. Errors of hyper do not contain the texts of their causes.
fn error_text(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests;
