//! HTTP/1.1 written by hand, for exact control over the bytes that are sent.

use std::io;

use bytes::Bytes;
use http::StatusCode;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::sleep;

use crate::answer::{Answer, Body, Conduct};
use crate::peer::Service;
use crate::request::Request;
use crate::stream::Stream;

/// The longest head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 256 * 1024;
/// The longest body of a request, in bytes.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The number of bytes of a long body that are written at a time.
const CHUNK_BYTES: usize = 64 * 1024;

/// A connection with the bytes that were read and not used yet.
pub(crate) struct Connection {
    pub(crate) stream: Stream,
    pub(crate) buffer: Vec<u8>,
}

/// The head of a request.
pub(crate) struct Head {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
}

/// Whether a connection continues after an answer.
#[derive(PartialEq)]
enum Next {
    Request,
    End,
}

impl Head {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let field = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        field.map(|(_, value)| &**value)
    }
}

impl Connection {
    pub(crate) fn new(stream: Stream) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    /// Reads the head of the next request; `None` if the client has closed the connection.
    pub(crate) async fn read_head(&mut self) -> io::Result<Option<Head>> {
        loop {
            if let Some(end) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                let head: Vec<u8> = self.buffer.drain(..end + 4).collect();
                return parse_head(&head).map(Some).ok_or(io::ErrorKind::InvalidData.into());
            }
            if self.buffer.len() > HEAD_BYTES_MAX {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if self.fill().await? == 0 {
                return Ok(None);
            }
        }
    }

