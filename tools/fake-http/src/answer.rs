//! What a peer does with one request.

use std::time::Duration;

use bytes::Bytes;

/// What a peer does with one request.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status code of the response.
    pub status: u16,
    /// The content type; none means no such header.
    pub content_type: Option<String>,
    /// The header fields besides those that the server adds.
    pub headers: Vec<(String, String)>,
    /// The body of the response.
    pub body: Body,
    /// How long to wait before doing anything.
    pub delay: Duration,
    /// How the server behaves while it answers.
    pub conduct: Conduct,
}

/// The body of an answer.
#[derive(Debug, Clone)]
pub enum Body {
    /// The body consists of these bytes.
    Bytes(Bytes),
    /// That many bytes of `x`, never held in memory at once.
    Filler(u64),
    /// Chunks of `x` as long as somebody reads them.
    Endless,
}

/// How to behave. Over HTTP/2 only [`Conduct::Honest`], [`Conduct::Hang`], [`Conduct::Freeze`],
/// [`Conduct::Reset`], [`Conduct::Close`] and [`Conduct::Truncate`] have a meaning; the others are
/// honest there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conduct {
    /// Answer, and wait for the next request.
    Honest,
    /// Do not even listen. Since nobody can count the attempts to connect, no later answer of the
    /// script is reached but by [`crate::Peer::replace`].
    Refuse,
    /// Reset the TCP connection after the request was read.
    Reset,
    /// Close the connection after the request was read.
    Close,
    /// Never answer, but end when the client goes.
    Hang,
    /// Never do anything any more, as a machine that has lost its network. The connection counts as
    /// open until the peer is dropped.
    Freeze,
    /// Announce one byte more than is sent, then close.
    Truncate,
    /// Send the head and the body but for its last byte, then nothing.
    HangInBody,
    /// Announce a length that is not that of the body. If it is longer, never send the rest.
    Claim(u64),
    /// Send these bytes instead of an answer, then close.
    Raw(Bytes),
}

impl Answer {
    /// Status 200, content type `application/json`, and this body.
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

    /// Something else than an answer.
    pub fn misbehave(conduct: Conduct) -> Self {
        Self::json("").conduct(conduct)
    }

    /// Returns a redirect to a location.
    pub fn redirect(location: &str) -> Self {
        Self::json("").status(302).header("Location", location)
    }

    /// The same with another status.
    pub fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// The same with another content type, or with none.
    pub fn content_type(self, content_type: Option<&str>) -> Self {
        Self { content_type: content_type.map(str::to_owned), ..self }
    }

    /// The same with one more header field.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same with another body.
    pub fn body(self, body: Body) -> Self {
        Self { body, ..self }
    }

    /// The same after a while.
    pub fn delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// The same with another behaviour.
    pub fn conduct(self, conduct: Conduct) -> Self {
        Self { conduct, ..self }
    }

    /// The same with that many `x` for the letters `PAD` in the body.
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
    fn padding() {
        let Body::Bytes(bytes) = Answer::json(r#"{"reason":"PAD"}"#).pad(3).body else { panic!() };
        assert_eq!(bytes, r#"{"reason":"xxx"}"#);
    }
}
