//! Services. Addresses are not handed out here.

use std::collections::HashSet;
use std::net::IpAddr;

use api_object::{Tree, object_mut};
use field_errors::{BadValue, FieldErrors, FieldPath};
use serde_json::{Value, json};

use crate::tree::{Members, at, default, items, number, objects_mut, text};

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const AFFINITIES: [&str; 2] = ["ClientIP", "None"];
const NO_ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
/// How long a client stays with one pod if nothing else is said.
const AFFINITY_SECONDS: i64 = 10_800;

fn prepare(tree: &mut Tree) {
    let spec = object_mut(tree, "spec");
    default(spec, "type", "ClusterIP");
    default(spec, "sessionAffinity", "None");
    if text(spec, "sessionAffinity") == "ClientIP" {
        let client_ip = object_mut(object_mut(spec, "sessionAffinityConfig"), "clientIP");
        default(client_ip, "timeoutSeconds", AFFINITY_SECONDS);
    }
    if text(spec, "type") != "ExternalName" {
        default(spec, "internalTrafficPolicy", "Cluster");
    }
    if matches!(text(spec, "type"), "NodePort" | "LoadBalancer") {
        default(spec, "externalTrafficPolicy", "Cluster");
    }
    for port in objects_mut(spec, "ports") {
        default(port, "protocol", "TCP");
        let is_unset = match port.get("targetPort") {
            Some(Value::Number(number)) => number.as_i64() == Some(0),
            Some(Value::String(text)) => text.is_empty(),
            _ => true,
        };
        if let (true, Some(number)) = (is_unset, port.get("port").cloned()) {
            port.insert("targetPort".to_owned(), number);
        }
    }
}

/// Names the address in the list, too, for clients that know only the one member.
pub(super) fn prepare_create(tree: &mut Tree) {
    prepare(tree);
    let spec = object_mut(tree, "spec");
    if !text(spec, "clusterIP").is_empty() && items(spec, "clusterIPs").is_empty() {
        spec.insert("clusterIPs".to_owned(), json!([text(spec, "clusterIP")]));
    }
}

/// A service keeps the address that it has, unless it gets a type that has none. Kubernetes does this
/// in three steps: both members of the address are brought together, what a client left out is filled
/// in, and what the new type can not have is taken away unless the client changed it as well.
pub(super) fn prepare_update(new: &mut Tree, old: &Tree) {
    prepare(new);
    let old = at(old, &["spec"]);
    let spec = object_mut(new, "spec");
    let is_same_list = |spec: &Tree| items(spec, "clusterIPs") == items(old, "clusterIPs");
    let (address, before) = (text(spec, "clusterIP").to_owned(), text(old, "clusterIP"));
    if address == before {
        fill_in(spec, "clusterIPs", old);
        // Earlier versions stored only the one member, of names elsewhere, too.
        if !address.is_empty() {
            fill_in(spec, "clusterIPs", &json!({ "clusterIPs": [address] }));
        }
    } else if is_same_list(spec) {
        match address.is_empty() {
            true => drop(spec.shift_remove("clusterIPs")),
            false => drop(spec.insert("clusterIPs".to_owned(), json!([address]))),
        }
    }
    match (has_address(spec), has_address(old)) {
        (true, true) => {
            fill_in(spec, "clusterIP", old);
            fill_in(spec, "clusterIPs", old);
        }
        (false, _) => {
            let is_same = match has_address(old) {
                true => is_same_list(spec),
                false => address == before,
            };
            if is_same {
                spec.shift_remove("clusterIP");
                spec.shift_remove("clusterIPs");
            }
            for key in ["ipFamilies", "ipFamilyPolicy"] {
                if spec.get(key) == old.get(key) {
                    spec.shift_remove(key);
                }
            }
        }
        (true, false) => {}
    }
}

/// Whether a service of this type has an address in the cluster, be it `None`.
fn has_address(spec: &impl Members) -> bool {
    text(spec, "type") != "ExternalName"
}

/// Takes over what a client left out.
fn fill_in(spec: &mut Tree, key: &str, old: &Value) {
    let is_unset = match spec.get(key) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    };
    if let (true, Some(value)) = (is_unset, old.get(key)) {
        spec.insert(key.to_owned(), value.clone());
    }
}

pub(super) fn validate(new: &Tree, old: Option<&Tree>, errors: &mut FieldErrors) {
    let (spec, path) = (at(new, &["spec"]), FieldPath::root("spec"));
    let (kind, affinity) = (text(spec, "type"), text(spec, "sessionAffinity"));
    if let Some(old) = old {
        validate_unchanged(spec, at(old, &["spec"]), errors);
    }
    if !TYPES.contains(&kind) {
        errors.push(path.child("type").not_supported(kind, &TYPES));
    }
    if !AFFINITIES.contains(&affinity) {
        errors.push(path.child("sessionAffinity").not_supported(affinity, &AFFINITIES));
    }
    if items(spec, "ports").is_empty() && !is_headless(spec) && has_address(spec) {
        errors.push(path.child("ports").required(""));
    }
    match kind {
        "ExternalName" => validate_external_name_service(spec, errors),
        _ => validate_addresses(spec, errors),
    }
    validate_ports(items(spec, "ports"), errors);
}

