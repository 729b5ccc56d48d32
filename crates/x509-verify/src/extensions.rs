//! Extensions of certificates.

use crate::certificate::Extensions;
use crate::constraints::NameConstraints;
use crate::der::{self, OCTET_STRING, OID, Reader, SEQUENCE};
use crate::names::Names;

/// The first two bytes of the extensions that RFC 5280 defines: 2.5.29.
const CERTIFICATE_EXTENSION: [u8; 2] = [0x55, 0x1d];
/// 1.3.6.1.5.5.7.1.1
const AUTHORITY_INFORMATION_ACCESS: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 1, 1];
/// 1.3.6.1.5.5.7.3.1
const SERVER_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 1];
/// 1.3.6.1.5.5.7.3.2
const CLIENT_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 2];
/// 2.5.29.37.0
const ANY_USAGE: &[u8] = &[0x55, 0x1d, 37, 0];
/// 2.5.29.32.0
const ANY_POLICY: &[u8] = &[0x55, 0x1d, 32, 0];

/// Whether a certificate is that of an authority, and how many may follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BasicConstraints {
    pub(crate) is_ca: bool,
    /// The most certificates between this one and the leaf.
    pub(crate) path_len_max: Option<u64>,
}

/// What a certificate may be used for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ExtendedKeyUsage {
    /// It names at least one usage; without, it may be used for all.
    pub(crate) is_limited: bool,
    pub(crate) any: bool,
    pub(crate) client_auth: bool,
    pub(crate) server_auth: bool,
}

/// Reads the contents of the field `extensions`.
pub(crate) fn read(bytes: &[u8]) -> Option<Extensions> {
    let mut list = der::only(bytes, SEQUENCE)?;
    let mut found = Extensions::default();
    let mut seen: Vec<&[u8]> = Vec::new();
    while !list.is_empty() {
        let mut extension = list.nested(SEQUENCE)?;
        let oid = extension.value(OID)?.contents;
        let is_critical = extension.flag()?;
        let value = extension.value(OCTET_STRING)?.contents;
        extension.end()?;
        if seen.contains(&oid) {
            return None;
        }
        seen.push(oid);
        let is_handled = read_one(&mut found, oid, is_critical, value)?;
        found.has_unhandled_critical |= is_critical && !is_handled;
    }
    Some(found)
}

/// Reports whether the extension was understood; `None` if it is malformed.
fn read_one(found: &mut Extensions, oid: &[u8], is_critical: bool, value: &[u8]) -> Option<bool> {
    let number = match *oid {
        [first, second, number] if [first, second] == CERTIFICATE_EXTENSION => number,
        // RFC 5280 forbids that it is critical.
        _ if oid == AUTHORITY_INFORMATION_ACCESS => return (!is_critical).then_some(true),
        _ => return Some(false),
    };
    match number {
        14 => {
            let mut reader = Reader::new(value);
            found.subject_key_id = reader.value(OCTET_STRING)?.contents.to_vec();
            reader.end()?;
            if is_critical {
                return None;
            }
        }
        15 => found.key_usage = key_usage(value)?,
        17 => {
            found.names = Names::read(value)?;
            found.alternative_names = Some(value.to_vec());
            return Some(!found.names.is_empty());
        }
        19 => found.basic_constraints = Some(basic_constraints(value)?),
        30 => {
            let (constraints, is_handled) = NameConstraints::read(value)?;
            found.name_constraints = Some(constraints);
            return Some(is_handled);
        }
        // Where revocations are published: nobody looks there, and Go neither.
        31 => {}
        // Policies matter only where one is demanded.
        32 | 54 => {}
        33 => found.has_policy_demands |= maps_any_policy(value)?,
        35 => {
            let mut reader = der::only(value, SEQUENCE)?;
            let id = reader.optional(der::context(0))?;
            found.authority_key_id = id.map(|id| id.contents.to_vec()).unwrap_or_default();
            if is_critical {
                return None;
            }
        }
        36 => {
            let demand = der::only(value, SEQUENCE)?.optional(der::context(0))?;
            found.has_policy_demands |= demand.is_some();
        }
        37 => found.extended_key_usage = extended_key_usage(value)?,
        _ => return Some(false),
    }
    Some(true)
}

fn key_usage(value: &[u8]) -> Option<u16> {
    let mut reader = Reader::new(value);
    let (bytes, _) = reader.bits()?;
    reader.end()?;
    let is_set = |bit: usize| bytes.get(bit / 8).is_some_and(|byte| byte >> (7 - bit % 8) & 1 == 1);
    Some((0..9).filter(|bit| is_set(*bit)).fold(0, |usage, bit| usage | 1 << bit))
}

fn basic_constraints(value: &[u8]) -> Option<BasicConstraints> {
    let mut reader = der::only(value, SEQUENCE)?;
    let is_ca = reader.flag()?;
    let path_len_max = if reader.is_empty() {
        None
    } else {
        let digits = reader.unsigned()?;
        // A sign and eight bytes at most.
        if digits.len() > 8 {
            return None;
        }
        Some(digits.iter().fold(0, |number, digit| number << 8 | u64::from(*digit)))
    };
    reader.end()?;
    Some(BasicConstraints { is_ca, path_len_max })
}

fn extended_key_usage(value: &[u8]) -> Option<ExtendedKeyUsage> {
    let mut list = der::only(value, SEQUENCE)?;
    let mut usage = ExtendedKeyUsage::default();
    while !list.is_empty() {
        let oid = list.value(OID)?.contents;
        usage.is_limited = true;
        usage.any |= oid == ANY_USAGE;
        usage.client_auth |= oid == CLIENT_AUTH;
        usage.server_auth |= oid == SERVER_AUTH;
    }
    Some(usage)
}

fn maps_any_policy(value: &[u8]) -> Option<bool> {
    let mut list = der::only(value, SEQUENCE)?;
    let mut maps_any = false;
    while !list.is_empty() {
        let mut pair = list.nested(SEQUENCE)?;
        let policies = [pair.value(OID)?.contents, pair.value(OID)?.contents];
        pair.end()?;
        maps_any |= policies.contains(&ANY_POLICY);
    }
    Some(maps_any)
}
