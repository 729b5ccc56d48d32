//! Kubernetes' IP library: `ip`, `isIP`, `ip.isCanonical`, and predicates on addresses.

use std::net::IpAddr;

use go_compat::quote;

use crate::function::{
    CostFormula, EvalError, EvalResult, FunctionImpl, FunctionRegistry, Overload,
};
use crate::static_type::Type;
use crate::value::{OpaqueValue, Value};

/// Declares the functions of Kubernetes' IP library.
pub(crate) fn declare_functions(functions: &mut FunctionRegistry) {
    let ip = || Type::Opaque(OpaqueValue::IP);
    let text = || vec![Type::String];
    let read = Overload::new_global_overload("string_to_ip", text(), ip(), string_to_ip);
    functions.add_overloads("ip", vec![read.with_cost_formula(CostFormula::Scan(0))]);
    let test = Overload::new_global_overload("is_ip", text(), Type::Bool, is_ip);
    functions.add_overloads("isIP", vec![test.with_cost_formula(CostFormula::Scan(0))]);
    let compare =
        Overload::new_global_overload("ip_is_canonical", text(), Type::Bool, ip_is_canonical);
    functions.add_overloads(
        "ip.isCanonical",
        vec![compare.with_cost_formula(CostFormula::ScanTwice(0))],
    );
    let write =
        Overload::new_global_overload("ip_to_string", vec![ip()], Type::String, ip_to_string);
    functions.add_overloads("string", vec![write]);
    let family = Overload::new_member_overload("ip_family", vec![ip()], Type::Int, ip_family);
    functions.add_overloads("family", vec![family]);
    let predicates: [(_, _, FunctionImpl); 5] = [
        ("isUnspecified", "ip_is_unspecified", ip_is_unspecified),
        ("isLoopback", "ip_is_loopback", ip_is_loopback),
        ("isLinkLocalMulticast", "ip_is_link_local_multicast", ip_is_link_local_multicast),
        ("isLinkLocalUnicast", "ip_is_link_local_unicast", ip_is_link_local_unicast),
        ("isGlobalUnicast", "ip_is_global_unicast", ip_is_global_unicast),
    ];
    for (name, id, implementation) in predicates {
        let overload = Overload::new_member_overload(id, vec![ip()], Type::Bool, implementation);
        functions.add_overloads(name, vec![overload]);
    }
}

/// Parses an address. Zones and IPv4 addresses inside IPv6 addresses are not allowed.
pub(super) fn parse_ip(text: &str) -> Result<IpAddr, EvalError> {
    let ip = go_compat::parse_ip(text.as_bytes()).map_err(|error| {
        let text = quote(text);
        EvalError::new(format!(
            "IP Address {text} parse error during conversion from string: {error}"
        ))
    })?;
    if !ip.ipv6_zone.is_empty() {
        let text = quote(text);
        return Err(EvalError::new(format!("IP address {text} with zone value is not allowed")));
    }
    match ip.address {
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => {
            let text = quote(text);
            Err(EvalError::new(format!("IPv4-mapped IPv6 address {text} is not allowed")))
        }
        address => Ok(address),
    }
}

fn string_to_ip<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    apply_to_string_argument(arguments, |text| {
        Ok(Value::opaque_value(OpaqueValue::Ip(parse_ip(text)?)))
    })
}

fn is_ip<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    apply_to_string_argument(arguments, |text| Ok(Value::Bool(parse_ip(text).is_ok())))
}

/// Reports whether the text is the canonical form of the address.
fn ip_is_canonical<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    apply_to_string_argument(arguments, |text| Ok(Value::Bool(parse_ip(text)?.to_string() == text)))
}

fn apply_to_string_argument<'a>(
    arguments: &[Value<'a>],
    answer: fn(&str) -> EvalResult<'a>,
) -> EvalResult<'a> {
    match arguments {
        [Value::String(text)] => answer(text.as_str()),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn ip_to_string<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    Ok(Value::owned_string(ip_argument(arguments)?.to_string()))
}

fn ip_family<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match ip_argument(arguments)? {
        IpAddr::V4(_) => Ok(Value::Int(4)),
        IpAddr::V6(_) => Ok(Value::Int(6)),
    }
}

fn ip_is_unspecified<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    Ok(Value::Bool(ip_argument(arguments)?.is_unspecified()))
}

fn ip_is_loopback<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    Ok(Value::Bool(ip_argument(arguments)?.is_loopback()))
}

