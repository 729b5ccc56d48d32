//! The source addresses of a request.

use std::net::IpAddr;

/// Upper bound on the recorded addresses of `X-Forwarded-For`.
const FORWARDED_MAX: usize = 64;

/// Returns the addresses of a request, the original client first: those of the header `X-Forwarded-For`, that of
/// `X-Real-Ip` unless it is among them, and the peer of the connection unless it is the last. Only
/// the peer is certain; a client can send any header.
pub fn source_ips(forwarded_for: &str, real_ip: &str, peer: IpAddr) -> Vec<IpAddr> {
    let mut addresses: Vec<IpAddr> = forwarded_for
        .split(',')
        .filter_map(|part| part.trim().parse().ok())
        .take(FORWARDED_MAX)
        .collect();
    if let Ok(address) = real_ip.parse()
        && !addresses.contains(&address)
    {
        addresses.push(address);
    }
    // An IPv4 peer of an IPv6 socket is recorded as an IPv4 address.
    let peer = peer.to_canonical();
    if addresses.last() != Some(&peer) {
        addresses.push(peer);
    }
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains() {
        let cases = [
            ("", "", "10.0.0.1", "10.0.0.1"),
            ("1.1.1.1, 2.2.2.2", "", "10.0.0.1", "1.1.1.1 2.2.2.2 10.0.0.1"),
            ("1.1.1.1", "3.3.3.3", "10.0.0.1", "1.1.1.1 3.3.3.3 10.0.0.1"),
            ("1.1.1.1,2.2.2.2", "1.1.1.1", "10.0.0.1", "1.1.1.1 2.2.2.2 10.0.0.1"),
            ("1.1.1.1,10.0.0.1", "", "10.0.0.1", "1.1.1.1 10.0.0.1"),
            ("10.0.0.1,1.1.1.1", "", "10.0.0.1", "10.0.0.1 1.1.1.1 10.0.0.1"),
            ("rubbish,,2001:db8::1", "rubbish", "10.0.0.1", "2001:db8::1 10.0.0.1"),
            ("", "", "::ffff:10.0.0.1", "10.0.0.1"),
        ];
        for (forwarded_for, real_ip, peer, want) in cases {
            let got = source_ips(forwarded_for, real_ip, peer.parse().unwrap());
            let got: Vec<String> = got.iter().map(IpAddr::to_string).collect();
            assert_eq!(got.join(" "), want, "{forwarded_for} {real_ip}");
        }
    }

    #[test]
    fn a_long_chain_is_cut_and_the_peer_stays() {
        let peer = "10.0.0.1".parse().unwrap();
        let got = source_ips(&"1.1.1.1,".repeat(FORWARDED_MAX + 1), "", peer);
        assert_eq!(got.len(), FORWARDED_MAX + 1);
        assert_eq!(got.last(), Some(&peer));
    }
}
