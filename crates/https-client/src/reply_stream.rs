//! Responses whose body is read while it arrives.

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use crate::client::ClientFuture;
use crate::fault::Fault;
use crate::go_error_text::error_to_fault;

/// A response of any status whose body arrives in parts. Dropping it closes the connection.
#[derive(Debug)]
pub struct ReplyStream {
    /// The HTTP status code.
    pub status: u16,
    body: Incoming,
}

impl ReplyStream {
    pub(crate) fn new(status: u16, body: Incoming) -> Self {
        Self { status, body }
    }

    /// Waits for the next bytes of the body; `None` at its end.
    ///
    /// # Errors
    /// [`Fault`] if the connection breaks before the end.
    pub fn next_bytes(&mut self) -> ClientFuture<'_, Result<Option<Bytes>, Fault>> {
        Box::pin(async move {
            while let Some(frame) = self.body.frame().await {
                let frame = frame.map_err(|error| error_to_fault(&error))?;
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            Ok(None)
        })
    }
}
