//! Values of the Kubernetes libraries. Their types have functions, but no fields and no parameters.

mod authorization_value;
mod cidr;
mod decimal;
mod named_format;
mod quantity;
mod semver;

use std::net::IpAddr;

use go_compat::Url;

pub use authorization_value::{AuthorizationValue, Authorizer};
pub use cidr::{Cidr, CidrError, CidrFault};
pub use named_format::NamedFormat;
pub use quantity::{Quantity, QuantityError};
pub use semver::{Semver, SemverError, SemverPart};

/// A value of one of the Kubernetes libraries.
#[derive(Debug, Clone)]
pub enum OpaqueValue {
    /// An authorizer, an authorization check, or a decision.
    Authorization(AuthorizationValue),
    /// A network in CIDR notation: an address and the length of its prefix.
    Cidr(Cidr),
    /// One of the named string formats.
    Format(NamedFormat),
    /// An IP address; never an IPv4 address mapped into IPv6.
    Ip(IpAddr),
    /// An amount of a resource.
    Quantity(Quantity),
    /// A semantic version of Kubernetes' semver library.
    Semver(Semver),
    /// An absolute URL, or an absolute path.
    Url(Url),
}

impl OpaqueValue {
    /// The name of the type of [`OpaqueValue::Cidr`].
    pub const CIDR: &'static str = "net.CIDR";
    /// The name of the type of [`OpaqueValue::Format`].
    pub const FORMAT: &'static str = "kubernetes.NamedFormat";
    /// The name of the type of [`OpaqueValue::Ip`].
    pub const IP: &'static str = "net.IP";
    /// The name of the type of [`OpaqueValue::Quantity`].
    pub const QUANTITY: &'static str = "kubernetes.Quantity";
    /// The name of the type of [`OpaqueValue::Semver`].
    pub const SEMVER: &'static str = "kubernetes.Semver";
    /// The name of the type of [`OpaqueValue::Url`].
    pub const URL: &'static str = "kubernetes.URL";

    /// The name of the type.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Authorization(authorization) => authorization.type_name(),
            Self::Cidr(_) => Self::CIDR,
            Self::Format(_) => Self::FORMAT,
            Self::Ip(_) => Self::IP,
            Self::Quantity(_) => Self::QUANTITY,
            Self::Semver(_) => Self::SEMVER,
            Self::Url(_) => Self::URL,
        }
    }

    /// The size for the cost, if the type has one: the bytes of an address, or the bytes that the
    /// prefix of a network covers. The function `size()` does not accept these values.
    pub fn size(&self) -> Option<u64> {
        match self {
            Self::Cidr(cidr) => Some(u64::from(cidr.prefix_bits()).div_ceil(8)),
            Self::Ip(IpAddr::V4(_)) => Some(4),
            Self::Ip(IpAddr::V6(_)) => Some(16),
            Self::Authorization(_)
            | Self::Format(_)
            | Self::Quantity(_)
            | Self::Semver(_)
            | Self::Url(_) => None,
        }
    }

    /// The approximate number of bytes of the text that the value was parsed from, if it is
    /// unbounded.
    pub(crate) fn approx_text_len(&self) -> usize {
        match self {
            Self::Authorization(authorization) => authorization.approx_text_len(),
            Self::Semver(version) => version.approx_text_len(),
            Self::Url(url) => url.path().len() + url.raw_query().len(),
            Self::Cidr(_) | Self::Format(_) | Self::Ip(_) | Self::Quantity(_) => 0,
        }
    }

    /// The result of `self == other` in CEL; `None` stands for the error `no such overload`.
    ///
    /// As in Kubernetes, a comparison with a value of another type, of two authorization values, or
    /// with a quantity on the right that is the result of arithmetic is an error.
    pub fn equals(&self, other: &Self) -> Option<bool> {
        match (self, other) {
            (Self::Cidr(a), Self::Cidr(b)) => Some(a == b),
            (Self::Format(a), Self::Format(b)) => Some(a == b),
            (Self::Ip(a), Self::Ip(b)) => Some(a == b),
            (Self::Quantity(_), Self::Quantity(b)) if b.is_arithmetic_result() => None,
            (Self::Quantity(a), Self::Quantity(b)) => Some(a.compare(b).is_eq()),
            (Self::Semver(a), Self::Semver(b)) => Some(a == b),
            (Self::Url(a), Self::Url(b)) => Some(a == b || a.to_string() == b.to_string()),
            _ => None,
        }
    }
}

/// Compares with [`OpaqueValue::equals`]. Values that cannot be compared are unequal.
impl PartialEq for OpaqueValue {
    fn eq(&self, other: &Self) -> bool {
        self.equals(other) == Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantity(text: &str) -> Quantity {
        Quantity::parse(text).unwrap()
    }

    #[test]
    fn values_of_one_type_are_compared_by_meaning() {
        let url = |text| OpaqueValue::Url(Url::parse(text).unwrap());
        let semver = |text| OpaqueValue::Semver(Semver::parse(text).unwrap());
        let cidr = |text| OpaqueValue::Cidr(Cidr::parse(text).unwrap());
        for (a, b, want) in [
            (url("/a"), url("/a"), true),
            (url("http://h/a b"), url("http://h/a%20b"), true),
            (url("/a"), url("/b"), false),
            (semver("1.0.0+a"), semver("1.0.0+b"), true),
            (semver("1.0.0-a"), semver("1.0.0"), false),
            (cidr("10.0.0.0/8"), cidr("10.0.0.0/8"), true),
            (cidr("10.0.0.1/8"), cidr("10.0.0.0/8"), false),
            (OpaqueValue::Quantity(quantity("1Ki")), OpaqueValue::Quantity(quantity("1024")), true),
            (OpaqueValue::Quantity(quantity("1")), OpaqueValue::Quantity(quantity("1.5")), false),
            (OpaqueValue::Format(NamedFormat::Uri), OpaqueValue::Format(NamedFormat::Uri), true),
            (OpaqueValue::Format(NamedFormat::Uri), OpaqueValue::Format(NamedFormat::Uuid), false),
        ] {
            assert_eq!(a.equals(&b), Some(want), "{a:?} == {b:?}");
            assert_eq!(b.equals(&a), Some(want), "{b:?} == {a:?}");
        }
    }

    #[test]
    fn values_of_two_types_and_computed_quantities_are_an_error_to_compare() {
        let one = OpaqueValue::Quantity(quantity("1"));
        let computed = OpaqueValue::Quantity(quantity("0").add(&quantity("1")).unwrap());
        assert_eq!(one.equals(&OpaqueValue::Format(NamedFormat::Uri)), None);
        assert_eq!(one.equals(&computed), None);
        assert_eq!(computed.equals(&computed), None);
        assert_eq!(computed.equals(&one), Some(true));
        assert!(one != computed);
    }

    #[test]
    fn only_addresses_and_networks_have_a_size() {
        for (text, want) in [("0.0.0.0/0", 0), ("10.0.0.0/8", 1), ("10.0.0.0/9", 2), ("::/128", 16)]
        {
            assert_eq!(OpaqueValue::Cidr(Cidr::parse(text).unwrap()).size(), Some(want), "{text}");
        }
        assert_eq!(OpaqueValue::Ip("10.0.0.1".parse().unwrap()).size(), Some(4));
        assert_eq!(OpaqueValue::Ip("::1".parse().unwrap()).size(), Some(16));
        assert_eq!(OpaqueValue::Quantity(quantity("1")).size(), None);
    }
}
