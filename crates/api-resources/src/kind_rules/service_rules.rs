//! The defaults and validation rules of Services. Cluster IPs are allocated elsewhere.

use std::collections::HashSet;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use api_object::{Tree, object_member_mut};
use field_errors::{BadValue, FieldErrors, FieldPath};
use serde_json::{Value, json};

use super::endpoint_address;
use crate::json_members::{
    MemberAccess, integer_member, list_member, object_items_mut, set_default_member, string_member,
    value_at_path,
};

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
/// The ports that nodes keep for services.
const NODE_PORTS: RangeInclusive<i64> = 30_000..=32_767;
const NODE_PORT_RANGE: &str =
    "provided port is not in the valid range. The range of valid ports is 30000-32767";
const AFFINITIES: [&str; 2] = ["ClientIP", "None"];
const NO_ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
/// The default timeout of session affinity.
const AFFINITY_SECONDS: i64 = 10_800;

fn prepare_service(tree: &mut Tree) {
    let spec = object_member_mut(tree, "spec");
    set_default_member(spec, "type", "ClusterIP");
    set_default_member(spec, "sessionAffinity", "None");
    if string_member(spec, "sessionAffinity") == "ClientIP" {
        let client_ip =
            object_member_mut(object_member_mut(spec, "sessionAffinityConfig"), "clientIP");
        set_default_member(client_ip, "timeoutSeconds", AFFINITY_SECONDS);
    }
    if string_member(spec, "type") != "ExternalName" {
        set_default_member(spec, "internalTrafficPolicy", "Cluster");
    }
    if matches!(string_member(spec, "type"), "NodePort" | "LoadBalancer") {
        set_default_member(spec, "externalTrafficPolicy", "Cluster");
    }
    for port in object_items_mut(spec, "ports") {
        set_default_member(port, "protocol", "TCP");
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

/// Sets the defaults of a new service, and copies `clusterIP` to `clusterIPs` for clients that set only
/// the former.
pub(super) fn prepare_service_create(tree: &mut Tree) {
    prepare_service(tree);
    let spec = object_member_mut(tree, "spec");
    if !string_member(spec, "clusterIP").is_empty() && list_member(spec, "clusterIPs").is_empty() {
        spec.insert("clusterIPs".to_owned(), json!([string_member(spec, "clusterIP")]));
    }
}

/// Sets the defaults of an updated service. It keeps its cluster IP unless it gets a type without one.
/// The steps are those of Kubernetes:
///
/// 1. `clusterIP` and `clusterIPs` are made consistent.
/// 2. Members that the client omits are copied from the old state.
/// 3. Members that the new type cannot have are removed unless the client changed them.
pub(super) fn prepare_service_update(new: &mut Tree, old: &Tree) {
    prepare_service(new);
    let old = value_at_path(old, &["spec"]);
    let spec = object_member_mut(new, "spec");
    let is_same_list =
        |spec: &Tree| list_member(spec, "clusterIPs") == list_member(old, "clusterIPs");
    let (address, before) =
        (string_member(spec, "clusterIP").to_owned(), string_member(old, "clusterIP"));
    if address == before {
        copy_member_if_unset(spec, "clusterIPs", old);
        // Earlier versions stored only `clusterIP`, also for ExternalName services.
        if !address.is_empty() {
            copy_member_if_unset(spec, "clusterIPs", &json!({ "clusterIPs": [address] }));
        }
    } else if is_same_list(spec) {
        match address.is_empty() {
            true => drop(spec.shift_remove("clusterIPs")),
            false => drop(spec.insert("clusterIPs".to_owned(), json!([address]))),
        }
    }
    match (has_cluster_ip(spec), has_cluster_ip(old)) {
        (true, true) => {
            copy_member_if_unset(spec, "clusterIP", old);
            copy_member_if_unset(spec, "clusterIPs", old);
        }
        (false, _) => {
            let is_same = match has_cluster_ip(old) {
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

/// Reports whether a service of this type has a cluster IP, which may be `None`.
fn has_cluster_ip(spec: &impl MemberAccess) -> bool {
    string_member(spec, "type") != "ExternalName"
}

/// Copies a member from the old spec if the new one does not set it.
fn copy_member_if_unset(spec: &mut Tree, key: &str, old: &Value) {
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
    let (spec, path) = (value_at_path(new, &["spec"]), FieldPath::root("spec"));
    let (kind, affinity) = (string_member(spec, "type"), string_member(spec, "sessionAffinity"));
    if let Some(old) = old {
        validate_immutable_cluster_ips(spec, value_at_path(old, &["spec"]), errors);
    }
    if !TYPES.contains(&kind) {
        errors.push(path.child("type").not_supported(kind, &TYPES));
    }
    if !AFFINITIES.contains(&affinity) {
        errors.push(path.child("sessionAffinity").not_supported(affinity, &AFFINITIES));
    }
    if list_member(spec, "ports").is_empty() && !is_headless(spec) && has_cluster_ip(spec) {
        errors.push(path.child("ports").required(""));
    }
    match kind {
        "ExternalName" => validate_external_name_service(spec, errors),
        _ => validate_cluster_ips(spec, errors),
    }
    validate_service_ports(list_member(spec, "ports"), errors);
    let old_spec = old.map_or(&Value::Null, |old| value_at_path(old, &["spec"]));
    validate_external_ips(spec, old_spec, errors);
    validate_node_ports(spec, old_spec, errors);
}

/// Checks new external IPs. kube-proxy takes the traffic to them, so special addresses would let a service take that of
/// the node itself.
fn validate_external_ips(spec: &Value, old: &Value, errors: &mut FieldErrors) {
    let root = FieldPath::root("spec");
    let path = root.child("externalIPs");
    let existing = list_member(old, "externalIPs");
    for (idx, address) in list_member(spec, "externalIPs").iter().enumerate() {
        if !existing.contains(address) {
            let address = address.as_str().unwrap_or_default();
            endpoint_address::validate(&path.index(idx), address, errors);
        }
    }
}

/// Checks that new node ports are in the range that nodes keep for services, and that no port is in a service twice. A port
/// outside of the range may be that of the kubelet or of another program of the node.
fn validate_node_ports(spec: &Value, old: &Value, errors: &mut FieldErrors) {
    let root = FieldPath::root("spec");
    let path = root.child("ports");
    let existing: HashSet<i64> =
        list_member(old, "ports").iter().map(|port| integer_member(port, "nodePort")).collect();
    let mut seen = HashSet::new();
    for (idx, port) in list_member(spec, "ports").iter().enumerate() {
        let node_port = integer_member(port, "nodePort");
        if node_port == 0 {
            continue;
        }
        let path = path.index(idx);
        let path = path.child("nodePort");
        if !NODE_PORTS.contains(&node_port) && !existing.contains(&node_port) {
            errors.push(path.invalid(node_port, NODE_PORT_RANGE));
        }
        if !seen.insert((string_member(port, "protocol"), node_port)) {
            errors.push(path.duplicate(node_port));
        }
    }
    let health_check = integer_member(spec, "healthCheckNodePort");
    let is_new = health_check != 0 && health_check != integer_member(old, "healthCheckNodePort");
    if is_new && !NODE_PORTS.contains(&health_check) {
        errors.push(root.child("healthCheckNodePort").invalid(health_check, NODE_PORT_RANGE));
    }
}

fn is_headless(spec: &Value) -> bool {
    string_member(spec, "clusterIP") == "None"
}

/// Validates that an ExternalName service has no cluster IP.
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
    if string_member(spec, "externalName").is_empty() {
        errors.push(path.child("externalName").required(""));
    }
}

fn validate_cluster_ips(spec: &Value, errors: &mut FieldErrors) {
    let root = FieldPath::root("spec");
    let path = root.child("clusterIPs");
    let (address, addresses) = (string_member(spec, "clusterIP"), list_member(spec, "clusterIPs"));
    let all = || BadValue::Json(Value::from(addresses).to_string());
    let kind = string_member(spec, "type");
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
            // An IPv4-mapped IPv6 address counts as IPv4.
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

/// The cluster IP of a service is immutable, unless the old or the new type has none.
fn validate_immutable_cluster_ips(spec: &Value, old: &Value, errors: &mut FieldErrors) {
    if !has_cluster_ip(spec) || !has_cluster_ip(old) || (is_headless(spec) && is_headless(old)) {
        return;
    }
    let root = FieldPath::root("spec");
    let path = root.child("clusterIPs");
    // Earlier versions stored only `clusterIP`.
    let single = [old.get("clusterIP").cloned().unwrap_or_default()];
    let before = match list_member(old, "clusterIPs") {
        [] if string_member(old, "clusterIP").is_empty() => return,
        [] => single.as_slice(),
        list => list,
    };
    let addresses = list_member(spec, "clusterIPs");
    let all = || BadValue::Json(Value::from(addresses).to_string());
    if addresses.is_empty() {
        errors.push(path.index(0).invalid(all(), "primary clusterIP cannot be unset"));
    }
    for (idx, (own, before)) in addresses.iter().zip(before).enumerate() {
        if own != before {
            errors.push(path.index(idx).invalid(all(), "may not change once set"));
        }
    }
}

fn validate_service_ports(ports: &[Value], errors: &mut FieldErrors) {
    let spec = FieldPath::root("spec");
    let path = spec.child("ports");
    let mut names = HashSet::new();
    for (idx, port) in ports.iter().enumerate() {
        let path = path.index(idx);
        let (name, protocol) = (string_member(port, "name"), string_member(port, "protocol"));
        if ports.len() > 1 && name.is_empty() {
            errors.push(path.child("name").required(""));
        }
        if !name.is_empty() && !names.insert(name) {
            errors.push(path.child("name").duplicate(name));
        }
        if !(1..=65_535).contains(&integer_member(port, "port")) {
            let detail = "must be between 1 and 65535, inclusive";
            errors.push(path.child("port").invalid(integer_member(port, "port"), detail));
        }
        if !PROTOCOLS.contains(&protocol) {
            errors.push(path.child("protocol").not_supported(protocol, &PROTOCOLS));
        }
    }
}
