//! The addresses that a client may connect to.
//!
//! A tenant writes the configuration of an admission webhook, and the endpoints of the Service that the
//! configuration may name. A client therefore checks the address of every connection after the name is resolved
//! and before the connection is opened, so that it checks the address that it dials.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The addresses that a client may connect to. Link-local, unspecified, multicast and broadcast addresses and those of cloud
/// metadata services are always refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressPolicy {
    /// Whether loopback addresses are permitted. Services of the host, such as etcd, listen there without
    /// authentication, so a tenant should not be able to make the server connect to them.
    pub allows_loopback: bool,
}

impl Default for AddressPolicy {
    /// The policy for addresses that the operator configures: a sidecar on loopback is usual.
    fn default() -> Self {
        Self { allows_loopback: true }
    }
}

/// The reason why an address is refused. Displays as the kind of address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RefusedAddress {
    /// 169.254.0.0/16 and fe80::/10, where metadata services and agents of the host listen.
    #[error("link-local")]
    LinkLocal,
    /// The addresses 127.0.0.0/8 and ::1.
    #[error("loopback")]
    Loopback,
    /// A metadata service that is not at a link-local address.
    #[error("metadata service")]
    Metadata,
    /// 0.0.0.0/8 and `::`, which lead to this host.
    #[error("unspecified")]
    Unspecified,
    /// Multicast and broadcast addresses, which reach more than one host.
    #[error("multicast or broadcast")]
    Multicast,
}

/// Metadata services of clouds outside of the link-local ranges: of Alibaba Cloud, Azure, Oracle Cloud, AWS
/// and Google Cloud. They give credentials of the host to every local caller.
const METADATA_V4: [Ipv4Addr; 3] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 0, 0, 192),
];
const METADATA_V6: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];

impl AddressPolicy {
    /// Checks an address. An IPv6 address that holds an IPv4 address is checked as both.
    ///
    /// # Errors
    /// [`RefusedAddress`] if no connection may be opened to it.
    pub fn check_address(self, address: IpAddr) -> Result<(), RefusedAddress> {
        let refused = match address {
            IpAddr::V4(address) => refusal_of_ipv4(address),
            IpAddr::V6(address) => refusal_of_ipv6(address).or_else(|| {
                embedded_ipv4_addresses(address).into_iter().flatten().find_map(refusal_of_ipv4)
            }),
        };
        match refused {
            Some(RefusedAddress::Loopback) if self.allows_loopback => Ok(()),
            Some(refused) => Err(refused),
            None => Ok(()),
        }
    }
}

fn refusal_of_ipv4(address: Ipv4Addr) -> Option<RefusedAddress> {
    if address.is_loopback() {
        Some(RefusedAddress::Loopback)
    } else if address.octets()[0] == 0 {
        Some(RefusedAddress::Unspecified)
    } else if address.is_link_local() {
        Some(RefusedAddress::LinkLocal)
    } else if address.is_multicast() || address.is_broadcast() {
        Some(RefusedAddress::Multicast)
    } else if METADATA_V4.contains(&address) {
        Some(RefusedAddress::Metadata)
    } else {
        None
    }
}

fn refusal_of_ipv6(address: Ipv6Addr) -> Option<RefusedAddress> {
    if address.is_loopback() {
        Some(RefusedAddress::Loopback)
    } else if address.is_unspecified() {
        Some(RefusedAddress::Unspecified)
    } else if address.is_unicast_link_local() {
        Some(RefusedAddress::LinkLocal)
    } else if address.is_multicast() {
        Some(RefusedAddress::Multicast)
    } else if METADATA_V6.contains(&address) {
        Some(RefusedAddress::Metadata)
    } else {
        None
    }
}

