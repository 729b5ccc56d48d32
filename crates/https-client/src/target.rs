//! Where a service is and how to speak with it.

use std::fmt;

use crate::credentials::Credentials;
use crate::identity::Identity;
use crate::impersonate::Impersonate;
use crate::proxy::Proxy;
use crate::trust::Trust;

/// Who we say we are to a service, unless told.
const USER_AGENT: &str = "portcullis";

/// Everything that a client needs to know about one service.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Where it is.
    pub place: Place,
    /// The path of all requests, percent-encoded where it must be, such as `/authorize`. An empty
    /// one is sent as `/`.
    pub path: String,
    /// Whose certificates are believed. Plain HTTP has none.
    pub trust: Trust,
    /// The name to ask for in the handshake and to find in the certificate, if it is not the host.
    pub server_name: Option<String>,
    /// The client certificate. Plain HTTP has none.
    pub identity: Option<Identity>,
    /// What requests carry to say who sends them. Never sent over plain HTTP, where anybody on the
    /// way could read it.
    pub credentials: Credentials,
    /// What stands between.
    pub proxy: Proxy,
    /// As whom to act.
    pub impersonate: Impersonate,
    /// Whether answers may be compressed.
    pub can_compress: bool,
    /// Who we say we are.
    pub user_agent: &'static str,
}

impl Target {
    /// A target that trusts the roots of the system and has no credentials, for the parts that
    /// matter to be set.
    pub fn new(place: Place, path: &str) -> Self {
        Self {
            place,
            path: path.to_owned(),
            trust: Trust::System,
            server_name: None,
            identity: None,
            credentials: Credentials::None,
            proxy: Proxy::Direct,
            impersonate: Impersonate::default(),
            can_compress: true,
            user_agent: USER_AGENT,
        }
    }
}

/// Where a service is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// At a URL.
    Url {
        /// How to speak.
        scheme: Scheme,
        /// A name or an address; an IPv6 address without brackets.
        host: String,
        /// The port if the URL names one, else that of the scheme.
        port: Option<u16>,
    },
    /// In the cluster: HTTPS, never through a proxy, and asked for again with every new connection.
    Service(ServiceName),
}

/// How to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// In the clear: without credentials, authorities and client certificate.
    Http,
    /// Over TLS.
    Https,
}

impl Scheme {
    /// How it is written in a URL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port of a URL that names none.
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// A service of the cluster and one of its ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The port of the service, not of its backends.
    pub port: u16,
}

impl ServiceName {
    /// The name that its certificate must bear: `name.namespace.svc`.
    pub fn dns_name(&self) -> String {
        format!("{}.{}.svc", self.name, self.namespace)
    }
}

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.svc:{}", self.name, self.namespace, self.port)
    }
}
