//! The URL of a service, as Go's client understands it.

use https_client::{Scheme, Secret};

use crate::cluster_check::url_without_userinfo;
use crate::url_path;

/// The parsed URL of a service. A fragment is dropped.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ServerUrl {
    pub(crate) scheme: Scheme,
    /// A name or an address; an IPv6 address without brackets.
    pub(crate) host: String,
    pub(crate) port: Option<u16>,
    /// The percent-encoded path, which is at least `/`.
    pub(crate) path: String,
    /// User name and password, if the URL contains them.
    pub(crate) userinfo: Option<(String, Secret)>,
}

/// The error of a server URL. Displays as Go's message, without user name and password.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServerUrlError {
    /// The text is neither a URL nor a host with a port.
    #[error("host must be a URL or a host:port pair: {quoted_server}")]
    Malformed {
        /// The text in Go's quotes.
        quoted_server: String,
    },
    /// The URL has a query. Kubernetes drops it, and its author would not notice.
    #[error("host must not have a query: {quoted_server}")]
    Query {
        /// The text in Go's quotes without the query, which may be a secret.
        quoted_server: String,
    },
    /// The scheme is neither `http` nor `https`.
    #[error("unsupported protocol scheme {quoted_scheme}")]
    UnsupportedScheme {
        /// The scheme in Go's quotes.
        quoted_scheme: String,
    },
}

impl ServerUrl {
    /// Parses a URL with the scheme `http` or `https`. A host without a scheme, with or without a port, means
    /// plain HTTP.
    ///
    /// # Errors
    ///
    /// The text is not a URL, or has another scheme. The error shows neither user name nor password.
    pub(crate) fn parse(server: &str) -> Result<Self, ServerUrlError> {
        let refused = || {
            let quoted_server = go_compat::quote(&url_without_userinfo(server));
            ServerUrlError::Malformed { quoted_server }
        };
        if server.chars().any(char::is_control) {
            return Err(refused());
        }
        let without_fragment = server.split('#').next().unwrap_or_default();
        if let Some((before_query, _)) = without_fragment.split_once('?') {
            let shown = format!("{}?...", url_without_userinfo(before_query));
            return Err(ServerUrlError::Query { quoted_server: go_compat::quote(&shown) });
        }
        let Some((scheme, rest)) = split_scheme(server) else {
            let url = parse_after_scheme(Scheme::Http, server).ok_or_else(refused)?;
            return if url.path == "/" { Ok(url) } else { Err(refused()) };
        };
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            other => {
                let quoted_scheme = go_compat::quote(other);
                return Err(ServerUrlError::UnsupportedScheme { quoted_scheme });
            }
        };
        parse_after_scheme(scheme, rest).ok_or_else(refused)
    }
}

/// Splits a URL into its scheme and the text after `://`.
fn split_scheme(server: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = server.split_once("://")?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    is_scheme.then_some((scheme, rest))
}

fn parse_after_scheme(scheme: Scheme, rest: &str) -> Option<ServerUrl> {
    let rest = rest.split('#').next().unwrap_or_default();
    let path_start = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(path_start)?;
    let (userinfo, host) = match authority.rsplit_once('@') {
        Some((userinfo, host)) => (Some(parse_userinfo(userinfo)?), host),
        None => (None, authority),
    };
    let (host, port) = split_port(host)?;
    Some(ServerUrl { scheme, host, port, path: url_path::normalize_path(path)?, userinfo })
}

fn parse_userinfo(userinfo: &str) -> Option<(String, Secret)> {
    let (username, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
    let username = String::from_utf8(url_path::percent_decode(username)?).ok()?;
    Some((username, Secret::new(url_path::percent_decode(password)?)))
}

fn split_port(host: &str) -> Option<(String, Option<u16>)> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']')?;
            let address: std::net::Ipv6Addr = address.parse().ok()?;
            let port = if port.is_empty() { "" } else { port.strip_prefix(':')? };
            (address.to_string(), port)
        }
        None => {
            let (name, port) = host.split_once(':').unwrap_or((host, ""));
            let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
            if name.is_empty() || !name.chars().all(is_name) {
                return None;
            }
            (name.to_owned(), port)
        }
    };
    match port {
        "" => Some((name, None)),
        port if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some((name, Some(port.parse().ok()?)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(server: &str) -> String {
        match ServerUrl::parse(server) {
            Ok(url) => {
                let ServerUrl { scheme, host, port, path, userinfo } = url;
                let userinfo = userinfo.map(|(name, _)| format!(" as {name}")).unwrap_or_default();
                format!("{} {host} {port:?} {path}{userinfo}", scheme.as_str())
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn parsed_urls() {
        for (server, want) in [
            ("https://h", "https h None /"),
            ("HTTPS://h:6443/a/", "https h Some(6443) /a"),
            ("https://h/authz/#y?x", "https h None /authz"),
            ("https://[::1]:8443/a", "https ::1 Some(8443) /a"),
            ("https://[FE80::1]", "https fe80::1 None /"),
            ("https://h:/a", "https h None /a"),
            ("https://u%40:p@h/a@b", "https h None /a@b as u@"),
            ("http://10.0.0.1/x", "http 10.0.0.1 None /x"),
            ("http://under_score", "http under_score None /"),
        ] {
            assert_eq!(parsed(server), want, "{server}");
        }
    }

    /// Kubernetes drops the query, and reviews go to a path without it.
    #[test]
    fn a_query_is_refused() {
        for (server, shown) in [
            ("https://h/authz?x=1#y", "https://h/authz?..."),
            ("https://h?", "https://h?..."),
            ("h:1?token=hunter2", "h:1?..."),
        ] {
            assert_eq!(
                parsed(server),
                format!("host must not have a query: {shown:?}"),
                "{server}"
            );
        }
    }

    #[test]
    fn hosts_without_a_scheme_are_plain_http() {
        for (server, want) in [
            ("localhost", "http localhost None /"),
            ("localhost:8080", "http localhost Some(8080) /"),
            ("127.0.0.1:80/", "http 127.0.0.1 Some(80) /"),
            ("[::1]:80", "http ::1 Some(80) /"),
        ] {
            assert_eq!(parsed(server), want, "{server}");
        }
        let refused = "host must be a URL or a host:port pair: \"h:1/path\"";
        assert_eq!(parsed("h:1/path"), refused);
    }

    #[test]
    fn malformed_urls_are_refused_without_showing_secrets() {
        for server in [
            "https://",
            "https:///a",
            "https://h:x",
            "https://h:65536",
            "https://[::1",
            "/a",
            "https://[::1]x",
            "https://a b",
            "https://h/%zz",
            "https://ü",
            ":1",
            "://h",
            "https://::1",
            "https://u%zz@h",
            "a\nb",
        ] {
            let message = parsed(server);
            assert!(message.starts_with("host must be a URL or a host:port pair: "), "{message}");
        }
        assert_eq!(parsed("ftp://h"), "unsupported protocol scheme \"ftp\"");
        for server in ["https://u:hunter2@h:x", "u:hunter2@h/x"] {
            assert!(!parsed(server).contains("hunter2"), "{server}");
        }
        assert!(!format!("{:?}", ServerUrl::parse("https://u:hunter2@h")).contains("hunter2"));
    }
}
