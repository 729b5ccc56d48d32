//! The table columns of Services, Endpoints and EndpointSlices.

use std::collections::BTreeSet;

use api_object::Tree;
use serde_json::Value;

use super::render_selector::render_labels;
use super::{
    AGE, BuiltInTable, NAME, age_cell, name_cell, text_column, text_or_placeholder, wide_column,
};
use crate::json_members::{
    integer_member, list_member, string_list_member, string_member, value_at_path,
};

/// Upper bound on the shown addresses or ports; the rest is only counted.
const SHOWN_MAX: usize = 3;

pub(super) static SERVICE: BuiltInTable = BuiltInTable {
    columns: &[
        NAME,
        text_column("Type", "How the service can be reached."),
        text_column("Cluster-IP", "Its address inside the cluster."),
        text_column("External-IP", "Its addresses outside the cluster."),
        text_column("Port(s)", "The ports that it offers."),
        AGE,
        wide_column("Selector", "The labels of the pods behind it."),
    ],
    make_cells: |tree, now| {
        let spec = value_at_path(tree, &["spec"]);
        vec![
            name_cell(tree),
            string_member(spec, "type").into(),
            render_cluster_ip(spec).into(),
            render_external_ip(tree, spec).into(),
            render_ports(spec).into(),
            age_cell(tree, now),
            render_labels(spec, "selector").into(),
        ]
    },
};

fn render_cluster_ip(spec: &Value) -> &str {
    match list_member(spec, "clusterIPs").first().and_then(Value::as_str) {
        Some(address) => address,
        None => text_or_placeholder(string_member(spec, "clusterIP"), "<none>"),
    }
}

fn render_external_ip(tree: &Tree, spec: &Value) -> String {
    let mut addresses = string_list_member(spec, "externalIPs");
    match string_member(spec, "type") {
        "ClusterIP" | "NodePort" if addresses.is_empty() => "<none>".to_owned(),
        "ClusterIP" | "NodePort" => addresses.join(","),
        "LoadBalancer" => {
            let balancer = value_at_path(tree, &["status", "loadBalancer"]);
            let shown =
                |it| first_non_empty(string_member(it, "ip"), string_member(it, "hostname"));
            let ingress: BTreeSet<&str> =
                list_member(balancer, "ingress").iter().map(shown).collect();
            let ingress = ingress.into_iter().filter(|it| !it.is_empty()).map(str::to_owned);
            addresses.splice(0..0, ingress);
            text_or_placeholder(&addresses.join(","), "<pending>").to_owned()
        }
        "ExternalName" => string_member(spec, "externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

fn first_non_empty<'t>(text: &'t str, other: &'t str) -> &'t str {
    if text.is_empty() { other } else { text }
}

fn render_ports(spec: &Value) -> String {
    let shown = |port: &Value| {
        let (number_shown, protocol) =
            (integer_member(port, "port"), string_member(port, "protocol"));
        match integer_member(port, "nodePort") {
            node_port if node_port > 0 => format!("{number_shown}:{node_port}/{protocol}"),
            _ => format!("{number_shown}/{protocol}"),
        }
    };
    let ports: Vec<String> = list_member(spec, "ports").iter().map(shown).collect();
    text_or_placeholder(&ports.join(","), "<none>").to_owned()
}

pub(super) static ENDPOINTS: BuiltInTable = BuiltInTable {
    columns: &[NAME, text_column("Endpoints", "The first addresses and ports."), AGE],
    make_cells: |tree, now| {
        let mut list = Vec::new();
        for subset in list_member(tree, "subsets") {
            let addresses =
                || list_member(subset, "addresses").iter().map(|it| string_member(it, "ip"));
            match list_member(subset, "ports") {
                [] => list.extend(addresses().map(str::to_owned)),
                ports => {
                    for port in ports {
                        list.extend(
                            addresses().map(|it| join_host_port(it, integer_member(port, "port"))),
                        );
                    }
                }
            }
        }
        vec![name_cell(tree), join_first_items(&list, "<none>").into(), age_cell(tree, now)]
    },
};

/// Joins host and port. An IPv6 address is put in brackets, because it contains colons.
fn join_host_port(host: &str, port: i64) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

pub(super) static ENDPOINT_SLICE: BuiltInTable = BuiltInTable {
    columns: &[
        NAME,
        text_column("AddressType", "Which addresses it holds."),
        text_column("Ports", "The first ports."),
        text_column("Endpoints", "The first addresses."),
        AGE,
    ],
    make_cells: |tree, now| {
        let port = |port: &Value| match port.get("port").and_then(Value::as_i64) {
            Some(port) => port.to_string(),
            None => text_or_placeholder(string_member(port, "name"), "*").to_owned(),
        };
        let ports: Vec<String> = list_member(tree, "ports").iter().map(port).collect();
        let addresses = list_member(tree, "endpoints")
            .iter()
            .flat_map(|it| string_list_member(it, "addresses"));
        vec![
            name_cell(tree),
            string_member(tree, "addressType").into(),
            join_first_items(&ports, "<unset>").into(),
            join_first_items(&addresses.collect::<Vec<_>>(), "<unset>").into(),
            age_cell(tree, now),
        ]
    },
};

fn join_first_items(list: &[String], none: &'static str) -> String {
    match list.split_at_checked(SHOWN_MAX) {
        Some((shown, rest)) if !rest.is_empty() => {
            format!("{} + {} more...", shown.join(","), rest.len())
        }
        _ => text_or_placeholder(&list.join(","), none).to_owned(),
    }
}
