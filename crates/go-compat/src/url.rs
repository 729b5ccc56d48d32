//! URLs as Go's `net/url` reads and writes them.
//!
//! Go follows neither RFC 3986 nor the rules of browsers. A general URL crate would normalise paths, hosts and
//! escapes, and an authorization decision must see the path that Kubernetes would see.

mod authority;
mod percent_escape;
mod query_string;
mod url_parser;

use std::borrow::Cow;
use std::fmt;

pub use authority::UserInfo;
pub use percent_escape::{EscapeError, UrlPart, url_escape, url_unescape};
pub use query_string::{QUERY_PAIRS_MAX, parse_query};
pub use url_parser::UrlError;

/// A parsed URL, or the target of an HTTP request.
///
/// Percent-decoded parts are bytes, since an escape can stand for any byte; the other parts are
/// text. INVARIANT: `raw_path` and `raw_fragment` decode to `path` and `fragment`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Url {
    scheme: String,
    opaque: String,
    user: Option<UserInfo>,
    host: Vec<u8>,
    path: Vec<u8>,
    raw_path: String,
    raw_query: String,
    /// The URL ended in a `?` without a query, which its text form repeats.
    has_bare_question_mark: bool,
    /// A scheme is followed by a path with no `//` between them.
    omits_host: bool,
    fragment: Vec<u8>,
    raw_fragment: String,
}

impl Url {
    /// The scheme in lower case, without the colon; empty for a relative URL.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// The part after a scheme without a slash, still escaped: `a@b` in `mailto:a@b`.
    pub fn opaque(&self) -> &str {
        &self.opaque
    }

    /// The user and password before the host, if any.
    pub fn user(&self) -> Option<&UserInfo> {
        self.user.as_ref()
    }

    /// Host and port as written, decoded: `example.com:80`, `[fe80::1%eth0]:80`.
    pub fn host(&self) -> &[u8] {
        &self.host
    }

    /// The host without its port and without the brackets of an IPv6 address.
    pub fn hostname(&self) -> &[u8] {
        authority::split_host_and_port(&self.host).0
    }

    /// The port without its colon; empty when there is none.
    pub fn port(&self) -> &str {
        authority::split_host_and_port(&self.host).1
    }

    /// The path, percent-decoded once.
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// The path as it was written, when that differs from the default escaping of [`Url::path`].
    pub fn raw_path(&self) -> Option<&str> {
        Some(self.raw_path.as_str()).filter(|raw| !raw.is_empty())
    }

    /// The path in an escaped form: as written if that is a proper escaping, else the default one.
    pub fn escaped_path(&self) -> Cow<'_, str> {
        // The target of `OPTIONS *` is not a path to escape.
        if self.path == b"*" && self.raw_path.is_empty() {
            return Cow::Borrowed("*");
        }
        percent_escape::original_or_default_escaping(&self.raw_path, &self.path, UrlPart::Path)
    }

    /// The query, still escaped and without the question mark.
    pub fn raw_query(&self) -> &str {
        &self.raw_query
    }

    /// The decoded key and value pairs of the query; see [`parse_query`].
    pub fn query(&self) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
        parse_query(&self.raw_query)
    }

    /// The fragment, percent-decoded and without the number sign.
    pub fn fragment(&self) -> &[u8] {
        &self.fragment
    }
}

/// The URL as text, in the form of Go's `URL.String`.
impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scheme.is_empty() {
            write!(f, "{}:", self.scheme)?;
        }
        if self.opaque.is_empty() {
            self.fmt_after_scheme(f)?;
        } else {
            f.write_str(&self.opaque)?;
        }
        if self.has_bare_question_mark || !self.raw_query.is_empty() {
            write!(f, "?{}", self.raw_query)?;
        }
        if !self.fragment.is_empty() {
            let fragment = percent_escape::original_or_default_escaping(
                &self.raw_fragment,
                &self.fragment,
                UrlPart::Fragment,
            );
            write!(f, "#{fragment}")?;
        }
        Ok(())
    }
}

impl Url {
    /// Writes `//user@host/path`, leaving out what is absent.
    fn fmt_after_scheme(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_authority = !self.host.is_empty() || self.user.is_some();
        let may_have_authority = has_authority || !self.scheme.is_empty();
        if may_have_authority && (has_authority || !self.omits_host) {
            if has_authority || !self.path.is_empty() {
                f.write_str("//")?;
            }
            if let Some(user) = &self.user {
                write!(f, "{user}@")?;
            }
            f.write_str(&url_escape(&self.host, UrlPart::Host))?;
        }
        let path = self.escaped_path();
        if !self.host.is_empty() && !path.is_empty() && !path.starts_with('/') {
            f.write_str("/")?;
        }
        // A colon in the first segment of a relative path would read as the end of a scheme.
        let first_segment = path.split('/').next().unwrap_or_default();
        if !may_have_authority && first_segment.contains(':') {
            f.write_str("./")?;
        }
        f.write_str(&path)
    }
}

#[cfg(test)]
mod tests;
