//! The range of cluster IPs.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// The IPv4 network that services get their cluster IPs from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceIpRange {
    network_address: u32,
    network_prefix_bits: u32,
}

/// The text is not a usable range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("want a network of IPv4 with 8 to 30 bits, such as 10.96.0.0/16")]
pub struct ServiceIpRangeError;

impl FromStr for ServiceIpRange {
    type Err = ServiceIpRangeError;

    fn from_str(text: &str) -> Result<Self, ServiceIpRangeError> {
        let (address, bits) = text.split_once('/').ok_or(ServiceIpRangeError)?;
        let address: Ipv4Addr = address.parse().map_err(|_| ServiceIpRangeError)?;
        let prefix_bits: u32 = bits.parse().map_err(|_| ServiceIpRangeError)?;
        if !(8..=30).contains(&prefix_bits) {
            return Err(ServiceIpRangeError);
        }
        let mask = u32::MAX << (32 - prefix_bits);
        Ok(Self { network_address: u32::from(address) & mask, network_prefix_bits: prefix_bits })
    }
}

impl fmt::Display for ServiceIpRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from(self.network_address), self.network_prefix_bits)
    }
}

impl ServiceIpRange {
    /// The first address, which the service `default/kubernetes` has.
    #[must_use]
    pub fn first_cluster_ip(self) -> Ipv4Addr {
        Ipv4Addr::from(self.network_address + 1)
    }

    /// How many addresses there are: all but the network and the broadcast address.
    pub(super) fn len(self) -> u32 {
        (1 << (32 - self.network_prefix_bits)) - 2
    }

    pub(super) fn nth_cluster_ip(self, idx: u32) -> Ipv4Addr {
        Ipv4Addr::from(self.network_address + 1 + idx % self.len())
    }

    pub(super) fn contains(self, address: Ipv4Addr) -> bool {
        let offset = u32::from(address).wrapping_sub(self.network_address);
        (1..=self.len()).contains(&offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_all_addresses_but_two() {
        let range: ServiceIpRange = "10.0.0.77/29".parse().unwrap();
        assert_eq!(range.to_string(), "10.0.0.72/29");
        assert_eq!((range.first_cluster_ip(), range.len()), (Ipv4Addr::new(10, 0, 0, 73), 6));
        assert_eq!(range.nth_cluster_ip(5), Ipv4Addr::new(10, 0, 0, 78));
        assert_eq!(range.nth_cluster_ip(6), range.first_cluster_ip());
        for (address, want) in [(72, false), (73, true), (78, true), (79, false)] {
            assert_eq!(range.contains(Ipv4Addr::new(10, 0, 0, address)), want, "{address}");
        }
        assert!(!range.contains(Ipv4Addr::new(9, 0, 0, 73)));
        for text in ["10.0.0.0", "10.0.0.0/31", "10.0.0.0/7", "::/64", "x/24"] {
            assert_eq!(text.parse::<ServiceIpRange>(), Err(ServiceIpRangeError), "{text}");
        }
    }
}
