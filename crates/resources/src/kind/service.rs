//! Services. Addresses are not handed out here.

use field::{FieldErrors, FieldPath};
use object::{Tree, object_mut};
use serde_json::Value;

use crate::tree::{at, default, is_set, items, number, objects_mut, text};

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const AFFINITIES: [&str; 2] = ["ClientIP", "None"];
/// How long a client stays with one pod if nothing else is said.
const AFFINITY_SECONDS: i64 = 10_800;

pub(super) fn prepare(tree: &mut Tree) {
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

/// A service keeps the address that it has, unless it gets another kind.
pub(super) fn prepare_update(new: &mut Tree, old: &Tree) {
    prepare(new);
    let old = at(old, &["spec"]);
    let spec = object_mut(new, "spec");
    let is_reachable = |kind: &str| kind != "ExternalName";
    if !is_reachable(text(spec, "type")) || !is_reachable(text(old, "type")) {
        return;
    }
    for key in ["clusterIP", "clusterIPs"] {
        if let (false, Some(address)) = (is_set(spec, key), old.get(key)) {
            spec.insert(key.to_owned(), address.clone());
        }
    }
}

pub(super) fn validate(new: &Tree, old: Option<&Tree>, errors: &mut FieldErrors) {
    let (spec, path) = (at(new, &["spec"]), FieldPath::root("spec"));
    let (kind, affinity) = (text(spec, "type"), text(spec, "sessionAffinity"));
    if !TYPES.contains(&kind) {
        errors.push(path.child("type").not_supported(kind, &TYPES));
    }
    if !AFFINITIES.contains(&affinity) {
        errors.push(path.child("sessionAffinity").not_supported(affinity, &AFFINITIES));
    }
    if kind == "ExternalName" && text(spec, "externalName").is_empty() {
        errors.push(path.child("externalName").required(""));
    }
    let is_headless = text(spec, "clusterIP") == "None";
    if items(spec, "ports").is_empty() && !is_headless && kind != "ExternalName" {
        errors.push(path.child("ports").required(""));
    }
    validate_ports(items(spec, "ports"), errors);
    let old = old.map_or(&Value::Null, |old| at(old, &["spec"]));
    let (address, before) = (text(spec, "clusterIP"), text(old, "clusterIP"));
    if !before.is_empty() && address != before && text(old, "type") != "ExternalName" {
        let addresses = path.child("clusterIPs");
        errors.push(addresses.index(0).invalid(address, "may not change once set"));
    }
}

fn validate_ports(ports: &[Value], errors: &mut FieldErrors) {
    let spec = FieldPath::root("spec");
    let path = spec.child("ports");
    for (idx, port) in ports.iter().enumerate() {
        let path = path.index(idx);
        let (name, protocol) = (text(port, "name"), text(port, "protocol"));
        if ports.len() > 1 && name.is_empty() {
            errors.push(path.child("name").required(""));
        }
        let earlier = ports.get(..idx).unwrap_or_default();
        if !name.is_empty() && earlier.iter().any(|it| text(it, "name") == name) {
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
