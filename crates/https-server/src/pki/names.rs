//! The names by which clients reach the server.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The names of every API server inside its cluster, and of this machine to itself.
const ALWAYS: [&str; 5] = [
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "localhost",
];

/// What a serving certificate has to name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerNames {
    dns: Vec<String>,
    addresses: Vec<IpAddr>,
}

impl ServerNames {
    /// The names that every server has, with a host name and further addresses: those that are
    /// bound and advertised, and the one of the service `kubernetes`. Addresses that mean "any"
    /// are left out, since nobody connects to them, and so is a host name that is not ASCII.
    pub fn new(host_name: Option<&str>, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        let mut names = Self { dns: ALWAYS.map(str::to_owned).to_vec(), addresses: Vec::new() };
        if let Some(name) = host_name.filter(|name| !name.is_empty() && name.is_ascii()) {
            let name = name.to_ascii_lowercase();
            if !names.dns.contains(&name) {
                names.dns.push(name);
            }
        }
        let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        for address in loopback.into_iter().chain(addresses) {
            if !address.is_unspecified() && !names.addresses.contains(&address) {
                names.addresses.push(address);
            }
        }
        names
    }

    /// The DNS names, in lower case.
    pub fn dns(&self) -> &[String] {
        &self.dns
    }

    /// The addresses.
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }
}

/// The name that this machine gives itself, if it is text.
pub fn host_name() -> Option<String> {
    rustix::system::uname().nodename().to_str().ok().map(str::to_owned)
}