fn is_headless(spec: &Value) -> bool {
    text(spec, "clusterIP") == "None"
}

/// A name elsewhere has no address here.
fn validate_external_name_service(spec: &Value, errors: &mut FieldErrors) {
    let path = FieldPath::root("spec");
    let is_said = |key| match spec.get(key) {
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(value) => !value.is_null(),
        None => false,
    };
    let addresses = is_said("clusterIPs") || is_said("clusterIP");
    for (key, is_said) in [
        ("clusterIPs", addresses),
        ("ipFamilies", is_said("ipFamilies")),
        ("ipFamilyPolicy", is_said("ipFamilyPolicy")),
    ] {
        if is_said {
            errors.push(path.child(key).forbidden("may not be set for ExternalName services"));
        }
    }
    if text(spec, "externalName").is_empty() {
        errors.push(path.child("externalName").required(""));
    }
}

fn validate_addresses(spec: &Value, errors: &mut FieldErrors) {
    let root = FieldPath::root("spec");
    let path = root.child("clusterIPs");
    let (address, addresses) = (text(spec, "clusterIP"), items(spec, "clusterIPs"));
    let all = || BadValue::Json(Value::from(addresses).to_string());
    let kind = text(spec, "type");
    if is_headless(spec) && matches!(kind, "LoadBalancer" | "NodePort") {
        let detail = format!("may not be set to 'None' for {kind} services");
        errors.push(path.index(0).invalid("None", &detail));
    }
    match addresses.first() {
        Some(_) if address.is_empty() => {
            errors.push(path.invalid(all(), "must be empty when `clusterIP` is not specified"));
        }
        Some(first) if first != address => {
            errors.push(path.invalid(all(), "first value must match `clusterIP`"));
        }
        None if !address.is_empty() => errors.push(path.required("")),
        Some(_) | None => {}
    }
    let mut families = Vec::new();
    for (idx, own) in addresses.iter().enumerate() {
        let own = own.as_str().unwrap_or_default();
        match own.parse::<IpAddr>() {
            _ if idx == 0 && own == "None" => {
                if addresses.len() > 1 {
                    errors.push(path.invalid(all(), "'None' must be the first and only value"));
                }
            }
            // An IPv4 address in IPv6 is that IPv4 address.
            Ok(own) => families.push(own.to_canonical().is_ipv4()),
            Err(_) => errors.push(path.index(idx).invalid(own, NO_ADDRESS)),
        }
    }
    if addresses.len() > 2 {
        errors.push(path.invalid(all(), "may only hold up to 2 values"));
    }
    if families.windows(2).any(|two| two.first() == two.last()) {
        errors.push(path.invalid(all(), "may specify no more than one IP for each IP family"));
    }
}

/// The address of a service is fixed, unless the service has a type without one before or after.
fn validate_unchanged(spec: &Value, old: &Value, errors: &mut FieldErrors) {
    if !has_address(spec) || !has_address(old) || (is_headless(spec) && is_headless(old)) {
        return;
    }
    let root = FieldPath::root("spec");
    let path = root.child("clusterIPs");
    // Before the list was, there was only the one address.
    let single = [old.get("clusterIP").cloned().unwrap_or_default()];
    let before = match items(old, "clusterIPs") {
        [] if text(old, "clusterIP").is_empty() => return,
        [] => single.as_slice(),
        list => list,
    };
    let addresses = items(spec, "clusterIPs");
    let all = || BadValue::Json(Value::from(addresses).to_string());
    if addresses.is_empty() {
        errors.push(path.index(0).invalid(all(), "primary clusterIP can not be unset"));
    }
    for (idx, (own, before)) in addresses.iter().zip(before).enumerate() {
        if own != before {
            errors.push(path.index(idx).invalid(all(), "may not change once set"));
        }
    }
}

fn validate_ports(ports: &[Value], errors: &mut FieldErrors) {
    let spec = FieldPath::root("spec");
    let path = spec.child("ports");
    let mut names = HashSet::new();
    for (idx, port) in ports.iter().enumerate() {
        let path = path.index(idx);
        let (name, protocol) = (text(port, "name"), text(port, "protocol"));
        if ports.len() > 1 && name.is_empty() {
            errors.push(path.child("name").required(""));
        }
        if !name.is_empty() && !names.insert(name) {
            errors.push(path.child("name").duplicate(name));
        }
        if !(1..=65_535).contains(&number(port, "port")) {
            let detail = "must be between 1 and 65535, inclusive";
            errors.push(path.child("port").invalid(number(port, "port"), detail));
        }
        if !PROTOCOLS.contains(&protocol) {
            errors.push(path.child("protocol").not_supported(protocol, &PROTOCOLS));
        }
    }
}
