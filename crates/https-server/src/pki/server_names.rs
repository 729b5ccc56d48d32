//! The names by which clients reach the server.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The names of every API server inside its cluster, and `localhost`.
const ALWAYS: [&str; 5] = [
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "localhost",
];

/// The DNS names and addresses that a serving certificate must contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerNames {
    dns_names: Vec<String>,
    ip_addresses: Vec<IpAddr>,
}

impl ServerNames {
    /// The names that every server has, plus a host name with and without its domain, and the addresses
    /// that are bound, advertised, and those of the service `kubernetes`. Unspecified addresses are left out
    /// because no client connects to them, and so is a host name that is not ASCII.
    pub fn new(host_name: Option<&str>, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        let mut names =
            Self { dns_names: ALWAYS.map(str::to_owned).to_vec(), ip_addresses: Vec::new() };
        if let Some(name) = host_name.filter(|name| !name.is_empty() && name.is_ascii()) {
            let name = name.to_ascii_lowercase();
            let short = name.split('.').next().unwrap_or_default().to_owned();
            for name in [name, short] {
                if !name.is_empty() && !names.dns_names.contains(&name) {
                    names.dns_names.push(name);
                }
            }
        }
        let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        for address in loopback.into_iter().chain(addresses) {
            if !address.is_unspecified() && !names.ip_addresses.contains(&address) {
                names.ip_addresses.push(address);
            }
        }
        names
    }

    /// The same names and further DNS names.
    #[must_use]
    pub fn with_dns_names(mut self, names: impl IntoIterator<Item = String>) -> Self {
        for name in names {
            let name = name.to_ascii_lowercase();
            if !self.dns_names.contains(&name) {
                self.dns_names.push(name);
            }
        }
        self
    }

    /// The DNS names, in lower case.
    pub fn dns_names(&self) -> &[String] {
        &self.dns_names
    }

    /// The IP addresses, without unspecified ones.
    pub fn ip_addresses(&self) -> &[IpAddr] {
        &self.ip_addresses
    }
}

/// The host name of this machine, if it is UTF-8.
pub fn host_name() -> Option<String> {
    rustix::system::uname().nodename().to_str().ok().map(str::to_owned)
}
