//! Parsing of certificate extensions.

use std::collections::BTreeSet;

use crate::alternative_names::AlternativeNames;
use crate::certificate::Extensions;
use crate::der::{self, DerReader, DerTag};
use crate::name_constraints::NameConstraints;

/// The first two bytes of the extensions that RFC 5280 defines: 2.5.29.
const CERTIFICATE_EXTENSION: [u8; 2] = [0x55, 0x1d];
/// The object identifier 1.3.6.1.5.5.7.1.1 of the extension `authorityInfoAccess`, in DER.
const AUTHORITY_INFORMATION_ACCESS: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 1, 1];
/// The object identifier 1.3.6.1.5.5.7.3.1 of the usage `serverAuth`, in DER.
const SERVER_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 1];
/// The object identifier 1.3.6.1.5.5.7.3.2 of the usage `clientAuth`, in DER.
const CLIENT_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 2];
/// The object identifier 2.5.29.37.0 of the usage `anyExtendedKeyUsage`, in DER.
const ANY_USAGE: &[u8] = &[0x55, 0x1d, 37, 0];
/// The object identifier 2.5.29.32.0 of the policy `anyPolicy`, in DER.
const ANY_POLICY: &[u8] = &[0x55, 0x1d, 32, 0];

/// The basic constraints extension: whether the certificate is an authority, and how long its
/// chains may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BasicConstraints {
    pub(crate) is_ca: bool,
    /// Upper bound on the intermediates between this certificate and the leaf.
    pub(crate) path_len_max: Option<u64>,
}

/// The extended key usage extension.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExtendedKeyUsage {
    /// Whether the extension names at least one usage. If it names none, every usage is permitted.
    pub has_listed_usages: bool,
    /// Whether it names `anyExtendedKeyUsage`.
    pub allows_any_usage: bool,
    /// Whether it names `clientAuth`.
    pub allows_client_auth: bool,
    /// Whether it names `serverAuth`.
    pub allows_server_auth: bool,
}

/// Parses the contents of the field `extensions`.
pub(crate) fn parse_extensions(bytes: &[u8]) -> Option<Extensions> {
    let mut list = der::parse_single_value(bytes, DerTag::SEQUENCE)?;
    let mut found = Extensions::default();
    // A client that is not authenticated chooses how many there are.
    let mut seen = BTreeSet::new();
    while !list.is_empty() {
        let mut extension = list.read_nested(DerTag::SEQUENCE)?;
        let oid = extension.read_value(DerTag::OID)?.contents;
        let is_critical = extension.read_optional_bool()?;
        let value = extension.read_value(DerTag::OCTET_STRING)?.contents;
        extension.expect_end()?;
        if !seen.insert(oid) {
            return None;
        }
        let is_handled = read_extension(&mut found, oid, is_critical, value)?;
        found.has_unhandled_critical_extension |= is_critical && !is_handled;
    }
    Some(found)
}

/// Reads one extension. Returns whether it is known; `None` if it is malformed.
fn read_extension(
    found: &mut Extensions,
    oid: &[u8],
    is_critical: bool,
    value: &[u8],
) -> Option<bool> {
    let number = match *oid {
        [first, second, number] if [first, second] == CERTIFICATE_EXTENSION => number,
        // RFC 5280 forbids that this extension is critical.
        _ if oid == AUTHORITY_INFORMATION_ACCESS => return (!is_critical).then_some(true),
        _ => return Some(false),
    };
    match number {
        14 => {
            let mut reader = DerReader::new(value);
            found.subject_key_id = reader.read_value(DerTag::OCTET_STRING)?.contents.to_vec();
            reader.expect_end()?;
            if is_critical {
                return None;
            }
        }
        15 => found.key_usage_bits = parse_key_usage(value)?,
        17 => {
            found.alternative_names = AlternativeNames::read(value)?;
            found.alternative_names_der = Some(value.to_vec());
            return Some(!found.alternative_names.is_empty());
        }
        19 => found.basic_constraints = Some(parse_basic_constraints(value)?),
        30 => {
            let (constraints, is_handled) = NameConstraints::read(value)?;
            found.name_constraints = Some(constraints);
            return Some(is_handled);
        }
        // As in Go, revocation lists are not read.
        31 => {}
        // A policy matters only if a certificate of the chain requires one.
        32 | 54 => {}
        33 => found.requires_policy_evaluation |= maps_any_policy(value)?,
        35 => {
            let mut reader = der::parse_single_value(value, DerTag::SEQUENCE)?;
            let id = reader.read_optional_value(DerTag::primitive_context_tag(0))?;
            found.authority_key_id = id.map(|id| id.contents.to_vec()).unwrap_or_default();
            if is_critical {
                return None;
            }
        }
        36 => {
            let demand = der::parse_single_value(value, DerTag::SEQUENCE)?
                .read_optional_value(DerTag::primitive_context_tag(0))?;
            found.requires_policy_evaluation |= demand.is_some();
        }
        37 => found.extended_key_usage = parse_extended_key_usage(value)?,
        _ => return Some(false),
    }
    Some(true)
}

fn parse_key_usage(value: &[u8]) -> Option<u16> {
    let mut reader = DerReader::new(value);
    let (bytes, _) = reader.read_bit_string()?;
    reader.expect_end()?;
    let is_set = |bit: usize| bytes.get(bit / 8).is_some_and(|byte| byte >> (7 - bit % 8) & 1 == 1);
    Some((0..9).filter(|bit| is_set(*bit)).fold(0, |usage, bit| usage | 1 << bit))
}

fn parse_basic_constraints(value: &[u8]) -> Option<BasicConstraints> {
    let mut reader = der::parse_single_value(value, DerTag::SEQUENCE)?;
    let is_ca = reader.read_optional_bool()?;
    let path_len_max = if reader.is_empty() {
        None
    } else {
        let digits = reader.read_unsigned_integer()?;
        // The integer has at most a sign byte and eight further bytes.
        if digits.len() > 8 {
            return None;
        }
        Some(digits.iter().fold(0, |number, digit| number << 8 | u64::from(*digit)))
    };
    reader.expect_end()?;
    Some(BasicConstraints { is_ca, path_len_max })
}

fn parse_extended_key_usage(value: &[u8]) -> Option<ExtendedKeyUsage> {
    let mut list = der::parse_single_value(value, DerTag::SEQUENCE)?;
    let mut usage = ExtendedKeyUsage::default();
    while !list.is_empty() {
        let oid = list.read_value(DerTag::OID)?.contents;
        usage.has_listed_usages = true;
        usage.allows_any_usage |= oid == ANY_USAGE;
        usage.allows_client_auth |= oid == CLIENT_AUTH;
        usage.allows_server_auth |= oid == SERVER_AUTH;
    }
    Some(usage)
}

fn maps_any_policy(value: &[u8]) -> Option<bool> {
    let mut list = der::parse_single_value(value, DerTag::SEQUENCE)?;
    let mut maps_any = false;
    while !list.is_empty() {
        let mut pair = list.read_nested(DerTag::SEQUENCE)?;
        let policies =
            [pair.read_value(DerTag::OID)?.contents, pair.read_value(DerTag::OID)?.contents];
        pair.expect_end()?;
        maps_any |= policies.contains(&ANY_POLICY);
    }
    Some(maps_any)
}
