//! The credentials of requests.

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

/// The longest token in bytes. Tokens of Kubernetes have one or two thousand.
const TOKEN_BYTES_MAX: u64 = 64 * 1024;

/// The credentials in the `Authorization` header of requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credentials {
    /// Requests have no credentials.
    None,
    /// Requests have this bearer token.
    Token(Secret),
    /// A bearer token in a file, which is read again at least once a minute. While the file cannot be read or is empty, the
    /// last token is used, at first `fallback`.
    TokenFile {
        /// The path of the file.
        path: PathBuf,
        /// The token to use until the file can be read.
        fallback: Option<Secret>,
    },
    /// A user name and a password.
    Basic {
        /// The user name of basic authentication.
        username: String,
        /// The password of basic authentication.
        password: Secret,
    },
}

/// Gives the `Authorization` header of each request.
pub(crate) enum AuthorizationSource {
    Nothing,
    Fixed(HeaderValue),
    File(TokenFile),
}

impl AuthorizationSource {
    /// Prepares the credentials. Returns `None` if they cannot be written in a header.
    pub(crate) fn new(credentials: &Credentials, token_age_max: Duration) -> Option<Self> {
        match credentials {
            Credentials::None => Some(Self::Nothing),
            Credentials::Token(token) => bearer_header(token.expose()).map(Self::Fixed),
            Credentials::TokenFile { path, fallback } => {
                let fallback = match fallback {
                    Some(token) => Some(bearer_header(token.expose())?),
                    None => None,
                };
                Some(Self::File(TokenFile::new(path, fallback, token_age_max)))
            }
            Credentials::Basic { username, password } => {
                basic_auth_header(username, password.expose()).map(Self::Fixed)
            }
        }
    }

    pub(crate) fn authorization_header(&self, now: Instant) -> Option<HeaderValue> {
        match self {
            Self::Nothing => None,
            Self::Fixed(header) => Some(header.clone()),
            Self::File(file) => file.current_authorization_header(now),
        }
    }
}

/// A token file, which is read again when its content is old.
pub(crate) struct TokenFile {
    path: PathBuf,
    token_age_max: Duration,
    cached_token: Mutex<CachedToken>,
}

struct CachedToken {
    authorization_header: Option<HeaderValue>,
    /// The time when the file was last read.
    last_read_at: Option<Instant>,
}

impl TokenFile {
    fn new(path: &Path, fallback: Option<HeaderValue>, token_age_max: Duration) -> Self {
        let cached_token =
            Mutex::new(CachedToken { authorization_header: fallback, last_read_at: None });
        Self { path: path.to_owned(), token_age_max, cached_token }
    }

    /// Returns the header with the current token, and reads the token file again if the cached token is too old. The
    /// read blocks this thread, which is acceptable because the file is small, local and read about once a minute.
    fn current_authorization_header(&self, now: Instant) -> Option<HeaderValue> {
        let mut cached = self.cached_token.lock().unwrap_or_else(PoisonError::into_inner);
        let is_fresh = cached
            .last_read_at
            .is_some_and(|at| now.saturating_duration_since(at) < self.token_age_max);
        if !is_fresh {
            cached.last_read_at = Some(now);
            if let Some(header) = read_token(&self.path) {
                cached.authorization_header = Some(header);
            }
        }
        cached.authorization_header.clone()
    }
}

fn read_token(path: &Path) -> Option<HeaderValue> {
    let mut token = Vec::new();
    File::open(path).ok()?.take(TOKEN_BYTES_MAX + 1).read_to_end(&mut token).ok()?;
    if token.len() as u64 > TOKEN_BYTES_MAX {
        return None;
    }
    bearer_header(token.trim_ascii()).filter(|_| !token.trim_ascii().is_empty())
}

fn bearer_header(token: &[u8]) -> Option<HeaderValue> {
    sensitive_header([b"Bearer ", token].concat())
}

/// The header value for a user name and a password.
pub(crate) fn basic_auth_header(username: &str, password: &[u8]) -> Option<HeaderValue> {
    let pair = [username.as_bytes(), b":", password].concat();
    sensitive_header(format!("Basic {}", STANDARD.encode(pair)).into_bytes())
}

/// Makes a header value that is marked as sensitive, so that it is neither printed nor put into the compression
/// state of HTTP/2.
fn sensitive_header(value: Vec<u8>) -> Option<HeaderValue> {
    let mut header = HeaderValue::from_bytes(&value).ok()?;
    header.set_sensitive(true);
    Some(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGE: Duration = Duration::from_secs(50);

    fn text(authorization: &AuthorizationSource, now: Instant) -> Option<String> {
        authorization.authorization_header(now).map(|value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn a_token_file_is_read_again_when_it_is_old() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let credentials =
            Credentials::TokenFile { path: path.clone(), fallback: Some(Secret::new("zero")) };
        let authorization = AuthorizationSource::new(&credentials, AGE).unwrap();
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
    fn authorization_header_values() {
        let now = Instant::now();
        let basic_auth_header =
            Credentials::Basic { username: "u".to_owned(), password: Secret::new("p") };
        let basic_auth_header = AuthorizationSource::new(&basic_auth_header, AGE).unwrap();
        assert_eq!(text(&basic_auth_header, now).unwrap(), "Basic dTpw");
        assert!(basic_auth_header.authorization_header(now).unwrap().is_sensitive());
        let none = AuthorizationSource::new(&Credentials::None, AGE).unwrap();
        assert_eq!(text(&none, now), None);
        assert!(AuthorizationSource::new(&Credentials::Token(Secret::new("a\nb")), AGE).is_none());
    }
}
