//! The addresses that traffic of services may be sent to. Special addresses are those of the node itself, or of services of
//! its network such as the metadata service of a cloud.

use std::net::IpAddr;

use field_errors::{FieldErrors, FieldPath};

/// Reports an address that is no IP address or a special one.
pub(super) fn validate(path: &FieldPath<'_>, address: &str, errors: &mut FieldErrors) {
    let Ok(ip) = address.parse::<IpAddr>() else {
        return errors.push(path.invalid(address, "must be a valid IP address"));
    };
    // An IPv4-mapped IPv6 address counts as IPv4.
    let ip = ip.to_canonical();
    let (is_link_local, is_link_local_multicast) = match ip {
        IpAddr::V4(ip) => (ip.is_link_local(), matches!(ip.octets(), [224, 0, 0, _])),
        IpAddr::V6(ip) => {
            (ip.is_unicast_link_local(), ip.octets()[0] == 0xff && ip.octets()[1] & 0x0f == 0x02)
        }
    };
    if ip.is_unspecified() {
        errors.push(path.invalid(address, &format!("may not be unspecified ({address})")));
    }
    if ip.is_loopback() {
        let detail = "may not be in the loopback range (127.0.0.0/8, ::1/128)";
        errors.push(path.invalid(address, detail));
    }
    if is_link_local {
        let detail = "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
        errors.push(path.invalid(address, detail));
    }
    if is_link_local_multicast {
        let detail = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
        errors.push(path.invalid(address, detail));
    }
}

/// The same, except that the loopback range is allowed. Webhooks beside a server on loopback are found through Services
/// and their Endpoints or EndpointSlices.
pub(super) fn validate_unless_loopback(
    path: &FieldPath<'_>,
    address: &str,
    errors: &mut FieldErrors,
) {
    let is_loopback = |ip: IpAddr| ip.to_canonical().is_loopback();
    if !address.parse::<IpAddr>().is_ok_and(is_loopback) {
        validate(path, address, errors);
    }
}
