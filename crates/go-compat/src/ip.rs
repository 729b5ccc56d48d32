//! IP addresses as Go's `net/netip` reads them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::quote::quote_bytes;

/// An address, and the zone that a scoped IPv6 address names after `%`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParsedIp<'a> {
    /// The address. An IPv4-mapped IPv6 address stays an IPv6 address.
    pub address: IpAddr,
    /// The zone; empty when none is named.
    pub ipv6_zone: &'a [u8],
}

/// The reason why a text is not an IP address. Displays as Go's message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IpError {
    input: Vec<u8>,
    fault: &'static str,
    text_from_fault: Vec<u8>,
}

impl fmt::Display for IpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ParseAddr({}): {}", quote_bytes(&self.input), self.fault)?;
        if !self.text_from_fault.is_empty() {
            write!(f, " (at {})", quote_bytes(&self.text_from_fault))?;
        }
        Ok(())
    }
}

impl std::error::Error for IpError {}

/// A fault message and the remaining text at which the fault was found.
type IpFault<'a> = (&'static str, &'a [u8]);

/// Reads a dotted IPv4 address or an IPv6 address with an optional zone.
///
/// The input is bytes because host names in URLs may decode to bytes that are not UTF-8.
///
/// # Errors
/// Anything else, including IPv4 octets with leading zeros.
///
/// ```
/// assert_eq!(go_compat::parse_ip(b"10.0.0.1").unwrap().address.to_string(), "10.0.0.1");
/// assert_eq!(go_compat::parse_ip(b"fe80::1%eth0").unwrap().ipv6_zone, b"eth0");
/// assert_eq!(
///     go_compat::parse_ip(b"10.0.0.01").unwrap_err().to_string(),
///     r#"ParseAddr("10.0.0.01"): IPv4 field has octet with leading zero"#,
/// );
/// ```
pub fn parse_ip(input: &[u8]) -> Result<ParsedIp<'_>, IpError> {
    let parsed = match input.iter().find(|byte| matches!(byte, b'.' | b':' | b'%')) {
        Some(b'.') => parse_ipv4(input)
            .map(|octets| ParsedIp { address: Ipv4Addr::from(octets).into(), ipv6_zone: b"" }),
        Some(b':') => parse_scoped_ipv6(input),
        Some(_) => Err(("missing IPv6 address", &b""[..])),
        None => Err(("unable to parse IP", &b""[..])),
    };
    parsed.map_err(|(fault, at)| IpError {
        input: input.to_owned(),
        fault,
        text_from_fault: at.to_owned(),
    })
}

fn parse_ipv4(input: &[u8]) -> Result<[u8; 4], IpFault<'_>> {
    let mut octets = [0; 4];
    let mut fields = octets.iter_mut();
    let mut value: u16 = 0;
    let mut n_digits = 0;
    let mut rest = input;
    while let [byte, after @ ..] = rest {
        match byte {
            b'0'..=b'9' => {
                if n_digits == 1 && value == 0 {
                    return Err(("IPv4 field has octet with leading zero", b""));
                }
                value = value * 10 + u16::from(byte - b'0');
                n_digits += 1;
                if value > 255 {
                    return Err(("IPv4 field has value >255", b""));
                }
            }
            b'.' => {
                if n_digits == 0 || after.is_empty() {
                    return Err(("IPv4 field must have at least one digit", rest));
                }
                // The last field has no dot after it.
                match fields.next() {
                    Some(octet) if fields.len() > 0 => *octet = value as u8,
                    _ => return Err(("IPv4 address too long", b"")),
                }
                value = 0;
                n_digits = 0;
            }
            _ => return Err(("unexpected character", rest)),
        }
        rest = after;
    }
    match (fields.next(), fields.next()) {
        (Some(octet), None) => *octet = value as u8,
        _ => return Err(("IPv4 address too short", b"")),
    }
    Ok(octets)
}

