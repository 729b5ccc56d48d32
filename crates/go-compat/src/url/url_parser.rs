//! Reading a URL.

use std::borrow::Cow;
use std::fmt;

use super::percent_escape::{EscapeError, UrlPart, is_literal, url_escape, url_unescape};
use super::{Url, authority};
use crate::ip::IpError;
use crate::quote::quote;

/// Why a text is not a URL. Displays as Go's message: `parse "x": invalid URI for request`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlError {
    text: String,
    fault: Fault,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    ControlCharacter,
    Empty,
    MissingScheme,
    NotForRequest,
    ColonInFirstSegment,
    UserInfo,
    IpLiteral,
    MissingBracket,
    Port(String),
    Host(IpError),
    Escape(EscapeError),
}

impl From<EscapeError> for Fault {
    fn from(fault: EscapeError) -> Self {
        Self::Escape(fault)
    }
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "parse {}: {}", quote(&self.text), self.fault)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ControlCharacter => f.write_str("net/url: invalid control character in URL"),
            Self::Empty => f.write_str("empty url"),
            Self::MissingScheme => f.write_str("missing protocol scheme"),
            Self::NotForRequest => f.write_str("invalid URI for request"),
            Self::ColonInFirstSegment => {
                f.write_str("first path segment in URL cannot contain colon")
            }
            Self::UserInfo => f.write_str("net/url: invalid userinfo"),
            Self::IpLiteral => f.write_str("invalid IP-literal"),
            Self::MissingBracket => f.write_str("missing ']' in host"),
            Self::Port(port) => write!(f, "invalid port {} after host", quote(port)),
            Self::Host(fault) => write!(f, "invalid host: {fault}"),
            Self::Escape(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for UrlError {}

/// Where a text comes from, which decides how much of it may be missing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// A reference in a document, which may be relative.
    Document,
    /// The request line of an HTTP request.
    Request,
}

impl Url {
    /// Reads an absolute or relative URL with an optional fragment, as Go's `url.Parse` does.
    ///
    /// # Errors
    /// Control characters, malformed escapes, hosts or ports, and relative paths whose first
    /// segment has a colon.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let (main, fragment) = text.split_once('#').unwrap_or((text, ""));
        let mut url = parse(main, Source::Document).map_err(error_at(main))?;
        url.set_fragment(fragment).map_err(|fault| error_at(text)(fault.into()))?;
        Ok(url)
    }

    /// Reads an absolute URL or an absolute path without a fragment, as Go's `ParseRequestURI`.
    ///
    /// # Errors
    /// As for [`Url::parse`], and anything that is neither absolute nor begins with a slash.
    ///
    /// ```
    /// let url = go_compat::Url::parse_request_uri("/api/v1/pods%2Fx?watch=1").unwrap();
    /// assert_eq!(url.path(), b"/api/v1/pods/x");
    /// assert_eq!(url.raw_query(), "watch=1");
    /// ```
    pub fn parse_request_uri(text: &str) -> Result<Self, UrlError> {
        parse(text, Source::Request).map_err(error_at(text))
    }

    /// Reads the target of an HTTP request: as [`Url::parse_request_uri`], except that the target
    /// of `CONNECT` may be a host and port.
    ///
    /// # Errors
    /// As for [`Url::parse_request_uri`].
    pub fn parse_request_target(method: &str, target: &str) -> Result<Self, UrlError> {
        if method != "CONNECT" || target.starts_with('/') {
            return Self::parse_request_uri(target);
        }
        let mut url = Self::parse_request_uri(&format!("http://{target}"))?;
        url.scheme.clear();
        Ok(url)
    }

    fn set_path(&mut self, escaped: &str) -> Result<(), EscapeError> {
        let (path, raw_path) = decode(escaped, UrlPart::Path)?;
        (self.path, self.raw_path) = (path, raw_path);
        Ok(())
    }

    fn set_fragment(&mut self, escaped: &str) -> Result<(), EscapeError> {
        let (fragment, raw_fragment) = decode(escaped, UrlPart::Fragment)?;
        (self.fragment, self.raw_fragment) = (fragment, raw_fragment);
        Ok(())
    }
}

/// Decodes a text, and keeps the original where the default escaping would not give it back.
fn decode(escaped: &str, part: UrlPart) -> Result<(Vec<u8>, String), EscapeError> {
    let decoded = url_unescape(escaped, part)?;
    // Most texts need no escape and have none, which is quicker to see than to try.
    let is_literal =
        matches!(decoded, Cow::Borrowed(_)) && decoded.iter().all(|byte| is_literal(*byte, part));
    let is_default = is_literal || url_escape(&decoded, part) == escaped;
    let raw = if is_default { "" } else { escaped };
    Ok((decoded.into_owned(), raw.to_owned()))
}

fn error_at(text: &str) -> impl FnOnce(Fault) -> UrlError {
    move |fault| UrlError { text: text.to_owned(), fault }
}

fn parse(text: &str, source: Source) -> Result<Url, Fault> {
    if text.bytes().any(|byte| byte.is_ascii_control()) {
        return Err(Fault::ControlCharacter);
    }
    if text.is_empty() && source == Source::Request {
        return Err(Fault::Empty);
    }
    let mut url = Url::default();
    if text == "*" {
        url.path.push(b'*');
        return Ok(url);
    }
    let (scheme, rest) = split_scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    url.has_bare_question_mark = query.is_empty() && text.ends_with('?');
    url.raw_query = query.to_owned();

    let has_scheme = !scheme.is_empty();
    if !rest.starts_with('/') {
        if has_scheme {
            url.opaque = rest.to_owned();
            return Ok(url);
        }
        if source == Source::Request {
            return Err(Fault::NotForRequest);
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err(Fault::ColonInFirstSegment);
        }
    }
    // The path of a request may begin with two slashes; elsewhere they announce a host.
    let may_have_host = has_scheme || source == Source::Document && !rest.starts_with("///");
    let path = match rest.strip_prefix("//").filter(|_| may_have_host) {
        Some(after) => {
            let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
            (url.user, url.host) = authority::parse(&url.scheme, authority)?;
            path
        }
        None => {
            url.omits_host = has_scheme && rest.starts_with('/');
            rest
        }
    };
    url.set_path(path)?;
    Ok(url)
}

/// Splits `scheme:rest`. The scheme is empty if the text does not begin with one.
fn split_scheme(text: &str) -> Result<(&str, &str), Fault> {
    for (idx, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if idx > 0 => {}
            b':' if idx > 0 => return Ok((&text[..idx], &text[idx + 1..])),
            b':' => return Err(Fault::MissingScheme),
            _ => break,
        }
    }
    Ok(("", text))
}
