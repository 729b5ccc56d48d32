//! The URL parser, with the rules and messages of Go's `url.Parse`.

use std::borrow::Cow;
use std::fmt;

use super::percent_escape::{EscapeError, UrlPart, is_written_unescaped, url_escape, url_unescape};
use super::{Url, authority};
use crate::ip::IpError;
use crate::quote::quote;

/// The reason why a text is not a URL. Displays as Go's message: `parse "x": invalid URI for request`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlError {
    input: String,
    fault: UrlFault,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum UrlFault {
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

impl From<EscapeError> for UrlFault {
    fn from(fault: EscapeError) -> Self {
        Self::Escape(fault)
    }
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "parse {}: {}", quote(&self.input), self.fault)
    }
}

impl fmt::Display for UrlFault {
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

/// The source of a URL, which decides which parts may be absent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UrlParseMode {
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
    pub fn parse(input: &str) -> Result<Self, UrlError> {
        let (main, fragment) = input.split_once('#').unwrap_or((input, ""));
        let mut url =
            parse_url_in_mode(main, UrlParseMode::Document).map_err(to_url_error(main))?;
        url.set_fragment(fragment).map_err(|fault| to_url_error(input)(fault.into()))?;
        Ok(url)
    }

    /// Reads an absolute URL or an absolute path without a fragment, as Go's `ParseRequestURI` does.
    ///
    /// # Errors
    /// As for [`Url::parse`], and anything that is neither absolute nor begins with a slash.
    ///
    /// ```
    /// let url = go_compat::Url::parse_request_uri("/api/v1/pods%2Fx?watch=1").unwrap();
    /// assert_eq!(url.path(), b"/api/v1/pods/x");
    /// assert_eq!(url.raw_query(), "watch=1");
    /// ```
    pub fn parse_request_uri(input: &str) -> Result<Self, UrlError> {
        parse_url_in_mode(input, UrlParseMode::Request).map_err(to_url_error(input))
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
        let (path, raw_path) = decode_keeping_original(escaped, UrlPart::Path)?;
        (self.path, self.raw_path) = (path, raw_path);
        Ok(())
    }

    fn set_fragment(&mut self, escaped: &str) -> Result<(), EscapeError> {
        let (fragment, raw_fragment) = decode_keeping_original(escaped, UrlPart::Fragment)?;
        (self.fragment, self.raw_fragment) = (fragment, raw_fragment);
        Ok(())
    }
}

/// Decodes a text. Also returns the original if the default escaping of the decoded text differs from it.
fn decode_keeping_original(escaped: &str, part: UrlPart) -> Result<(Vec<u8>, String), EscapeError> {
    let decoded = url_unescape(escaped, part)?;
    // Most texts need no escape and have none. This check is faster than escaping the text again.
    let is_written_unescaped = matches!(decoded, Cow::Borrowed(_))
        && decoded.iter().all(|byte| is_written_unescaped(*byte, part));
    let is_default = is_written_unescaped || url_escape(&decoded, part) == escaped;
    let raw = if is_default { "" } else { escaped };
    Ok((decoded.into_owned(), raw.to_owned()))
}

fn to_url_error(input: &str) -> impl FnOnce(UrlFault) -> UrlError {
    move |fault| UrlError { input: input.to_owned(), fault }
}

fn parse_url_in_mode(input: &str, source: UrlParseMode) -> Result<Url, UrlFault> {
    if input.bytes().any(|byte| byte.is_ascii_control()) {
        return Err(UrlFault::ControlCharacter);
    }
    if input.is_empty() && source == UrlParseMode::Request {
        return Err(UrlFault::Empty);
    }
    let mut url = Url::default();
    if input == "*" {
        url.path.push(b'*');
        return Ok(url);
    }
    let (scheme, rest) = split_scheme(input)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    url.has_bare_question_mark = query.is_empty() && input.ends_with('?');
    url.raw_query = query.to_owned();

    let has_scheme = !scheme.is_empty();
    if !rest.starts_with('/') {
        if has_scheme {
            url.opaque = rest.to_owned();
            return Ok(url);
        }
        if source == UrlParseMode::Request {
            return Err(UrlFault::NotForRequest);
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err(UrlFault::ColonInFirstSegment);
        }
    }
    // The path of a request may begin with two slashes. In any other URL, two slashes introduce a host.
    let may_have_host = has_scheme || source == UrlParseMode::Document && !rest.starts_with("///");
    let path = match rest.strip_prefix("//").filter(|_| may_have_host) {
        Some(after) => {
            let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
            (url.user, url.host) = authority::parse_authority(&url.scheme, authority)?;
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
fn split_scheme(input: &str) -> Result<(&str, &str), UrlFault> {
    for (idx, byte) in input.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if idx > 0 => {}
            b':' if idx > 0 => return Ok(input.split_once(':').unwrap_or(("", input))),
            b':' => return Err(UrlFault::MissingScheme),
            _ => break,
        }
    }
    Ok(("", input))
}
