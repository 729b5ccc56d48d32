//! The proxy that environment variables select.

use std::net::IpAddr;

use super::{ProxyUrl, ProxyUrlError};
use crate::target::Scheme;

/// The proxy settings in environment variables, with the meaning that Go gives them.
#[derive(Debug, Default)]
pub(crate) struct ProxyEnvironment {
    http_proxy: Option<ProxyUrlResult>,
    https_proxy: Option<ProxyUrlResult>,
    no_proxy_entries: Vec<NoProxyEntry>,
}

type ProxyUrlResult = Result<ProxyUrl, ProxyUrlError>;

/// An entry of `NO_PROXY`.
#[derive(Debug, PartialEq)]
enum NoProxyEntry {
    Everything,
    Network {
        first: IpAddr,
        prefix_bits: u8,
    },
    Address {
        address: IpAddr,
        port: Option<u16>,
    },
    /// A domain with its subdomains, or the subdomains only.
    Domain {
        name: String,
        matches_domain_itself: bool,
        port: Option<u16>,
    },
}

impl ProxyEnvironment {
    pub(crate) fn from_process_environment() -> Self {
        Self::read(&|name| std::env::var(name).ok())
    }

    /// Reads the variables; those in upper case come first.
    fn read(variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let either = |capital: &str| {
            let set = |name: &str| variable(name).filter(|value| !value.is_empty());
            set(capital).or_else(|| set(&capital.to_ascii_lowercase()))
        };
        let proxy = |name| {
            let value = either(name)?;
            // The proxy always resolves host names, which is the meaning of this scheme.
            let value = match value.strip_prefix("socks5h://") {
                Some(rest) => format!("socks5://{rest}"),
                None if value.contains("://") => value,
                None => format!("http://{value}"),
            };
            Some(ProxyUrl::parse(&value))
        };
        let exceptions = either("NO_PROXY").unwrap_or_default();
        Self {
            http_proxy: proxy("HTTP_PROXY"),
            https_proxy: proxy("HTTPS_PROXY"),
            no_proxy_entries: exceptions.split(',').filter_map(NoProxyEntry::parse).collect(),
        }
    }

    /// Returns the proxy for a host; hosts on loopback have none.
    ///
    /// # Errors
    /// [`ProxyUrlError`] if the variable is invalid: connecting without a proxy would ignore the operator's setting.
    pub(crate) fn proxy_for_host(
        &self,
        scheme: Scheme,
        host: &str,
        port: u16,
    ) -> Result<Option<ProxyUrl>, ProxyUrlError> {
        let named = match scheme {
            Scheme::Http => &self.http_proxy,
            Scheme::Https => &self.https_proxy,
        };
        let Some(proxy) = named else { return Ok(None) };
        let host = host.to_ascii_lowercase();
        let address = host.parse::<IpAddr>().ok();
        let is_loopback =
            host == "localhost" || address.is_some_and(|address| address.is_loopback());
        let is_exception =
            self.no_proxy_entries.iter().any(|entry| entry.matches_host(&host, address, port));
        if is_loopback || is_exception { Ok(None) } else { proxy.clone().map(Some) }
    }
}

