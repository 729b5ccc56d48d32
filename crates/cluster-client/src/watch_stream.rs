//! One watch request: its events, in the order in which the server sends them.

use https_client::ReplyStream;
use serde_json::Value;

use crate::api_error::ClusterError;
use crate::client::ClusterClient;

/// The longest line of a watch, in bytes. etcd stores at most 1.5 MiB of an object by default, and JSON writes some bytes of
/// it as escapes of six characters, so a line can have 9 MiB. This limit is for clusters with a larger limit in etcd.
const LINE_BYTES_MAX: usize = 32 << 20;

/// One event of a watch.
#[derive(Debug)]
pub(crate) struct WatchEvent {
    pub(crate) change: WatchChange,
    /// The watch has sent every event up to this revision.
    pub(crate) revision: u64,
}

/// The change that an event reports.
#[derive(Debug)]
pub(crate) enum WatchChange {
    /// `ADDED` or `MODIFIED`: the object as it is now.
    Put(Value),
    /// `DELETED`: the last state of the object.
    Deleted(Value),
    /// `BOOKMARK`: no object has changed.
    Nothing,
}

/// A watch whose response has begun.
#[derive(Debug)]
pub(crate) struct WatchStream {
    reply_stream: ReplyStream,
    /// The bytes that arrived and are not read yet.
    unread_bytes: Vec<u8>,
    /// The number of unread bytes that are known to contain no end of a line.
    n_searched_bytes: usize,
    path: String,
}

impl WatchStream {
    /// Opens a watch of the changes after a revision. The server ends it after `timeout_seconds`.
    ///
    /// # Errors
    /// The server does not answer, or refuses the watch; [`ClusterError::Expired`] if it no longer has the revision.
    pub(crate) async fn open(
        client: &ClusterClient,
        path: &str,
        after_revision: u64,
        timeout_seconds: u64,
    ) -> Result<Self, ClusterError> {
        let query = format!(
            "{path}?watch=true&allowWatchBookmarks=true&resourceVersion={after_revision}\
             &timeoutSeconds={timeout_seconds}"
        );
        let reply_stream = client.open_stream(&query).await?;
        Ok(Self {
            reply_stream,
            unread_bytes: Vec::new(),
            n_searched_bytes: 0,
            path: path.to_owned(),
        })
    }

    /// Waits for the next event; `None` if the server has ended the watch.
    ///
    /// # Errors
    /// The connection breaks, a line is too long or no event, or the server sends an error instead of an event.
    pub(crate) async fn next_event(&mut self) -> Result<Option<WatchEvent>, ClusterError> {
        loop {
            let unsearched = self.unread_bytes.get(self.n_searched_bytes..).unwrap_or_default();
            if let Some(end) = unsearched.iter().position(|byte| *byte == b'\n') {
                let rest = self.unread_bytes.split_off(self.n_searched_bytes + end + 1);
                let line = std::mem::replace(&mut self.unread_bytes, rest);
                self.n_searched_bytes = 0;
                if line.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                return self.parse_line(&line).map(Some);
            }
            self.n_searched_bytes = self.unread_bytes.len();
            if self.unread_bytes.len() > LINE_BYTES_MAX {
                return Err(self.not_a_watch("a watch with lines of at most 32 MiB"));
            }
            let bytes = self.reply_stream.next_bytes().await.map_err(ClusterError::NoResponse)?;
            match bytes {
                Some(bytes) => self.unread_bytes.extend_from_slice(&bytes),
                None => return Ok(None),
            }
        }
    }

    fn parse_line(&self, line: &[u8]) -> Result<WatchEvent, ClusterError> {
        let not_an_event = || self.not_a_watch("a watch event");
        let mut event: Value = serde_json::from_slice(line).map_err(|_| not_an_event())?;
        let object = event.get_mut("object").map(Value::take).ok_or_else(not_an_event)?;
        let event_type = event.get("type").and_then(Value::as_str);
        if event_type == Some("ERROR") {
            return Err(status_error(&object));
        }
        let revision = revision_of(&object, &self.path)?;
        let change = match event_type {
            Some("ADDED" | "MODIFIED") => WatchChange::Put(object),
            Some("DELETED") => WatchChange::Deleted(object),
            Some("BOOKMARK") => WatchChange::Nothing,
            Some(_) | None => return Err(not_an_event()),
        };
        Ok(WatchEvent { change, revision })
    }

    fn not_a_watch(&self, expected: &'static str) -> ClusterError {
        ClusterError::NotKubernetes { path: self.path.clone(), expected }
    }
}

/// The error of a Status in a watch.
fn status_error(status: &Value) -> ClusterError {
    let message = status.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
    match status.get("code").and_then(Value::as_u64) {
        Some(410) => ClusterError::Expired { message },
        code => {
            let status = code.and_then(|code| u16::try_from(code).ok()).unwrap_or(500);
            ClusterError::Status { status, message }
        }
    }
}

/// Reads the revision of an object or of a list. Kubernetes defines that the revisions of one resource are decimal numbers
/// that can be compared.
pub(crate) fn revision_of(object: &Value, path: &str) -> Result<u64, ClusterError> {
    let text = object.pointer("/metadata/resourceVersion").and_then(Value::as_str);
    parse_revision(text.unwrap_or_default(), path)
}

/// Reads a revision that is a text. No object has the revision 0: a watch from 0 would begin at any state of the server, and
/// would prove nothing.
pub(crate) fn parse_revision(text: &str, path: &str) -> Result<u64, ClusterError> {
    let revision = text.parse().ok().filter(|revision| *revision != 0);
    revision.ok_or_else(|| ClusterError::NotKubernetes {
        path: path.to_owned(),
        expected: "an object with a resourceVersion that is a number above 0",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_are_numbers_above_zero() {
        assert_eq!(parse_revision("7", "/roles").ok(), Some(7));
        for text in ["", "0", "00", "-1", "x"] {
            assert!(parse_revision(text, "/roles").is_err(), "{text}");
        }
    }
}
