//! The credentials of this server for the services that hooks run in.

use std::collections::HashMap;

use https_client::{ClientCertificate, Credentials, HostPort, ServiceName};

/// The credentials for one service.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceCredentials {
    /// The credentials in the headers of requests.
    pub header_credentials: Credentials,
    /// The client certificate of the TLS connection.
    pub client_certificate: Option<ClientCertificate>,
}

impl ServiceCredentials {
    /// Neither headers nor a certificate.
    pub const ANONYMOUS: Self =
        Self { header_credentials: Credentials::None, client_certificate: None };
}

/// Credentials by the name of a target, such as `h.example.com:8443`, `*.example.com` or `*`.
#[derive(Debug, Clone, Default)]
pub struct ServiceCredentialsTable {
    /// The credentials by target name.
    pub credentials_by_target_name: HashMap<String, ServiceCredentials>,
    /// The credentials of the current context, for targets that no name matches.
    pub current_context_credentials: Option<ServiceCredentials>,
    /// The credentials for the API server itself, unless a name matches it.
    pub own_server_credentials: Option<ServiceCredentials>,
}

/// The port that names may omit.
const DEFAULT_PORT: u16 = 443;

impl ServiceCredentialsTable {
    /// Returns the credentials for a target, from the first step that has some:
    ///
    /// 1. The name with its port, then the same with its first labels replaced by `*`, fewest first.
    /// 2. For port 443, the same without the port.
    /// 3. For the service of the API server, its own credentials.
    /// 4. `*`, then the current context, then no credentials.
    #[must_use]
    pub fn credentials_for_host(&self, host: &str, port: u16) -> ServiceCredentials {
        let at = HostPort { host: host.to_owned(), port };
        let with_port = self.find_credentials_by_target_name(&at.to_string());
        let found = with_port.or_else(|| match port {
            DEFAULT_PORT => self.find_credentials_by_target_name(host),
            _ => None,
        });
        let own =
            || if is_own_server(host, port) { self.own_server_credentials.as_ref() } else { None };
        let fallback = || {
            self.credentials_by_target_name.get("*").or(self.current_context_credentials.as_ref())
        };
        found.or_else(own).or_else(fallback).cloned().unwrap_or(ServiceCredentials::ANONYMOUS)
    }

    fn find_credentials_by_target_name(&self, name: &str) -> Option<&ServiceCredentials> {
        let mut rest = name;
        let mut found = self.credentials_by_target_name.get(name);
        while found.is_none() {
            (_, rest) = rest.split_once('.')?;
            found = self.credentials_by_target_name.get(&format!("*.{rest}"));
        }
        found
    }
}

fn is_own_server(host: &str, port: u16) -> bool {
    let own = ServiceName {
        namespace: "default".to_owned(),
        name: "kubernetes".to_owned(),
        port: Some(DEFAULT_PORT),
    };
    own.port == Some(port) && host == own.service_dns_name()
}

#[cfg(test)]
mod tests {
    use https_client::Secret;

    use super::*;

    fn token(text: &str) -> ServiceCredentials {
        ServiceCredentials {
            header_credentials: Credentials::Token(Secret::new(text)),
            client_certificate: None,
        }
    }

    fn table(names: &[&str]) -> ServiceCredentialsTable {
        let users = names.iter().map(|name| ((*name).to_owned(), token(name))).collect();
        ServiceCredentialsTable {
            credentials_by_target_name: users,
            ..ServiceCredentialsTable::default()
        }
    }

    #[test]
    fn the_most_specific_name_wins() {
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
            assert_eq!(table.credentials_for_host(host, port), token(want), "{host}:{port}");
        }
    }

    #[test]
    fn addresses_are_written_as_in_urls() {
        let table = table(&["[::1]:8443", "::1", "10.0.0.1:8443"]);
        assert_eq!(table.credentials_for_host("::1", 8443), token("[::1]:8443"));
        assert_eq!(table.credentials_for_host("::1", 443), token("::1"));
        assert_eq!(table.credentials_for_host("10.0.0.1", 8443), token("10.0.0.1:8443"));
    }

    #[test]
    fn a_target_without_a_name_gets_the_current_context_or_nothing() {
        assert_eq!(table(&[]).credentials_for_host("h", 443), ServiceCredentials::ANONYMOUS);
        let mut table = table(&[]);
        table.current_context_credentials = Some(token("current"));
        table.own_server_credentials = Some(token("own"));
        assert_eq!(table.credentials_for_host("h", 443), token("current"));
        assert_eq!(table.credentials_for_host("kubernetes.default.svc", 443), token("own"));
        assert_eq!(table.credentials_for_host("kubernetes.default.svc", 444), token("current"));
        table.credentials_by_target_name.insert("*".to_owned(), token("*"));
        assert_eq!(table.credentials_for_host("kubernetes.default.svc", 443), token("own"));
        assert_eq!(table.credentials_for_host("h", 443), token("*"));
    }
}