impl NoProxyEntry {
    fn parse(entry: &str) -> Option<Self> {
        let entry = entry.trim().to_ascii_lowercase();
        if entry == "*" {
            return Some(Self::Everything);
        }
        if let Some((first, bits)) = entry.split_once('/')
            && let (Ok(first), Ok(prefix_bits)) = (first.parse(), bits.parse())
        {
            return Some(Self::Network { first, prefix_bits });
        }
        let (host, port) = match entry.rsplit_once(':') {
            // An IPv6 address without brackets has colons and no port.
            Some(_) if entry.parse::<IpAddr>().is_ok() => (&*entry, None),
            Some((host, port)) => (host, Some(port.parse().ok()?)),
            None => (&*entry, None),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = host.parse() {
            return Some(Self::Address { address, port });
        }
        let host = host.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(host);
        let (name, matches_domain_itself) = match host.strip_prefix('.') {
            Some(below) => (below, false),
            None => (host, true),
        };
        (!name.is_empty()).then(|| Self::Domain {
            name: name.to_owned(),
            matches_domain_itself,
            port,
        })
    }

    fn matches_host(&self, host: &str, address: Option<IpAddr>, at_port: u16) -> bool {
        match self {
            Self::Everything => true,
            Self::Network { first, prefix_bits } => {
                address.is_some_and(|address| is_in_network(address, *first, *prefix_bits))
            }
            Self::Address { address: entry, port } => {
                address == Some(*entry) && port.is_none_or(|port| port == at_port)
            }
            Self::Domain { name, matches_domain_itself, port } => {
                let is_below = host.strip_suffix(&**name).is_some_and(|rest| rest.ends_with('.'));
                let is_it = *matches_domain_itself && host == name;
                (is_below || is_it) && port.is_none_or(|port| port == at_port)
            }
        }
    }
}

fn is_in_network(address: IpAddr, first: IpAddr, prefix_bits: u8) -> bool {
    let (address, first, all_bits) = match (address, first) {
        (IpAddr::V4(address), IpAddr::V4(first)) => {
            (u128::from(address.to_bits()), u128::from(first.to_bits()), 32)
        }
        (IpAddr::V6(address), IpAddr::V6(first)) => (address.to_bits(), first.to_bits(), 128),
        _ => return false,
    };
    let Some(rest_bits) = u32::checked_sub(all_bits, u32::from(prefix_bits)) else { return false };
    // A prefix of zero bits contains every address, and a shift by all bits is not defined.
    address.checked_shr(rest_bits).unwrap_or(0) == first.checked_shr(rest_bits).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> ProxyEnvironment {
        ProxyEnvironment::read(&|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn is_direct(exceptions: &str, host: &str, port: u16) -> bool {
        let variables = [("HTTPS_PROXY", "p:3128"), ("no_proxy", exceptions)];
        environment(&variables).proxy_for_host(Scheme::Https, host, port).unwrap().is_none()
    }

    #[test]
    fn precedence_of_environment_variables() {
        let environment = environment(&[
            ("HTTPS_PROXY", "http://a:1"),
            ("https_proxy", "http://b:2"),
            ("http_proxy", "socks5://c"),
        ]);
        let at = |scheme| {
            environment.proxy_for_host(scheme, "h", 1).unwrap().unwrap().host_port.to_string()
        };
        let is_direct =
            |host| environment.proxy_for_host(Scheme::Https, host, 1).unwrap().is_none();
        assert_eq!(at(Scheme::Https), "a:1");
        assert_eq!(at(Scheme::Http), "c:1080");
        assert!(is_direct("localhost") && is_direct("127.3.2.1") && is_direct("::1"));
        assert!(!is_direct("localhost.example.com"));
        assert_eq!(ProxyEnvironment::default().proxy_for_host(Scheme::Http, "h", 1), Ok(None));
    }

    #[test]
    fn accepted_forms_of_proxy_variables() {
        let named =
            |value| environment(&[("http_proxy", value)]).proxy_for_host(Scheme::Http, "h", 1);
        let at = |value| named(value).unwrap().unwrap().host_port.to_string();
        assert_eq!(at("proxy"), "proxy:80");
        assert_eq!(at("proxy:3128"), "proxy:3128");
        assert_eq!(at("socks5h://u:p@proxy"), "proxy:1080");
        assert_eq!(named(""), Ok(None));
        assert_eq!(named("ftp://h").unwrap_err(), ProxyUrlError::Scheme("ftp".to_owned()));
        let without = [("http_proxy", "ftp://h"), ("NO_PROXY", "*")];
        assert_eq!(environment(&without).proxy_for_host(Scheme::Http, "h", 1), Ok(None));
    }

    #[test]
    fn no_proxy_exceptions() {
        let cases = [
            ("example.com", "example.com", true),
            ("example.com", "a.EXAMPLE.com", true),
            ("example.com", "anexample.com", false),
            (".example.com", "example.com", false),
            (".example.com", "a.example.com", true),
            ("*.example.com", "example.com", false),
            ("*.example.com", "a.b.example.com", true),
            ("x, example.com:443", "example.com", true),
            ("example.com:8443", "example.com", false),
            ("10.0.0.0/8", "10.1.2.3", true),
            ("10.0.0.0/8", "11.1.2.3", false),
            ("10.0.0.0/33", "10.1.2.3", false),
            ("0.0.0.0/0", "9.9.9.9", true),
            ("fd00::/8", "fd00::1", true),
            ("::/0", "9.9.9.9", false),
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1:444", "192.0.2.1", false),
            ("[2001:db8::1]:443", "2001:db8::1", true),
            ("2001:db8::1", "2001:db8::1", true),
            ("*", "anything", true),
            ("", "anything", false),
            (",.,:,/", "anything", false),
        ];
        for (exceptions, host, want) in cases {
            assert_eq!(is_direct(exceptions, host, 443), want, "{exceptions} {host}");
        }
    }
}
