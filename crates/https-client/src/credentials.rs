//! What requests carry to say who sends them.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use tokio::time::Instant;

use crate::secret::Secret;

/// Longest token in bytes. Those of Kubernetes have one or two thousand.
const TOKEN_BYTES_MAX: u64 = 64 * 1024;

/// What requests carry to say who sends them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credentials {
    /// Nothing.
    None,
    /// A bearer token.
    Token(Secret),
    /// A bearer token in a file, which is read again before a minute has passed. While the file can
    /// not be read, or is empty, the last token that was read is used, at first `fallback`.
    TokenFile {
        /// The file.
        path: PathBuf,
        /// The token until the file could be read.
        fallback: Option<Secret>,
    },
    /// A user name and a password.
    Basic {
        /// The user name.
        username: String,
        /// The password.
        password: Secret,
    },
}

/// Credentials ready to be sent.
pub(crate) enum Authorization {
    Nothing,
    Fixed(HeaderValue),
    File(TokenFile),
}

impl Authorization {
    /// `None` if they can not be written in a header.
    pub(crate) fn new(credentials: &Credentials, age_max: Duration) -> Option<Self> {
        match credentials {
            Credentials::None => Some(Self::Nothing),
            Credentials::Token(token) => bearer(token.expose()).map(Self::Fixed),
            Credentials::TokenFile { path, fallback } => {
                let fallback = match fallback {
                    Some(token) => Some(bearer(token.expose())?),
                    None => None,
                };
                Some(Self::File(TokenFile::new(path, fallback, age_max)))
            }
            Credentials::Basic { username, password } => {
                basic(username, password.expose()).map(Self::Fixed)
            }
        }
    }

    pub(crate) fn header(&self, now: Instant) -> Option<HeaderValue> {
        match self {
            Self::Nothing => None,
            Self::Fixed(header) => Some(header.clone()),
            Self::File(file) => file.header(now),
        }
    }
}

/// A token that is read again when it is old.
pub(crate) struct TokenFile {
    path: PathBuf,
    age_max: Duration,
    held: Mutex<Held>,
}

struct Held {
    header: Option<HeaderValue>,
    /// Since when the file need not be read again.
    looked_at: Option<Instant>,
}

impl TokenFile {
    fn new(path: &Path, fallback: Option<HeaderValue>, age_max: Duration) -> Self {
        let held = Mutex::new(Held { header: fallback, looked_at: None });
        Self { path: path.to_owned(), age_max, held }
    }

    /// The file is small and local, and read once in a while: not worth another thread.
    fn header(&self, now: Instant) -> Option<HeaderValue> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let is_fresh =
            held.looked_at.is_some_and(|at| now.saturating_duration_since(at) < self.age_max);
        if !is_fresh {
            held.looked_at = Some(now);
            if let Some(header) = read_token(&self.path) {
                held.header = Some(header);
            }
        }
        held.header.clone()
    }
}

fn read_token(path: &Path) -> Option<HeaderValue> {
    let mut token = Vec::new();
    File::open(path).ok()?.take(TOKEN_BYTES_MAX + 1).read_to_end(&mut token).ok()?;
    if token.len() as u64 > TOKEN_BYTES_MAX {
        return None;
    }
    bearer(token.trim_ascii()).filter(|_| !token.trim_ascii().is_empty())
}

fn bearer(token: &[u8]) -> Option<HeaderValue> {
    sensitive([b"Bearer ", token].concat())
}

/// The value of a header that says a user name and a password.
pub(crate) fn basic(username: &str, password: &[u8]) -> Option<HeaderValue> {
    let pair = [username.as_bytes(), b":", password].concat();
    sensitive(format!("Basic {}", STANDARD.encode(pair)).into_bytes())
}

/// Sensitive values are neither printed nor put into the compression state of HTTP/2.
fn sensitive(value: Vec<u8>) -> Option<HeaderValue> {
    let mut header = HeaderValue::from_bytes(&value).ok()?;
    header.set_sensitive(true);
    Some(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGE: Duration = Duration::from_secs(50);

    fn text(authorization: &Authorization, now: Instant) -> Option<String> {
        authorization.header(now).map(|value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn a_token_file_is_read_again_when_it_is_old() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let credentials =
            Credentials::TokenFile { path: path.clone(), fallback: Some(Secret::new("zero")) };
        let authorization = Authorization::new(&credentials, AGE).unwrap();
        let start = Instant::now();
        assert_eq!(text(&authorization, start).unwrap(), "Bearer zero");
        std::fs::write(&path, "one\n").unwrap();
        assert_eq!(text(&authorization, start + AGE / 2).unwrap(), "Bearer zero");
        assert_eq!(text(&authorization, start + AGE).unwrap(), "Bearer one");
        let too_long = "x".repeat(TOKEN_BYTES_MAX as usize + 1);
        for (broken, n) in ["", " \n", "a\u{7f}b", &too_long].into_iter().zip(2..) {
            std::fs::write(&path, broken).unwrap();
            assert_eq!(text(&authorization, start + AGE * n).unwrap(), "Bearer one");
        }
        std::fs::write(&path, "x".repeat(TOKEN_BYTES_MAX as usize)).unwrap();
        assert_ne!(text(&authorization, start + AGE * 9).unwrap(), "Bearer one");
    }

    #[test]
    fn what_the_header_says() {
        let now = Instant::now();
        let basic = Credentials::Basic { username: "u".to_owned(), password: Secret::new("p") };
        let basic = Authorization::new(&basic, AGE).unwrap();
        assert_eq!(text(&basic, now).unwrap(), "Basic dTpw");
        assert!(basic.header(now).unwrap().is_sensitive());
        let none = Authorization::new(&Credentials::None, AGE).unwrap();
        assert_eq!(text(&none, now), None);
        assert!(Authorization::new(&Credentials::Token(Secret::new("a\nb")), AGE).is_none());
    }
}
