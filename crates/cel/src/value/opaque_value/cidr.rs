//! Networks in CIDR notation, parsed like Go's `net/netip`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use go_compat::quote;

/// An address and the number of its leading bits that identify the network.
///
/// INVARIANT: `prefix_bits` is at most the number of bits of the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cidr {
    address: IpAddr,
    prefix_bits: u8,
}

impl Cidr {
    /// Parses `address/bits`. Bits of the address after the prefix may be set.
    ///
    /// # Errors
    /// Returns an error for any other text and for IPv4 addresses mapped into IPv6.
    pub fn parse(text: &str) -> Result<Self, CidrError> {
        let cidr = parse_cidr_prefix(text)
            .map_err(|fault| CidrError::Syntax { text: text.to_owned(), fault })?;
        match cidr.address {
            IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => {
                Err(CidrError::MappedIpv4(text.to_owned()))
            }
            IpAddr::V4(_) | IpAddr::V6(_) => Ok(cidr),
        }
    }

    /// The address with all its bits, also those after the prefix.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// The length of the prefix.
    pub fn prefix_bits(&self) -> u8 {
        self.prefix_bits
    }

    /// The same network with all bits after the prefix cleared.
    pub fn masked_network(&self) -> Self {
        Self {
            address: mask_address(self.address, self.prefix_bits),
            prefix_bits: self.prefix_bits,
        }
    }

    /// Reports whether the address belongs to this network. IPv4 networks contain no IPv6 address, and vice versa.
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4()
            && mask_address(address, self.prefix_bits)
                == mask_address(self.address, self.prefix_bits)
    }

    /// Reports whether all addresses of the other network belong to this one.
    pub fn contains_cidr(&self, other: &Self) -> bool {
        self.prefix_bits <= other.prefix_bits && self.contains(other.address)
    }
}

/// The reason why a text is not a network, with Kubernetes' message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CidrError {
    /// The text does not have the form `address/bits`.
    #[error(
        "network address parse error during conversion from string: netip.ParsePrefix({}): {fault}",
        quote(.text)
    )]
    Syntax {
        /// The text that was read.
        text: String,
        /// The part of the text that is wrong.
        fault: CidrFault,
    },
    /// The address is an IPv4 address inside an IPv6 address.
    #[error("IPv4-mapped IPv6 address {} is not allowed", quote(.0))]
    MappedIpv4(String),
}

/// The part of `address/bits` that is wrong, with the message of Go's `netip.ParsePrefix`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CidrFault {
    /// No slash separates the address from the bits.
    #[error("no '/'")]
    NoSlash,
    /// The address is malformed; with Go's message.
    #[error("{0}")]
    Address(String),
    /// The address has an IPv6 zone.
    #[error("IPv6 zones cannot be present in a prefix")]
    Zone,
    /// The bits are not a decimal number.
    #[error("bad bits after slash: {}", quote(.0))]
    Bits(String),
    /// The bits are more than the address has.
    #[error("prefix length out of range")]
    BitsOutOfRange,
}

/// Writes the network as Go does: `address/bits`.
impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix_bits)
    }
}

fn parse_cidr_prefix(text: &str) -> Result<Cidr, CidrFault> {
    let (address, bits) = text.rsplit_once('/').ok_or(CidrFault::NoSlash)?;
    let ip = go_compat::parse_ip(address.as_bytes())
        .map_err(|error| CidrFault::Address(error.to_string()))?;
    if !ip.ipv6_zone.is_empty() {
        return Err(CidrFault::Zone);
    }
    let bits = parse_prefix_bits(bits).ok_or_else(|| CidrFault::Bits(bits.to_owned()))?;
    let bits_max = if ip.address.is_ipv4() { 32 } else { 128 };
    match u8::try_from(bits) {
        Ok(bits) if bits <= bits_max => Ok(Cidr { address: ip.address, prefix_bits: bits }),
        Ok(_) | Err(_) => Err(CidrFault::BitsOutOfRange),
    }
}

/// Parses a decimal number of at most 63 bits without a sign and without leading zeros.
fn parse_prefix_bits(text: &str) -> Option<i64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let leads_with_zero = text.len() > 1 && text.starts_with('0');
    if is_plain && !leads_with_zero { text.parse().ok() } else { None }
}

