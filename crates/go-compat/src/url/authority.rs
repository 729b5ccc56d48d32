//! The authority of a URL: `user:password@host:port`.

use std::fmt;

use super::percent_escape::{UrlPart, url_escape, url_unescape};
use super::url_parser::UrlFault;
use crate::ip::parse_ip;

/// The user and the optional password of a URL, decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserInfo {
    /// The user name, possibly empty.
    pub name: Vec<u8>,
    /// The password; `None` when no colon follows the name.
    pub password: Option<Vec<u8>>,
}

/// The escaped form, `name` or `name:password`.
impl fmt::Display for UserInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&url_escape(&self.name, UrlPart::UserInfo))?;
        if let Some(password) = &self.password {
            write!(f, ":{}", url_escape(password, UrlPart::UserInfo))?;
        }
        Ok(())
    }
}

/// Parses the text between `//` and the path.
pub(super) fn parse_authority(
    scheme: &str,
    text: &str,
) -> Result<(Option<UserInfo>, Vec<u8>), UrlFault> {
    match text.rsplit_once('@') {
        None => Ok((None, parse_host(scheme, text)?)),
        Some((user, host)) => {
            let host = parse_host(scheme, host)?;
            Ok((Some(parse_user_info(user)?), host))
        }
    }
}

fn parse_user_info(text: &str) -> Result<UserInfo, UrlFault> {
    if !text.bytes().all(is_user_info_byte) {
        return Err(UrlFault::UserInfo);
    }
    let decode = |text| url_unescape(text, UrlPart::UserInfo).map(std::borrow::Cow::into_owned);
    let (name, password) = match text.split_once(':') {
        Some((name, password)) => (name, Some(password)),
        None => (text, None),
    };
    Ok(UserInfo { name: decode(name)?, password: password.map(decode).transpose()? })
}

fn is_user_info_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte)
}

fn parse_host(scheme: &str, text: &str) -> Result<Vec<u8>, UrlFault> {
    match text.rfind('[') {
        Some(0) => parse_bracketed_host(text),
        Some(_) => Err(UrlFault::IpLiteral),
        None => {
            // A database URL may list several hosts with ports, so only the text after the last colon is checked
            // as a port. The host of an HTTP URL has at most one colon.
            let colon = match scheme {
                "http" | "https" => text.find(':'),
                _ => text.rfind(':'),
            };
            check_port(colon.and_then(|colon| text.get(colon..)).unwrap_or_default())?;
            Ok(url_unescape(text, UrlPart::Host)?.into_owned())
        }
    }
}

/// Reads an IPv6 address in brackets with an optional port: `[fe80::1%25eth0]:80`.
fn parse_bracketed_host(text: &str) -> Result<Vec<u8>, UrlFault> {
    let inside = text.strip_prefix('[').unwrap_or(text);
    let (name, port) = inside.rsplit_once(']').ok_or(UrlFault::MissingBracket)?;
    check_port(port)?;
    let (address, zone) = name.split_at(name.find("%25").unwrap_or(name.len()));
    let mut literal = url_unescape(address, UrlPart::Host)?.into_owned();
    literal.extend_from_slice(&url_unescape(zone, UrlPart::Zone)?);
    let ip = parse_ip(&literal).map_err(UrlFault::Host)?;
    if ip.address.is_ipv4() {
        return Err(UrlFault::IpLiteral);
    }
    Ok([b"[", literal.as_slice(), b"]", port.as_bytes()].concat())
}

fn check_port(colon_port: &str) -> Result<(), UrlFault> {
    if is_optional_port(colon_port.as_bytes()) {
        Ok(())
    } else {
        Err(UrlFault::Port(colon_port.to_owned()))
    }
}

/// Reports whether the text is empty or a colon and decimal digits, of which there may be none.
fn is_optional_port(text: &[u8]) -> bool {
    match text {
        [] => true,
        [b':', digits @ ..] => digits.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// Splits a decoded host into the name without brackets and the port without colon.
pub(super) fn split_host_and_port(host: &[u8]) -> (&[u8], &str) {
    let colon = host.iter().rposition(|&byte| byte == b':').unwrap_or(host.len());
    let (name, port) = match host.split_at(colon) {
        // A port is a colon and ASCII digits.
        (name, [_, digits @ ..]) if digits.iter().all(u8::is_ascii_digit) => {
            (name, std::str::from_utf8(digits).unwrap_or_default())
        }
        _ => (host, ""),
    };
    let bare = name.strip_prefix(b"[").and_then(|name| name.strip_suffix(b"]"));
    (bare.unwrap_or(name), port)
}