fn parse_scoped_ipv6(input: &[u8]) -> Result<ParsedIp<'_>, IpFault<'_>> {
    let at = input.iter().position(|&byte| byte == b'%').unwrap_or(input.len());
    let (text, zone) = match input.split_at(at) {
        (_, [_]) => return Err(("zone must be a non-empty string", b"")),
        (text, [_, zone @ ..]) => (text, zone),
        (text, []) => (text, &b""[..]),
    };
    Ok(ParsedIp { address: parse_ipv6(text)?.into(), ipv6_zone: zone })
}

#[expect(
    clippy::indexing_slicing,
    reason = "INVARIANT: `filled` is below 8 in the loop, at most 6 before an embedded IPv4 address, \
              and never below `ellipsis`"
)]
fn parse_ipv6(input: &[u8]) -> Result<Ipv6Addr, IpFault<'_>> {
    let mut groups = [0_u16; 8];
    let mut filled = 0;
    let mut ellipsis = None;
    let mut rest = input;
    if let Some(after) = rest.strip_prefix(b"::") {
        ellipsis = Some(0);
        rest = after;
    }
    while filled < groups.len() && !(rest.is_empty() && ellipsis == Some(filled)) {
        let (group, n_digits) = parse_ipv6_group(rest)?;
        if rest.get(n_digits) == Some(&b'.') {
            let [a, b, c, d] = parse_embedded_ipv4(rest, filled, ellipsis.is_some())?;
            groups[filled] = u16::from_be_bytes([a, b]);
            groups[filled + 1] = u16::from_be_bytes([c, d]);
            filled += 2;
            rest = b"";
            break;
        }
        groups[filled] = group;
        filled += 1;
        rest = rest.split_at_checked(n_digits).map_or(&[], |(_, rest)| rest);
        match rest {
            [] => break,
            [b':'] => return Err(("colon must be followed by more characters", rest)),
            [_, after @ ..] if rest.starts_with(b"::") && ellipsis.is_some() => {
                return Err(("multiple :: in address", after));
            }
            [b':', b':', after @ ..] => {
                ellipsis = Some(filled);
                rest = after;
            }
            [b':', after @ ..] => rest = after,
            _ => return Err(("unexpected character, want colon", rest)),
        }
    }
    if !rest.is_empty() {
        return Err(("trailing garbage after address", rest));
    }
    match ellipsis {
        None if filled < groups.len() => Err(("address string too short", b"")),
        Some(_) if filled == groups.len() => {
            Err(("the :: must expand to at least one field of zeros", b""))
        }
        // The groups after the ellipsis move to the end; zeros take their place.
        Some(ellipsis) => {
            let n_missing = groups.len() - filled;
            groups[ellipsis..].rotate_right(n_missing);
            Ok(groups.into())
        }
        None => Ok(groups.into()),
    }
}

/// Parses up to four hexadecimal digits. Returns their value and their number.
fn parse_ipv6_group(input: &[u8]) -> Result<(u16, usize), IpFault<'_>> {
    let n_digits = input.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    match n_digits {
        0 => Err(("each colon-separated field must have at least one digit", input)),
        1..=4 => {
            let digits =
                input.iter().take(n_digits).filter_map(|&byte| (byte as char).to_digit(16));
            Ok((digits.fold(0, |value, digit| value << 4 | digit as u16), n_digits))
        }
        _ => Err(("each group must have 4 or less digits", input)),
    }
}