fn mask_address(address: IpAddr, prefix_bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(prefix_bits.into())).unwrap_or(0);
            Ipv4Addr::from_bits(v4.to_bits() & mask).into()
        }
        IpAddr::V6(v6) => {
            let mask =
                u128::MAX.checked_shl(128_u32.saturating_sub(prefix_bits.into())).unwrap_or(0);
            Ipv6Addr::from_bits(v6.to_bits() & mask).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cidr(text: &str) -> Cidr {
        Cidr::parse(text).unwrap()
    }

    #[test]
    fn reads_and_writes_networks() {
        for (text, written, masked) in [
            ("10.1.2.3/8", "10.1.2.3/8", "10.0.0.0/8"),
            ("10.1.2.3/0", "10.1.2.3/0", "0.0.0.0/0"),
            ("10.1.2.3/32", "10.1.2.3/32", "10.1.2.3/32"),
            ("2001:DB8::1/32", "2001:db8::1/32", "2001:db8::/32"),
            ("1:0:0:2:0:0:0:3/128", "1:0:0:2::3/128", "1:0:0:2::3/128"),
            ("::1.2.3.4/10", "::102:304/10", "::/10"),
            ("ff::/0", "ff::/0", "::/0"),
        ] {
            assert_eq!(cidr(text).to_string(), written);
            assert_eq!(cidr(text).masked_network().to_string(), masked);
        }
    }

    #[test]
    fn parse_errors_match_go() {
        for (text, want) in [
            ("", r#"netip.ParsePrefix(""): no '/'"#),
            ("/", r#"netip.ParsePrefix("/"): ParseAddr(""): unable to parse IP"#),
            (
                "fe80::1%eth0/10",
                r#"netip.ParsePrefix("fe80::1%eth0/10"): IPv6 zones cannot be present in a prefix"#,
            ),
            ("1.2.3.4/", r#"netip.ParsePrefix("1.2.3.4/"): bad bits after slash: """#),
            ("1.2.3.4/08", r#"netip.ParsePrefix("1.2.3.4/08"): bad bits after slash: "08""#),
            ("1.2.3.4/+8", r#"netip.ParsePrefix("1.2.3.4/+8"): bad bits after slash: "+8""#),
            ("1.2.3.4/8a", r#"netip.ParsePrefix("1.2.3.4/8a"): bad bits after slash: "8a""#),
            (
                "1.2.3.4/9223372036854775808",
                r#"netip.ParsePrefix("1.2.3.4/9223372036854775808"): bad bits after slash: "9223372036854775808""#,
            ),
            (
                "1.2.3.4/9223372036854775807",
                r#"netip.ParsePrefix("1.2.3.4/9223372036854775807"): prefix length out of range"#,
            ),
            ("1.2.3.4/33", r#"netip.ParsePrefix("1.2.3.4/33"): prefix length out of range"#),
            ("::/129", r#"netip.ParsePrefix("::/129"): prefix length out of range"#),
            (
                "1.2.3.4/8/9",
                r#"netip.ParsePrefix("1.2.3.4/8/9"): ParseAddr("1.2.3.4/8"): unexpected character (at "/8")"#,
            ),
        ] {
            let want = format!("network address parse error during conversion from string: {want}");
            assert_eq!(Cidr::parse(text).unwrap_err().to_string(), want);
        }
        assert_eq!(
            Cidr::parse("::ffff:1.2.3.4/100").unwrap_err().to_string(),
            r#"IPv4-mapped IPv6 address "::ffff:1.2.3.4/100" is not allowed"#,
        );
    }

    #[test]
    fn contains_addresses_that_share_the_prefix() {
        for (network, address, want) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.9.9.9/8", "10.0.0.1", true),
            ("10.0.0.0/8", "11.0.0.0", false),
            ("0.0.0.0/0", "255.255.255.255", true),
            ("0.0.0.0/0", "::", false),
            ("::/0", "0.0.0.0", false),
            ("2001:db8::/32", "2001:db8:ffff::1", true),
            ("2001:db8::/32", "2001:db9::", false),
            ("::1/128", "::1", true),
            ("::1/128", "::2", false),
        ] {
            assert_eq!(
                cidr(network).contains(address.parse().unwrap()),
                want,
                "{network} {address}"
            );
        }
        for (outer, inner, want) in [
            ("10.0.0.0/8", "10.1.0.0/16", true),
            ("10.0.0.0/8", "10.1.0.0/8", true),
            ("10.1.0.0/16", "10.0.0.0/8", false),
            ("10.0.0.0/8", "11.0.0.0/16", false),
            ("0.0.0.0/0", "::/0", false),
        ] {
            assert_eq!(cidr(outer).contains_cidr(&cidr(inner)), want, "{outer} {inner}");
        }
    }
}