    async fn read_body(&mut self, head: &Head) -> io::Result<Vec<u8>> {
        let length = head.header("content-length").unwrap_or("0").parse::<usize>();
        let length = length.map_err(io::Error::other)?;
        if length > BODY_BYTES_MAX || head.header("transfer-encoding").is_some() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        while self.buffer.len() < length {
            if self.fill().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(self.buffer.drain(..length).collect())
    }

    async fn fill(&mut self) -> io::Result<usize> {
        self.stream.read_buf(&mut self.buffer).await
    }

    /// Waits until the client disconnects.
    async fn wait_gone(&mut self) {
        while let Ok(1..) = self.fill().await {
            if self.buffer.len() > BODY_BYTES_MAX {
                return;
            }
        }
    }
}

/// Answers the requests of a connection until one side closes it.
pub(crate) async fn serve(stream: Stream, service: &Service) -> io::Result<()> {
    let mut connection = Connection::new(stream);
    while let Some(head) = connection.read_head().await? {
        let body = connection.read_body(&head).await?;
        let wants_end = head.header("connection").is_some_and(|value| value == "close");
        let request = Request {
            connection: service.connection,
            http_version: 1,
            method: head.method,
            target: head.target,
            headers: head.headers,
            body,
            tls: service.handshake.clone(),
        };
        let Some((answer, is_last)) = service.answer(request).await else { break };
        let next = perform(&mut connection, &answer).await?;
        if next == Next::End || is_last || wants_end {
            break;
        }
    }
    connection.stream.shutdown().await
}

async fn perform(connection: &mut Connection, answer: &Answer) -> io::Result<Next> {
    if !answer.delay.is_zero() {
        tokio::select! {
            () = sleep(answer.delay) => {}
            () = connection.wait_gone() => return Ok(Next::End),
        }
    }
    match &answer.conduct {
        Conduct::Honest => {
            let claimed = length(&answer.body);
            write_head(connection, answer, claimed).await?;
            write_body(connection, answer, u64::MAX).await?;
            Ok(Next::Request)
        }
        Conduct::Reset => {
            connection.stream.reset_on_drop()?;
            Err(io::ErrorKind::ConnectionReset.into())
        }
        Conduct::Refuse | Conduct::Close => Ok(Next::End),
        Conduct::Hang => {
            connection.wait_gone().await;
            Ok(Next::End)
        }
        Conduct::Freeze => std::future::pending().await,
        Conduct::Truncate => {
            write_head(connection, answer, length(&answer.body).map(|n| n.saturating_add(1)))
                .await?;
            write_body(connection, answer, u64::MAX).await?;
            Ok(Next::End)
        }
        Conduct::HangInBody => {
            let claimed = length(&answer.body);
            write_head(connection, answer, claimed).await?;
            write_body(connection, answer, claimed.unwrap_or(1).saturating_sub(1)).await?;
            connection.wait_gone().await;
            Ok(Next::End)
        }
        Conduct::Claim(claimed) => {
            write_head(connection, answer, Some(*claimed)).await?;
            write_body(connection, answer, u64::MAX).await?;
            if length(&answer.body).is_some_and(|length| length < *claimed) {
                connection.wait_gone().await;
            }
            Ok(Next::Request)
        }
        Conduct::Raw(bytes) => {
            connection.stream.write_all(bytes).await?;
            Ok(Next::End)
        }
    }
}

/// The length of a body; `None` if it is endless.
fn length(body: &Body) -> Option<u64> {
    match body {
        Body::Bytes(bytes) => Some(bytes.len() as u64),
        Body::Filler(n) => Some(*n),
        Body::Endless => None,
    }
}

fn has_body(status: u16) -> bool {
    !(matches!(status, 100..=199 | 204 | 304))
}

async fn write_head(
    connection: &mut Connection,
    answer: &Answer,
    claimed: Option<u64>,
) -> io::Result<()> {
    let reason = StatusCode::from_u16(answer.status).ok().and_then(|code| code.canonical_reason());
    let mut head = format!("HTTP/1.1 {} {}\r\n", answer.status, reason.unwrap_or("Unknown"));
    if let Some(content_type) = &answer.content_type {
        head.push_str(&format!("Content-Type: {content_type}\r\n"));
    }
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    match claimed {
        _ if !has_body(answer.status) => {}
        Some(length) => head.push_str(&format!("Content-Length: {length}\r\n")),
        None => head.push_str("Transfer-Encoding: chunked\r\n"),
    }
    head.push_str("\r\n");
    connection.stream.write_all(head.as_bytes()).await
}

/// Writes at most `bytes_max` bytes of a body.
async fn write_body(
    connection: &mut Connection,
    answer: &Answer,
    bytes_max: u64,
) -> io::Result<()> {
    let stream = &mut connection.stream;
    if !has_body(answer.status) {
        return stream.flush().await;
    }
    match &answer.body {
        Body::Bytes(bytes) => {
            let end = usize::try_from(bytes_max).unwrap_or(usize::MAX).min(bytes.len());
            stream.write_all(&bytes[..end]).await?;
        }
        Body::Filler(n) => {
            let chunk = filler();
            let mut left = (*n).min(bytes_max);
            while left > 0 {
                let size = usize::try_from(left).unwrap_or(usize::MAX).min(chunk.len());
                stream.write_all(&chunk[..size]).await?;
                left -= size as u64;
            }
        }
        Body::Endless => {
            let chunk = filler();
            let head = format!("{:x}\r\n", chunk.len());
            let mut left = bytes_max;
            while left > 0 {
                stream.write_all(head.as_bytes()).await?;
                stream.write_all(&chunk).await?;
                stream.write_all(b"\r\n").await?;
                left = left.saturating_sub(chunk.len() as u64);
            }
        }
    }
    stream.flush().await
}

/// One chunk of a long body.
pub(crate) fn filler() -> Bytes {
    Bytes::from_static(&[b'x'; CHUNK_BYTES])
}

fn parse_head(head: &[u8]) -> Option<Head> {
    let mut lines = std::str::from_utf8(head).ok()?.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_owned(), value.trim().to_owned()))
    };
    let headers = lines.filter(|line| !line.is_empty()).map(header).collect::<Option<_>>()?;
    Some(Head { method, target, headers })
}
