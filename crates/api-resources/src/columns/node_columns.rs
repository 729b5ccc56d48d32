//! The table columns of nodes.

use std::collections::BTreeSet;

use api_object::Tree;
use serde_json::Value;

use super::{
    AGE, BuiltInTable, NAME, age_cell, name_cell, text_column, text_or_placeholder, wide_column,
};
use crate::json_members::{bool_member, list_member, member_entries, string_member, value_at_path};

const ROLE_LABEL_PREFIX: &str = "node-role.kubernetes.io/";
const ROLE_LABEL: &str = "kubernetes.io/role";

pub(super) static NODE: BuiltInTable = BuiltInTable {
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
    make_cells: |tree, now| {
        let status = value_at_path(tree, &["status"]);
        let info = value_at_path(status, &["nodeInfo"]);
        vec![
            name_cell(tree),
            render_ready_status(tree, status).into(),
            render_node_roles(tree).into(),
            age_cell(tree, now),
            string_member(info, "kubeletVersion").into(),
            find_node_address(status, "InternalIP").into(),
            find_node_address(status, "ExternalIP").into(),
            text_or_placeholder(string_member(info, "osImage"), "<unknown>").into(),
            render_kernel_version(info).into(),
            text_or_placeholder(string_member(info, "containerRuntimeVersion"), "<unknown>").into(),
        ]
    },
};

fn render_ready_status(tree: &Tree, status: &Value) -> String {
    let ready =
        list_member(status, "conditions").iter().rfind(|it| string_member(*it, "type") == "Ready");
    let word = match ready.map(|it| string_member(it, "status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    match bool_member(value_at_path(tree, &["spec"]), "unschedulable") {
        true => format!("{word},SchedulingDisabled"),
        false => word.to_owned(),
    }
}

fn render_node_roles(tree: &Tree) -> String {
    let labels = member_entries(value_at_path(tree, &["metadata"]), "labels");
    let role = |(key, value): (&'_ String, &'_ Value)| {
        let role = match key.strip_prefix(ROLE_LABEL_PREFIX) {
            Some(role) => role,
            None if key == ROLE_LABEL => value.as_str().unwrap_or_default(),
            None => "",
        };
        (!role.is_empty()).then(|| role.to_owned())
    };
    let roles: BTreeSet<String> = labels.filter_map(role).collect();
    text_or_placeholder(&roles.into_iter().collect::<Vec<_>>().join(","), "<none>").to_owned()
}

fn find_node_address<'t>(status: &'t Value, r#type: &str) -> &'t str {
    let found =
        list_member(status, "addresses").iter().find(|it| string_member(*it, "type") == r#type);
    found.map_or("<none>", |it| string_member(it, "address"))
}

fn render_kernel_version(info: &Value) -> String {
    let version = text_or_placeholder(string_member(info, "kernelVersion"), "<unknown>");
    match string_member(info, "architecture") {
        "" => version.to_owned(),
        architecture => format!("{version} ({architecture})"),
    }
}
