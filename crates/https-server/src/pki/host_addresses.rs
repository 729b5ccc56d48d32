//! The addresses of this host that other hosts can connect to.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// The maximum number of addresses, since a certificate contains them all.
const HOST_ADDRESSES_MAX: usize = 64;

/// Addresses for documentation, which no host has. A route leads to them wherever a default route exists.
const DISTANT_ADDRESSES: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
];

/// The flags of `/proc/net/if_inet6` of an address that changes (temporary) or is not used for new
/// connections (deprecated, tentative).
const CHANGING_FLAGS: u32 = 0x01 | 0x20 | 0x40;

/// Returns the addresses of this host, without loopback and link-local ones. The first is the one from which
/// the host connects to distant hosts, if it has a default route.
pub fn host_addresses() -> Vec<IpAddr> {
    let routed = DISTANT_ADDRESSES.into_iter().filter_map(source_address_towards);
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let local_v4 = parse_fib_trie(&read("/proc/net/fib_trie"));
    let local_v6 = parse_if_inet6(&read("/proc/net/if_inet6"));
    let mut found: Vec<IpAddr> = Vec::new();
    for address in routed.chain(local_v4).chain(local_v6) {
        if is_reachable_from_other_hosts(address)
            && !found.contains(&address)
            && found.len() < HOST_ADDRESSES_MAX
        {
            found.push(address);
        }
    }
    found
}

/// The address from which the system would connect to another one. A datagram socket sends nothing when it
/// chooses its peer.
fn source_address_towards(distant: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = match distant {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).ok()?;
    socket.connect(SocketAddr::new(distant, 9)).ok()?;
    socket.local_addr().ok().map(|own| own.ip())
}

fn is_reachable_from_other_hosts(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(own) => {
            !(own.is_loopback()
                || own.is_unspecified()
                || own.is_link_local()
                || own.is_multicast()
                || own.is_broadcast())
        }
        IpAddr::V6(own) => {
            !(own.is_loopback()
                || own.is_unspecified()
                || own.is_multicast()
                || own.is_unicast_link_local())
        }
    }
}

/// The local IPv4 addresses in the routing table of Linux: the lines `|-- ADDRESS` that `/32 host LOCAL`
/// follows.
fn parse_fib_trie(text: &str) -> BTreeSet<IpAddr> {
    let mut found = BTreeSet::new();
    let mut leaf = None;
    for line in text.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            leaf = address.parse::<Ipv4Addr>().ok();
        } else if line == "/32 host LOCAL" {
            found.extend(leaf.map(IpAddr::V4));
        }
    }
    found
}

/// The IPv6 addresses of Linux. Each line is `ADDRESS INTERFACE PREFIX SCOPE FLAGS NAME` in hexadecimal digits.
fn parse_if_inet6(text: &str) -> BTreeSet<IpAddr> {
    let parse = |line: &str| {
        let mut fields = line.split_whitespace();
        let address = u128::from_str_radix(fields.next()?, 16).ok()?;
        let flags = u32::from_str_radix(fields.nth(3)?, 16).ok()?;
        (flags & CHANGING_FLAGS == 0).then(|| IpAddr::V6(Ipv6Addr::from(address)))
    };
    text.lines().filter_map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_linux_are_read() {
        let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.1.0.0\n        /16 link UNICAST\n     |-- 10.1.2.3\n        \
                    /32 host LOCAL\n     |-- 10.1.255.255\n        /32 link BROADCAST\n     |-- 127.0.0.0\n        \
                    /8 host LOCAL\n     |-- 127.0.0.1\n        /32 host LOCAL\nLocal:\n     |-- 10.1.2.3\n        \
                    /32 host LOCAL\n     |-- nonsense\n        /32 host LOCAL\n";
        let found: Vec<String> = parse_fib_trie(trie).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["10.1.2.3", "127.0.0.1"]);
        let addresses = "00000000000000000000000000000001 01 80 10 80       lo\n\
                         20010db8000000000000000000000007 02 40 00 80     eth0\n\
                         20010db8000000000000000000000008 02 40 00 01     eth0\n\
                         20010db8000000000000000000000009 02 40 00 a0     eth0\n\
                         fe800000000000000000000000000002 02 40 20 80     eth0\nnonsense\n\n";
        let found: Vec<String> =
            parse_if_inet6(addresses).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["::1", "2001:db8::7", "fe80::2"]);
    }

    #[test]
    fn only_addresses_that_others_reach_are_found() {
        for (address, want) in [
            ("10.1.2.3", true),
            ("2001:db8::7", true),
            ("127.0.0.1", false),
            ("::1", false),
            ("0.0.0.0", false),
            ("169.254.1.1", false),
            ("fe80::2", false),
            ("224.0.0.1", false),
        ] {
            assert_eq!(is_reachable_from_other_hosts(address.parse().unwrap()), want, "{address}");
        }
        let found = host_addresses();
        assert!(found.len() <= HOST_ADDRESSES_MAX);
        assert!(found.iter().all(|address| is_reachable_from_other_hosts(*address)), "{found:?}");
    }
}
