//! Columns of services and of what stands behind them.

use std::collections::BTreeSet;

use api_object::Tree;
use serde_json::Value;

use super::selector::labels;
use super::{AGE, NAME, Table, age_of, name_of, or_placeholder, text_column, wide_column};
use crate::tree::{at, items, number, text, texts};

/// How many addresses or ports are shown before the rest is only counted.
const SHOWN_MAX: usize = 3;

pub(super) static SERVICE: Table = Table {
    columns: &[
        NAME,
        text_column("Type", "How the service can be reached."),
        text_column("Cluster-IP", "Its address inside the cluster."),
        text_column("External-IP", "Its addresses outside the cluster."),
        text_column("Port(s)", "The ports that it offers."),
        AGE,
        wide_column("Selector", "The labels of the pods behind it."),
    ],
    cells: |tree, now| {
        let spec = at(tree, &["spec"]);
        vec![
            name_of(tree),
            text(spec, "type").into(),
            cluster_ip(spec).into(),
            external_ip(tree, spec).into(),
            ports(spec).into(),
            age_of(tree, now),
            labels(spec, "selector").into(),
        ]
    },
};

fn cluster_ip(spec: &Value) -> &str {
    match items(spec, "clusterIPs").first().and_then(Value::as_str) {
        Some(address) => address,
        None => or_placeholder(text(spec, "clusterIP"), "<none>"),
    }
}

fn external_ip(tree: &Tree, spec: &Value) -> String {
    let mut addresses = texts(spec, "externalIPs");
    match text(spec, "type") {
        "ClusterIP" | "NodePort" if addresses.is_empty() => "<none>".to_owned(),
        "ClusterIP" | "NodePort" => addresses.join(","),
        "LoadBalancer" => {
            let balancer = at(tree, &["status", "loadBalancer"]);
            let shown = |it| first_non_empty(text(it, "ip"), text(it, "hostname"));
            let ingress: BTreeSet<&str> = items(balancer, "ingress").iter().map(shown).collect();
            let ingress = ingress.into_iter().filter(|it| !it.is_empty()).map(str::to_owned);
            addresses.splice(0..0, ingress);
            or_placeholder(&addresses.join(","), "<pending>").to_owned()
        }
        "ExternalName" => text(spec, "externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

fn first_non_empty<'t>(text: &'t str, other: &'t str) -> &'t str {
    if text.is_empty() { other } else { text }
}

fn ports(spec: &Value) -> String {
    let shown = |port: &Value| {
        let (number_shown, protocol) = (number(port, "port"), text(port, "protocol"));
        match number(port, "nodePort") {
            node_port if node_port > 0 => format!("{number_shown}:{node_port}/{protocol}"),
            _ => format!("{number_shown}/{protocol}"),
        }
    };
    let ports: Vec<String> = items(spec, "ports").iter().map(shown).collect();
    or_placeholder(&ports.join(","), "<none>").to_owned()
}

pub(super) static ENDPOINTS: Table = Table {
    columns: &[NAME, text_column("Endpoints", "The first addresses and ports."), AGE],
    cells: |tree, now| {
        let mut list = Vec::new();
        for subset in items(tree, "subsets") {
            let addresses = || items(subset, "addresses").iter().map(|it| text(it, "ip"));
            match items(subset, "ports") {
                [] => list.extend(addresses().map(str::to_owned)),
                ports => {
                    for port in ports {
                        list.extend(addresses().map(|it| host_port(it, number(port, "port"))));
                    }
                }
            }
        }
        vec![name_of(tree), join_first(&list, "<none>").into(), age_of(tree, now)]
    },
};

/// An address of version 6 stands in brackets, since it has colons of its own.
fn host_port(host: &str, port: i64) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

pub(super) static ENDPOINT_SLICE: Table = Table {
    columns: &[
        NAME,
        text_column("AddressType", "Which addresses it holds."),
        text_column("Ports", "The first ports."),
        text_column("Endpoints", "The first addresses."),
        AGE,
    ],
    cells: |tree, now| {
        let port = |port: &Value| match port.get("port").and_then(Value::as_i64) {
            Some(port) => port.to_string(),
            None => or_placeholder(text(port, "name"), "*").to_owned(),
        };
        let ports: Vec<String> = items(tree, "ports").iter().map(port).collect();
        let addresses = items(tree, "endpoints").iter().flat_map(|it| texts(it, "addresses"));
        vec![
            name_of(tree),
            text(tree, "addressType").into(),
            join_first(&ports, "<unset>").into(),
            join_first(&addresses.collect::<Vec<_>>(), "<unset>").into(),
            age_of(tree, now),
        ]
    },
};

fn join_first(list: &[String], none: &'static str) -> String {
    match list.split_at_checked(SHOWN_MAX) {
        Some((shown, rest)) if !rest.is_empty() => {
            format!("{} + {} more...", shown.join(","), rest.len())
        }
        _ => or_placeholder(&list.join(","), none).to_owned(),
    }
}
