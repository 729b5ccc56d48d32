//! A client over HTTP/2 that sends a request again in the cases in which client-go does.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request};
use http_body_util::Full;
use serde_json::Value;
use tokio::sync::Mutex;

use crate::client::{Client, Http2Connection, NoAnswer};

/// How often client-go sends a request again.
const RETRIES_MAX: usize = 10;

/// A request that client-go would report as an error.
#[derive(Debug)]
pub(super) enum Failure {
    /// There is no answer, and the request must not be sent again.
    NoAnswer,
    /// It was sent again too often.
    TooManyRetries,
}

/// A client with one connection, which it replaces when the connection ends:
///
/// 1. A request that the server has not processed is sent again, as by Go's transport: the server refused the
///    connection, said GOAWAY, or refused the stream.
/// 2. A request without an answer is sent again if it is a GET.
/// 3. After an answer of 429 or 5xx with `Retry-After`, any request is sent again.
pub(super) struct RetryingClient {
    client: Client,
    headers: Vec<(HeaderName, HeaderValue)>,
    connection: Mutex<Option<Http2Connection>>,
    n_retries: AtomicUsize,
}

impl RetryingClient {
    pub(super) fn new(client: Client, headers: &[(&str, &str)]) -> Self {
        let header = |(name, value): &(&str, &str)| (name.parse().unwrap(), value.parse().unwrap());
        Self {
            client,
            headers: headers.iter().map(header).collect(),
            connection: Mutex::new(None),
            n_retries: AtomicUsize::new(0),
        }
    }

    pub(super) fn n_retries(&self) -> usize {
        self.n_retries.load(Ordering::SeqCst)
    }

    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<(u16, Value), Failure> {
        for _ in 0..=RETRIES_MAX {
            let mut request = self.client.request("several", method.clone(), path, body);
            request.headers_mut().extend(self.headers.iter().cloned());
            match self.send_once(request).await {
                Ok((code, Some(seconds), _)) if code == 429 || code >= 500 => {
                    let seconds = seconds.parse().unwrap();
                    // This waits for a real process: the server says when to come again.
                    tokio::time::sleep(Duration::from_secs(seconds)).await;
                }
                Ok((code, _, body)) => {
                    let text = || Value::String(String::from_utf8_lossy(&body).into_owned());
                    return Ok((code, serde_json::from_slice(&body).unwrap_or_else(|_| text())));
                }
                Err(NoAnswer::Unprocessed) => {}
                Err(NoAnswer::Unknown) if method == Method::GET => {}
                Err(NoAnswer::Unknown) => return Err(Failure::NoAnswer),
            }
            self.n_retries.fetch_add(1, Ordering::SeqCst);
        }
        Err(Failure::TooManyRetries)
    }

    async fn send_once(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<(u16, Option<String>, Bytes), NoAnswer> {
        let mut slot = self.connection.lock().await;
        let mut connection = match slot.take() {
            Some(connection) => connection,
            // Nothing is sent before the handshake is complete.
            None => self.client.connect_http2().await.map_err(|_| NoAnswer::Unprocessed)?,
        };
        let answer = connection.send(request).await?;
        *slot = Some(connection);
        Ok(answer)
    }
}