/// The IPv4 addresses that an IPv6 address contains, by the prefixes of translation and tunnel mechanisms.
fn embedded_ipv4_addresses(address: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let octets = address.octets();
    #[expect(
        clippy::indexing_slicing,
        reason = "INVARIANT: all callers below name octets under 16"
    )]
    let at = |indices: [usize; 4]| Some(Ipv4Addr::from(indices.map(|idx| octets[idx])));
    let last = at([12, 13, 14, 15]);
    match address.segments() {
        // The loopback and unspecified addresses are not IPv4-compatible addresses.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => [None, None],
        // IPv4-compatible and IPv4-mapped (RFC 4291), translated (RFC 2765), NAT64 (RFC 6052).
        [0, 0, 0, 0, 0, 0 | 0xffff, _, _]
        | [0, 0, 0, 0, 0xffff, 0, _, _]
        | [0x64, 0xff9b, 0, 0, 0, 0, _, _] => [last, None],
        // NAT64 with a local prefix (RFC 8215). The prefix has 48 bits if zeros follow, and 96 bits otherwise.
        [0x64, 0xff9b, 1, _, _, _, 0, 0] => [at([6, 7, 9, 10]), None],
        [0x64, 0xff9b, 1, ..] => [last, None],
        // 6to4 (RFC 3056).
        [0x2002, ..] => [at([2, 3, 4, 5]), None],
        // Teredo (RFC 4380): the server, and the client with each bit inverted.
        [0x2001, 0, ..] => {
            let client = last.map(|client| Ipv4Addr::from_bits(!client.to_bits()));
            [at([4, 5, 6, 7]), client]
        }
        _ => [None, None],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TENANT: AddressPolicy = AddressPolicy { allows_loopback: false };

    /// A19: the server connects to none of these addresses, in whatever form a URL writes them.
    #[test]
    fn a19_addresses_that_are_refused() {
        use RefusedAddress::{LinkLocal, Loopback, Metadata, Multicast, Unspecified};
        for (address, refused) in [
            ("169.254.169.254", LinkLocal),
            ("169.254.0.1", LinkLocal),
            ("169.254.255.255", LinkLocal),
            ("fe80::1", LinkLocal),
            ("febf:ffff::1", LinkLocal),
            ("::ffff:169.254.169.254", LinkLocal),
            ("::169.254.169.254", LinkLocal),
            ("::ffff:0:169.254.169.254", LinkLocal),
            ("64:ff9b::169.254.169.254", LinkLocal),
            ("64:ff9b:1::169.254.169.254", LinkLocal),
            ("64:ff9b:1:a9fe:a9:fe00::", LinkLocal),
            ("2002:a9fe:a9fe::1", LinkLocal),
            ("2001:0:a9fe:a9fe::", LinkLocal),
            ("2001:0:808:808:0:0:5601:5601", LinkLocal),
            ("127.0.0.1", Loopback),
            ("127.255.255.254", Loopback),
            ("::1", Loopback),
            ("::ffff:127.0.0.1", Loopback),
            ("::127.0.0.1", Loopback),
            ("64:ff9b::7f00:1", Loopback),
            ("2002:7f00:1::", Loopback),
            ("0.0.0.0", Unspecified),
            ("0.1.2.3", Unspecified),
            ("::", Unspecified),
            ("::ffff:0.0.0.0", Unspecified),
            ("64:ff9b::", Unspecified),
            ("224.0.0.1", Multicast),
            ("255.255.255.255", Multicast),
            ("ff02::1", Multicast),
            ("::ffff:239.1.1.1", Multicast),
            ("100.100.100.200", Metadata),
            ("168.63.129.16", Metadata),
            ("192.0.0.192", Metadata),
            ("fd00:ec2::254", Metadata),
            ("fd20:ce::254", Metadata),
            ("::ffff:100.100.100.200", Metadata),
        ] {
            let parsed = address.parse().unwrap();
            assert_eq!(TENANT.check_address(parsed), Err(refused), "{address}");
            let by_operator = AddressPolicy::default().check_address(parsed);
            assert_eq!(by_operator.is_ok(), refused == Loopback, "{address}");
        }
    }

    #[test]
    fn neighbouring_addresses_are_permitted() {
        for address in [
            "169.253.255.255",
            "169.255.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "1.0.0.0",
            "10.96.0.1",
            "100.100.100.201",
            "223.255.255.255",
            "fec0::1",
            "fd00:ec2::253",
            "2001:db8::a9fe:a9fe",
            "2003:a9fe:a9fe::1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::10.0.0.1",
            "::ffff:10.0.0.1",
            "2002:a00:1::a9fe:a9fe",
        ] {
            assert_eq!(TENANT.check_address(address.parse().unwrap()), Ok(()), "{address}");
        }
    }
}
