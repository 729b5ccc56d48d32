//! Which addresses there are.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// The addresses that services get: a network of version 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceRange {
    network: u32,
    bits: u32,
}

/// Why a text is no range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("want a network of IPv4 with 8 to 30 bits, such as 10.96.0.0/16")]
pub struct ServiceRangeError;

impl FromStr for ServiceRange {
    type Err = ServiceRangeError;

    fn from_str(text: &str) -> Result<Self, ServiceRangeError> {
        let (address, bits) = text.split_once('/').ok_or(ServiceRangeError)?;
        let address: Ipv4Addr = address.parse().map_err(|_| ServiceRangeError)?;
        let bits: u32 = bits.parse().map_err(|_| ServiceRangeError)?;
        if !(8..=30).contains(&bits) {
            return Err(ServiceRangeError);
        }
        let mask = u32::MAX << (32 - bits);
        Ok(Self { network: u32::from(address) & mask, bits })
    }
}

impl fmt::Display for ServiceRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from(self.network), self.bits)
    }
}

impl ServiceRange {
    /// The first address, which the service of the server itself has.
    #[must_use]
    pub fn first(self) -> Ipv4Addr {
        Ipv4Addr::from(self.network + 1)
    }

    /// How many addresses there are: all but that of the network and that for everybody.
    pub(super) fn len(self) -> u32 {
        (1 << (32 - self.bits)) - 2
    }

    pub(super) fn get(self, idx: u32) -> Ipv4Addr {
        Ipv4Addr::from(self.network + 1 + idx % self.len())
    }

    pub(super) fn contains(self, address: Ipv4Addr) -> bool {
        let offset = u32::from(address).wrapping_sub(self.network);
        (1..=self.len()).contains(&offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_all_addresses_but_two() {
        let range: ServiceRange = "10.0.0.77/29".parse().unwrap();
        assert_eq!(range.to_string(), "10.0.0.72/29");
        assert_eq!((range.first(), range.len()), (Ipv4Addr::new(10, 0, 0, 73), 6));
        assert_eq!(range.get(5), Ipv4Addr::new(10, 0, 0, 78));
        assert_eq!(range.get(6), range.first());
        for (address, want) in [(72, false), (73, true), (78, true), (79, false)] {
            assert_eq!(range.contains(Ipv4Addr::new(10, 0, 0, address)), want, "{address}");
        }
        assert!(!range.contains(Ipv4Addr::new(9, 0, 0, 73)));
        for text in ["10.0.0.0", "10.0.0.0/31", "10.0.0.0/7", "::/64", "x/24"] {
            assert_eq!(text.parse::<ServiceRange>(), Err(ServiceRangeError), "{text}");
        }
    }
}
