//! Columns of nodes.

use std::collections::BTreeSet;

use api_object::Tree;
use serde_json::Value;

use super::{AGE, NAME, Table, age_of, name_of, or_placeholder, text_column, wide_column};
use crate::tree::{at, entries, flag, items, text};

const ROLE_LABEL_PREFIX: &str = "node-role.kubernetes.io/";
const ROLE_LABEL: &str = "kubernetes.io/role";

pub(super) static NODE: Table = Table {
    columns: &[
        NAME,
        text_column("Status", "Whether it can run pods."),
        text_column("Roles", "What it is for."),
        AGE,
        text_column("Version", "The version of its kubelet."),
        wide_column("Internal-IP", "Its address inside the cluster."),
        wide_column("External-IP", "Its address outside the cluster."),
        wide_column("OS-Image", "Its operating system."),
        wide_column("Kernel-Version", "The version of its kernel."),
        wide_column("Container-Runtime", "What runs its containers."),
    ],
    cells: |tree, now| {
        let status = at(tree, &["status"]);
        let info = at(status, &["nodeInfo"]);
        vec![
            name_of(tree),
            ready_status(tree, status).into(),
            roles(tree).into(),
            age_of(tree, now),
            text(info, "kubeletVersion").into(),
            address(status, "InternalIP").into(),
            address(status, "ExternalIP").into(),
            or_placeholder(text(info, "osImage"), "<unknown>").into(),
            kernel_version(info).into(),
            or_placeholder(text(info, "containerRuntimeVersion"), "<unknown>").into(),
        ]
    },
};

fn ready_status(tree: &Tree, status: &Value) -> String {
    let ready = items(status, "conditions").iter().rfind(|it| text(*it, "type") == "Ready");
    let word = match ready.map(|it| text(it, "status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    match flag(at(tree, &["spec"]), "unschedulable") {
        true => format!("{word},SchedulingDisabled"),
        false => word.to_owned(),
    }
}

fn roles(tree: &Tree) -> String {
    let labels = entries(at(tree, &["metadata"]), "labels");
    let role = |(key, value): (&'_ String, &'_ Value)| {
        let role = match key.strip_prefix(ROLE_LABEL_PREFIX) {
            Some(role) => role,
            None if key == ROLE_LABEL => value.as_str().unwrap_or_default(),
            None => "",
        };
        (!role.is_empty()).then(|| role.to_owned())
    };
    let roles: BTreeSet<String> = labels.filter_map(role).collect();
    or_placeholder(&roles.into_iter().collect::<Vec<_>>().join(","), "<none>").to_owned()
}

fn address<'t>(status: &'t Value, r#type: &str) -> &'t str {
    let found = items(status, "addresses").iter().find(|it| text(*it, "type") == r#type);
    found.map_or("<none>", |it| text(it, "address"))
}

fn kernel_version(info: &Value) -> String {
    let version = or_placeholder(text(info, "kernelVersion"), "<unknown>");
    match text(info, "architecture") {
        "" => version.to_owned(),
        architecture => format!("{version} ({architecture})"),
    }
}
