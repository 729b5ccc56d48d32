//! Who we are to the services that hooks are at (admission §4.6).

use std::collections::HashMap;

use https_client::{ClientCertificate, Credentials, HostPort, ServiceName};

/// What we show to a service.
#[derive(Debug, Clone, PartialEq)]
pub struct Access {
    /// What requests carry.
    pub credentials: Credentials,
    /// The client certificate.
    pub identity: Option<ClientCertificate>,
}

impl Access {
    /// Nothing.
    pub const ANONYMOUS: Self = Self { credentials: Credentials::None, identity: None };
}

/// Who we are to whom: users by the name of a target, such as `h.example.com:8443`, `*.example.com`
/// or `*`.
#[derive(Debug, Clone, Default)]
pub struct AccessTable {
    /// The users by name.
    pub users: HashMap<String, Access>,
    /// The user of the current context, for whom no name matches.
    pub current: Option<Access>,
    /// Who we are to the API server itself, unless its name says otherwise.
    pub own: Option<Access>,
}

/// The port that names need not mention.
const DEFAULT_PORT: u16 = 443;

impl AccessTable {
    /// What we show to a target.
    ///
    /// 1. The name with its port, then the same with its first labels replaced by `*`, fewest first.
    /// 2. For port 443, the same without the port.
    /// 3. For the API server's own service, its own identity.
    /// 4. `*`, then the user of the current context, then nobody.
    #[must_use]
    pub fn access(&self, host: &str, port: u16) -> Access {
        let at = HostPort { host: host.to_owned(), port };
        let with_port = self.by_name(&at.to_string());
        let found = with_port.or_else(|| match port {
            DEFAULT_PORT => self.by_name(host),
            _ => None,
        });
        let own = || if is_own(host, port) { self.own.as_ref() } else { None };
        let fallback = || self.users.get("*").or(self.current.as_ref());
        found.or_else(own).or_else(fallback).cloned().unwrap_or(Access::ANONYMOUS)
    }

    fn by_name(&self, name: &str) -> Option<&Access> {
        let mut rest = name;
        let mut found = self.users.get(name);
        while found.is_none() {
            (_, rest) = rest.split_once('.')?;
            found = self.users.get(&format!("*.{rest}"));
        }
        found
    }
}

fn is_own(host: &str, port: u16) -> bool {
    let own = ServiceName {
        namespace: "default".to_owned(),
        name: "kubernetes".to_owned(),
        port: DEFAULT_PORT,
    };
    port == own.port && host == own.dns_name()
}

#[cfg(test)]
mod tests {
    use https_client::Secret;

    use super::*;

    fn token(text: &str) -> Access {
        Access { credentials: Credentials::Token(Secret::new(text)), identity: None }
    }

    fn table(names: &[&str]) -> AccessTable {
        let users = names.iter().map(|name| ((*name).to_owned(), token(name))).collect();
        AccessTable { users, ..AccessTable::default() }
    }

    #[test]
    fn the_most_specific_name_wins() {
        // T-139
        let table = table(&["h.a.x:8443", "*.a.x:8443", "*.x:8443", "*.x", "h.a.x", "*"]);
        for (host, port, want) in [
            ("h.a.x", 8443, "h.a.x:8443"),
            ("i.a.x", 8443, "*.a.x:8443"),
            ("i.b.x", 8443, "*.x:8443"),
            ("h.a.x", 443, "h.a.x"),
            ("i.a.x", 443, "*.x"),
            ("i.a.x", 9443, "*"),
            ("x", 443, "*"),
            ("h.y", 443, "*"),
        ] {
            assert_eq!(table.access(host, port), token(want), "{host}:{port}");
        }
    }

    #[test]
    fn addresses_are_written_as_in_urls() {
        let table = table(&["[::1]:8443", "::1", "10.0.0.1:8443"]);
        assert_eq!(table.access("::1", 8443), token("[::1]:8443"));
        assert_eq!(table.access("::1", 443), token("::1"));
        assert_eq!(table.access("10.0.0.1", 8443), token("10.0.0.1:8443"));
    }

    #[test]
    fn who_is_not_named_is_the_current_user_or_nobody() {
        assert_eq!(table(&[]).access("h", 443), Access::ANONYMOUS);
        let mut table = table(&[]);
        table.current = Some(token("current"));
        table.own = Some(token("own"));
        assert_eq!(table.access("h", 443), token("current"));
        assert_eq!(table.access("kubernetes.default.svc", 443), token("own"));
        assert_eq!(table.access("kubernetes.default.svc", 444), token("current"));
        table.users.insert("*".to_owned(), token("*"));
        assert_eq!(table.access("kubernetes.default.svc", 443), token("own"));
        assert_eq!(table.access("h", 443), token("*"));
    }
}
