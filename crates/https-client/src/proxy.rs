//! The proxy between a client and its target.

mod proxy_environment;

use http::Uri;

use crate::secret::Secret;
use crate::service_resolver::HostPort;

pub(crate) use proxy_environment::ProxyEnvironment;

/// The proxy between a client and its target. Services of the cluster are always reached without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proxy {
    /// The client uses no proxy.
    Direct,
    /// The proxy that `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`, in upper or lower case, select when the client is made.
    Environment,
    /// This proxy, for every host.
    Url(ProxyUrl),
}

/// The URL of a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyUrl {
    pub(crate) kind: ProxyKind,
    pub(crate) host_port: HostPort,
    pub(crate) proxy_login: Option<ProxyLogin>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProxyKind {
    Http,
    Https,
    Socks5,
}

/// The user name and password for a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProxyLogin {
    pub(crate) username: String,
    pub(crate) password: Secret,
}

/// The reason why a URL is not valid for a proxy. The message does not show the URL, since it may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProxyUrlError {
    /// The text is not a URL with a host.
    #[error("could not parse")]
    Malformed,
    /// The scheme is not that of a supported proxy type.
    #[error("unsupported scheme {0:?}, must be http, https, or socks5")]
    Scheme(String),
}

impl ProxyUrl {
    /// Parses a URL such as `http://user:password@proxy.example.com:3128`.
    ///
    /// # Errors
    /// [`ProxyUrlError`] if the URL is not valid for a proxy.
    pub fn parse(url: &str) -> Result<Self, ProxyUrlError> {
        // The scheme is checked first, since Go parses texts such as `ftp:abc` as URLs.
        let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme).to_ascii_lowercase();
        let (kind, default_port) = match &*scheme {
            "http" => (ProxyKind::Http, 80),
            "https" => (ProxyKind::Https, 443),
            "socks5" => (ProxyKind::Socks5, 1080),
            _ => return Err(ProxyUrlError::Scheme(scheme)),
        };
        let uri: Uri = url.parse().map_err(|_| ProxyUrlError::Malformed)?;
        let authority = uri.authority().ok_or(ProxyUrlError::Malformed)?;
        let (login, host_port) = match authority.as_str().rsplit_once('@') {
            Some((login, host_port)) => (Some(ProxyLogin::parse(login)?), host_port),
            None => (None, authority.as_str()),
        };
        let bracketed = authority.host();
        let port = match host_port.strip_prefix(bracketed).and_then(|rest| rest.strip_prefix(':')) {
            Some(port) if !port.is_empty() => port.parse().map_err(|_| ProxyUrlError::Malformed)?,
            _ => default_port,
        };
        let host = bracketed.trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err(ProxyUrlError::Malformed);
        }
        Ok(Self { kind, host_port: HostPort { host, port }, proxy_login: login })
    }

    pub(crate) fn is_socks(&self) -> bool {
        self.kind == ProxyKind::Socks5
    }
}

impl ProxyLogin {
    fn parse(login: &str) -> Result<Self, ProxyUrlError> {
        let (username, password) = login.split_once(':').unwrap_or((login, ""));
        let username = percent_decode(username).ok_or(ProxyUrlError::Malformed)?;
        let username = String::from_utf8(username).map_err(|_| ProxyUrlError::Malformed)?;
        let password = percent_decode(password).ok_or(ProxyUrlError::Malformed)?;
        Ok(Self { username, password: Secret::new(password) })
    }
}

fn percent_decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    let digit = |byte: Option<u8>| {
        byte.and_then(|byte| char::from(byte).to_digit(16))
            .and_then(|digit| u8::try_from(digit).ok())
    };
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let (high, low) = (digit(bytes.next())?, digit(bytes.next())?);
            decoded.push(high << 4 | low);
        } else {
            decoded.push(byte);
        }
    }
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_proxy_urls() {
        let proxy = ProxyUrl::parse("http://us%40er:p%3Aw@proxy.example.com").unwrap();
        assert_eq!(proxy.kind, ProxyKind::Http);
        assert_eq!(proxy.host_port.to_string(), "proxy.example.com:80");
        let login = proxy.proxy_login.unwrap();
        assert_eq!((&*login.username, login.password.expose()), ("us@er", &b"p:w"[..]));
        assert_eq!(ProxyUrl::parse("https://[::1]/").unwrap().host_port.to_string(), "[::1]:443");
        assert_eq!(ProxyUrl::parse("http://h:8080/x?y").unwrap().host_port.port, 8080);
        assert_eq!(ProxyUrl::parse("SOCKS5://h").unwrap().host_port.port, 1080);
    }

    #[test]
    fn invalid_proxy_urls_are_refused() {
        let fault = |url| ProxyUrl::parse(url).unwrap_err();
        let scheme = |scheme: &str| ProxyUrlError::Scheme(scheme.to_owned());
        assert_eq!(fault("ftp://h"), scheme("ftp"));
        assert_eq!(fault("h"), scheme(""));
        assert_eq!(fault("http://"), ProxyUrlError::Malformed);
        assert_eq!(fault("http://h:99999"), ProxyUrlError::Malformed);
        assert_eq!(fault("http://u%zz@h"), ProxyUrlError::Malformed);
        assert!(!format!("{:?}", ProxyUrl::parse("http://u:hunter2@h")).contains("hunter2"));
    }
}