fn ip_is_link_local_multicast<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    Ok(Value::Bool(match ip_argument(arguments)? {
        IpAddr::V4(v4) => v4.octets().starts_with(&[224, 0, 0]),
        IpAddr::V6(v6) => v6.segments()[0] & 0xff0f == 0xff02,
    }))
}

fn ip_is_link_local_unicast<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    Ok(Value::Bool(is_link_local(ip_argument(arguments)?)))
}

/// Reports whether an address is global unicast. As in Go, private addresses are global.
fn ip_is_global_unicast<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    let ip = ip_argument(arguments)?;
    let is_broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
    Ok(Value::Bool(
        !is_broadcast
            && !ip.is_unspecified()
            && !ip.is_loopback()
            && !ip.is_multicast()
            && !is_link_local(ip),
    ))
}

fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

fn ip_argument(arguments: &[Value<'_>]) -> Result<IpAddr, EvalError> {
    if let [Value::Opaque(value)] = arguments
        && let OpaqueValue::Ip(ip) = **value
    {
        return Ok(ip);
    }
    Err(EvalError::no_such_overload())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::operators::tests::{assert_outcome, implementation};

    #[test]
    fn address_classes_match_go() {
        let predicates = [
            "isUnspecified",
            "isLoopback",
            "isLinkLocalMulticast",
            "isLinkLocalUnicast",
            "isGlobalUnicast",
        ];
        for (text, wanted) in [
            ("0.0.0.0", &["isUnspecified"][..]),
            ("::", &["isUnspecified"]),
            ("127.9.9.9", &["isLoopback"]),
            ("::1", &["isLoopback"]),
            ("224.0.0.1", &["isLinkLocalMulticast"]),
            ("224.0.1.1", &[]),
            ("ff02::1", &["isLinkLocalMulticast"]),
            ("ff12::1", &["isLinkLocalMulticast"]),
            ("ff05::1", &[]),
            ("169.254.1.1", &["isLinkLocalUnicast"]),
            ("fe80::1", &["isLinkLocalUnicast"]),
            ("febf::1", &["isLinkLocalUnicast"]),
            ("fec0::1", &["isGlobalUnicast"]),
            ("255.255.255.255", &[]),
            ("10.0.0.1", &["isGlobalUnicast"]),
            ("fd00::1", &["isGlobalUnicast"]),
        ] {
            let arguments = [Value::opaque_value(OpaqueValue::Ip(parse_ip(text).unwrap()))];
            for name in predicates {
                let got = implementation(name, "ip_is_")(&arguments);
                assert_outcome(&arguments, &got, &Ok(Value::Bool(wanted.contains(&name))));
            }
        }
    }

    #[test]
    fn addresses_are_printed_like_go() {
        for (text, written, family) in [
            ("10.0.0.1", "10.0.0.1", 4),
            ("2001:DB8:0:0::ABCD", "2001:db8::abcd", 6),
            ("1:0:0:2:0:0:0:3", "1:0:0:2::3", 6),
            ("1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7", 6),
            ("::1.2.3.4", "::102:304", 6),
        ] {
            let arguments = [Value::opaque_value(OpaqueValue::Ip(parse_ip(text).unwrap()))];
            let got = implementation("string", "ip_to_string")(&arguments);
            assert_outcome(&arguments, &got, &Ok(Value::borrowed_string(written)));
            let got = implementation("family", "ip_family")(&arguments);
            assert_outcome(&arguments, &got, &Ok(Value::Int(family)));
            let arguments = [Value::borrowed_string(text)];
            let got = implementation("ip.isCanonical", "ip_is_canonical")(&arguments);
            assert_outcome(&arguments, &got, &Ok(Value::Bool(text == written)));
        }
    }

    #[test]
    fn malformed_addresses_have_kubernetes_messages() {
        for (text, want) in [
            (
                "10.0.0.01",
                "IP Address \"10.0.0.01\" parse error during conversion from string: \
                 ParseAddr(\"10.0.0.01\"): IPv4 field has octet with leading zero",
            ),
            ("fe80::1%eth0", "IP address \"fe80::1%eth0\" with zone value is not allowed"),
            ("::ffff:1.2.3.4", "IPv4-mapped IPv6 address \"::ffff:1.2.3.4\" is not allowed"),
        ] {
            let arguments = [Value::borrowed_string(text)];
            for (name, id) in [("ip", "string_to_ip"), ("ip.isCanonical", "ip_is_canonical")] {
                assert_outcome(&arguments, &implementation(name, id)(&arguments), &Err(want));
            }
            let got = implementation("isIP", "is_ip")(&arguments);
            assert_outcome(&arguments, &got, &Ok(Value::Bool(false)));
        }
    }
}
