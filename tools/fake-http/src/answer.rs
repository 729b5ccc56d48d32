//! The answer of a peer to one request.

use std::time::Duration;

use bytes::Bytes;

/// The answer of a peer to one request.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status code of the response.
    pub status: u16,
    /// The content type; `None` sends no such header.
    pub content_type: Option<String>,
    /// The additional header fields.
    pub headers: Vec<(String, String)>,
    /// The body of the response.
    pub body: Body,
    /// The delay before the peer does anything.
    pub delay: Duration,
    /// The behaviour of the peer while it answers.
    pub conduct: Conduct,
}

/// The body of an answer.
#[derive(Debug, Clone)]
pub enum Body {
    /// The body consists of these bytes.
    Bytes(Bytes),
    /// This many bytes of `x`, which are never in memory at once.
    Filler(u64),
    /// Chunks of `x` until the client stops reading.
    Endless,
}

/// The behaviour of a peer. Over HTTP/2 only [`Conduct::Honest`], [`Conduct::Hang`], [`Conduct::Freeze`],
/// [`Conduct::Reset`], [`Conduct::Close`] and [`Conduct::Truncate`] have a meaning; the others are like
/// [`Conduct::Honest`] there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conduct {
    /// Answer, and wait for the next request.
    Honest,
    /// Do not listen. A peer cannot count attempts to connect, so only [`crate::Peer::replace`] leads to a
    /// later answer of the script.
    Refuse,
    /// Reset the TCP connection after the request was read.
    Reset,
    /// Close the connection after the request was read.
    Close,
    /// Never answer, and end when the client disconnects.
    Hang,
    /// Never do anything any more, like a machine without its network. The connection counts as open until
    /// the peer is dropped.
    Freeze,
    /// Announce one byte more than is sent, then close.
    Truncate,
    /// Send the head and the body except its last byte, then nothing.
    HangInBody,
    /// Announce a length that is not that of the body. If it is longer, the rest is never sent.
    Claim(u64),
    /// Send these bytes instead of an answer, then close.
    Raw(Bytes),
}

impl Answer {
    /// An answer with status 200, content type `application/json` and this body.
    pub fn json(body: impl Into<Bytes>) -> Self {
        Self {
            status: 200,
            content_type: Some("application/json".to_owned()),
            headers: Vec::new(),
            body: Body::Bytes(body.into()),
            delay: Duration::ZERO,
            conduct: Conduct::Honest,
        }
    }

    /// An answer with this behaviour.
    pub fn misbehave(conduct: Conduct) -> Self {
        Self::json("").conduct(conduct)
    }

    /// An answer that redirects to a location.
    pub fn redirect(location: &str) -> Self {
        Self::json("").status(302).header("Location", location)
    }

    /// Changes the status code of the answer.
    pub fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// Changes the content type, or removes it.
    pub fn content_type(self, content_type: Option<&str>) -> Self {
        Self { content_type: content_type.map(str::to_owned), ..self }
    }

    /// Adds a header field to the answer.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Changes the body of the answer.
    pub fn body(self, body: Body) -> Self {
        Self { body, ..self }
    }

    /// Delays the answer by this time.
    pub fn delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Changes the behaviour of the peer.
    pub fn conduct(self, conduct: Conduct) -> Self {
        Self { conduct, ..self }
    }

    /// Replaces the letters `PAD` in the body by this many `x`.
    pub fn pad(self, n: usize) -> Self {
        let Body::Bytes(bytes) = &self.body else { return self };
        let text = String::from_utf8_lossy(bytes).replace("PAD", &"x".repeat(n));
        self.body(Body::Bytes(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pad_replaces_the_placeholder() {
        let Body::Bytes(bytes) = Answer::json(r#"{"reason":"PAD"}"#).pad(3).body else { panic!() };
        assert_eq!(bytes, r#"{"reason":"xxx"}"#);
    }
}
