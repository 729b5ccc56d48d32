//! The subject alternative names of a certificate.

use crate::der::{self, DerReader, DerTag};

pub(crate) const EMAIL: DerTag = DerTag::primitive_context_tag(1);
pub(crate) const DNS: DerTag = DerTag::primitive_context_tag(2);
pub(crate) const URI: DerTag = DerTag::primitive_context_tag(6);
pub(crate) const IP: DerTag = DerTag::primitive_context_tag(7);

/// The alternative names to which name constraints apply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AlternativeNames {
    pub(crate) dns_names: Vec<String>,
    pub(crate) email_addresses: Vec<String>,
    pub(crate) uris: Vec<String>,
    /// The IP addresses, each of four or sixteen bytes.
    pub(crate) ip_addresses: Vec<Vec<u8>>,
}

impl AlternativeNames {
    pub(crate) fn read(value: &[u8]) -> Option<Self> {
        let mut list: DerReader<'_> = der::parse_single_value(value, DerTag::SEQUENCE)?;
        let mut names = Self::default();
        while !list.is_empty() {
            let name = list.read_any_value()?;
            match name.tag {
                DNS => names.dns_names.push(parse_ia5_string(name.contents)?),
                EMAIL => names.email_addresses.push(parse_ia5_string(name.contents)?),
                URI => names.uris.push(parse_ia5_string(name.contents)?),
                IP if matches!(name.contents.len(), 4 | 16) => {
                    names.ip_addresses.push(name.contents.to_vec());
                }
                IP => return None,
                _ => {}
            }
        }
        Some(names)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count() == 0
    }

    pub(crate) fn count(&self) -> usize {
        self.dns_names.len()
            + self.email_addresses.len()
            + self.uris.len()
            + self.ip_addresses.len()
    }
}

/// The text of an IA5String.
pub(crate) fn parse_ia5_string(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    text.is_ascii().then(|| text.to_owned())
}

/// Splits an email address into the local part and the domain in lower case. Quoted and escaped
/// parts are not supported, so no constraint permits them.
pub(crate) fn parse_mailbox(text: &str) -> Option<(&str, String)> {
    let (local, domain) = text.split_once('@').filter(|(_, domain)| !domain.contains('@'))?;
    let is_atom = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte))
    };
    let is_mailbox =
        local.split('.').all(is_atom) && !domain.is_empty() && is_comparable_domain(domain, false);
    is_mailbox.then(|| (local, domain.to_ascii_lowercase()))
}

/// The host of a URI in lower case; `None` if the URI has no host, or if the host is an IP address.
pub(crate) fn uri_host(uri: &str) -> Option<String> {
    let (_, rest) = uri.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host_and_port = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host_and_port.split_once(':') {
        None => host_and_port,
        Some((host, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => host,
        Some(_) => return None,
    };
    let is_name = !host.is_empty()
        && !host.contains(['[', ']', '%', '\\'])
        && host.parse::<std::net::Ipv4Addr>().is_err()
        && is_comparable_domain(host, false);
    is_name.then(|| host.to_ascii_lowercase())
}

/// Reports whether a text can be compared with domain constraints. A constraint may begin with a
/// dot.
pub(crate) fn is_comparable_domain(text: &str, is_constraint: bool) -> bool {
    if text.is_empty() {
        return true;
    }
    let labels = match text.strip_prefix('.') {
        Some(rest) if is_constraint => rest,
        _ => text,
    };
    labels
        .split('.')
        .all(|label| !label.is_empty() && label.bytes().all(|byte| (33..=126).contains(&byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uri_hosts() {
        for (uri, want) in [
            ("spiffe://Example.com/ns/a", Some("example.com")),
            ("https://user@a.b:443/x?y#z", Some("a.b")),
            ("https://a.b#@c.d", Some("a.b")),
            ("https://a.b?@c.d", Some("a.b")),
            ("urn:a:b", None),
            ("https:///x", None),
            ("https://10.0.0.1/", None),
            ("https://[::1]/", None),
            ("https://a.b:x/", None),
            ("https://a..b/", None),
        ] {
            assert_eq!(uri_host(uri).as_deref(), want, "{uri}");
        }
    }

    #[test]
    fn mailbox_parsing() {
        for (text, want) in [
            ("a.b@Example.com", Some(("a.b", "example.com"))),
            ("a@b@c", None),
            (".a@b", None),
            ("a..b@c", None),
            ("\"a\"@b", None),
            ("a\\@b@c", None),
            ("@b", None),
            ("a@", None),
            ("a@b.", None),
            ("a", None),
        ] {
            let found = parse_mailbox(text);
            let found = found.as_ref().map(|(local, domain)| (*local, domain.as_str()));
            assert_eq!(found, want, "{text}");
        }
    }

    #[test]
    fn constraints_may_begin_with_a_dot() {
        assert!(is_comparable_domain(".a.b", true));
        assert!(!is_comparable_domain(".a.b", false));
        assert!(is_comparable_domain("", true));
        assert!(!is_comparable_domain("a.", true));
        assert!(!is_comparable_domain("a b", true));
    }
}
