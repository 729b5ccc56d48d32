//! The target of a client: a URL or a Service, with trust, credentials and proxy.

use std::fmt;

use crate::client_certificate::ClientCertificate;
use crate::credentials::Credentials;
use crate::impersonation::Impersonation;
use crate::proxy::Proxy;
use crate::server_trust::ServerTrust;

/// The default user agent.
const USER_AGENT: &str = "portcullis";

/// The settings of a client for one server.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// The URL or the Service.
    pub destination: Destination,
    /// The percent-encoded path of all requests, such as `/authorize`. An empty path is sent as `/`.
    pub path: String,
    /// The certificates that the client accepts. Plain HTTP ignores it.
    pub server_trust: ServerTrust,
    /// The name for SNI and for the verification of the certificate, if it is not the host.
    pub server_name: Option<String>,
    /// The client certificate. Plain HTTP ignores it.
    pub client_certificate: Option<ClientCertificate>,
    /// The credentials of requests. They are never sent over plain HTTP, where others could read them.
    pub credentials: Credentials,
    /// The proxy to the server.
    pub proxy: Proxy,
    /// The user to impersonate.
    pub impersonation: Impersonation,
    /// Whether the client accepts compressed responses.
    pub accepts_gzip: bool,
    /// The value of the `User-Agent` header.
    pub user_agent: &'static str,
}

impl Target {
    /// Makes a target that trusts the CAs of the system and has no credentials. The caller sets the other fields.
    pub fn new(destination: Destination, path: &str) -> Self {
        Self {
            destination,
            path: path.to_owned(),
            server_trust: ServerTrust::System,
            server_name: None,
            client_certificate: None,
            credentials: Credentials::None,
            proxy: Proxy::Direct,
            impersonation: Impersonation::default(),
            accepts_gzip: true,
            user_agent: USER_AGENT,
        }
    }
}

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// The server has a URL.
    Url {
        /// Whether the URL says `http` or `https`.
        scheme: Scheme,
        /// A host name or an IP address; an IPv6 address has no brackets.
        host: String,
        /// The port; `None` for the default port of the scheme.
        port: Option<u16>,
    },
    /// The server is behind a Service of the cluster. The client uses HTTPS, no proxy, and resolves the Service for every new
    /// connection.
    Service(ServiceName),
}

/// The scheme of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Plain HTTP, without credentials, CAs and client certificate.
    Http,
    /// The scheme `https`: HTTP over TLS.
    Https,
}

impl Scheme {
    /// The scheme as it is written in a URL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port of a URL without a port.
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// A Service of the cluster and one of its ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceName {
    /// The namespace of the Service.
    pub namespace: String,
    /// The name of the Service.
    pub name: String,
    /// The port of the Service, not of its endpoints. `None` means its only port, or 443 if it has several.
    pub port: Option<u16>,
}

impl ServiceName {
    /// The DNS name that the certificate must have: `name.namespace.svc`.
    pub fn service_dns_name(&self) -> String {
        format!("{}.{}.svc", self.name, self.namespace)
    }
}

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.service_dns_name())?;
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}