/// Parses the dotted IPv4 address that may replace the last two groups.
fn parse_embedded_ipv4(
    input: &[u8],
    filled: usize,
    has_ellipsis: bool,
) -> Result<[u8; 4], IpFault<'_>> {
    if !has_ellipsis && filled != 6 {
        let fault = "embedded IPv4 address must replace the final 2 fields of the address";
        return Err((fault, input));
    }
    if filled > 6 {
        let fault = "too many hex fields to fit an embedded IPv4 at the end of the address";
        return Err((fault, input));
    }
    parse_ipv4(input)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_like_go() {
        for (text, address, zone) in [
            ("0.0.0.0", "0.0.0.0", ""),
            ("192.0.2.1", "192.0.2.1", ""),
            ("::", "::", ""),
            ("::1", "::1", ""),
            ("1::", "1::", ""),
            ("fe80::1cc0:3e8c:119f:c2e1%ens18", "fe80::1cc0:3e8c:119f:c2e1", "ens18"),
            ("::%a%b", "::", "a%b"),
            ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8", ""),
            ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0", ""),
            ("::ffff:192.0.2.1", "::ffff:192.0.2.1", ""),
            ("1:2:3:4:5:6:192.0.2.1", "1:2:3:4:5:6:c000:201", ""),
            ("FD9E:1A04:F01D::1", "fd9e:1a04:f01d::1", ""),
        ] {
            let ip = parse_ip(text.as_bytes()).unwrap();
            assert_eq!(ip.address, address.parse::<IpAddr>().unwrap(), "{text}");
            assert_eq!(ip.ipv6_zone, zone.as_bytes(), "{text}");
        }
    }

    #[test]
    fn parse_errors_match_go() {
        for (text, want) in [
            ("", r#"ParseAddr(""): unable to parse IP"#),
            ("bad", r#"ParseAddr("bad"): unable to parse IP"#),
            ("%eth0", r#"ParseAddr("%eth0"): missing IPv6 address"#),
            ("1.2.3", r#"ParseAddr("1.2.3"): IPv4 address too short"#),
            ("1.2.3.4.5", r#"ParseAddr("1.2.3.4.5"): IPv4 address too long"#),
            ("1.2.3.256", r#"ParseAddr("1.2.3.256"): IPv4 field has value >255"#),
            (".1", r#"ParseAddr(".1"): IPv4 field must have at least one digit (at ".1")"#),
            ("1..2", r#"ParseAddr("1..2"): IPv4 field must have at least one digit (at ".2")"#),
            ("1.2.3.", r#"ParseAddr("1.2.3."): IPv4 field must have at least one digit (at ".")"#),
            ("1.2.3.4%e", r#"ParseAddr("1.2.3.4%e"): unexpected character (at "%e")"#),
            ("::1%", r#"ParseAddr("::1%"): zone must be a non-empty string"#),
            ("1:2:3:4:5:6:7", r#"ParseAddr("1:2:3:4:5:6:7"): address string too short"#),
            (
                "1:2:3:4:5:6:7:8:9",
                r#"ParseAddr("1:2:3:4:5:6:7:8:9"): trailing garbage after address (at "9")"#,
            ),
            (
                "1:2:3:4::5:6:7:8",
                r#"ParseAddr("1:2:3:4::5:6:7:8"): the :: must expand to at least one field of zeros"#,
            ),
            ("1::2::3", r#"ParseAddr("1::2::3"): multiple :: in address (at ":3")"#),
            (
                "12345::",
                r#"ParseAddr("12345::"): each group must have 4 or less digits (at "12345::")"#,
            ),
            (
                ":1",
                r#"ParseAddr(":1"): each colon-separated field must have at least one digit (at ":1")"#,
            ),
            ("1:", r#"ParseAddr("1:"): colon must be followed by more characters (at ":")"#),
            (
                "1:g",
                r#"ParseAddr("1:g"): each colon-separated field must have at least one digit (at "g")"#,
            ),
            ("1:2g", r#"ParseAddr("1:2g"): unexpected character, want colon (at "g")"#),
            (
                "1:1.2.3.4",
                r#"ParseAddr("1:1.2.3.4"): embedded IPv4 address must replace the final 2 fields of the address (at "1.2.3.4")"#,
            ),
            (
                "::1:2:3:4:5:6:7:1.2.3.4",
                r#"ParseAddr("::1:2:3:4:5:6:7:1.2.3.4"): too many hex fields to fit an embedded IPv4 at the end of the address (at "1.2.3.4")"#,
            ),
            ("::1.2.3.04", r#"ParseAddr("::1.2.3.04"): IPv4 field has octet with leading zero"#),
        ] {
            assert_eq!(parse_ip(text.as_bytes()).unwrap_err().to_string(), want);
        }
        assert_eq!(
            parse_ip(b"::\xff").unwrap_err().to_string(),
            r#"ParseAddr("::\xff"): each colon-separated field must have at least one digit (at "\xff")"#,
        );
    }
}
