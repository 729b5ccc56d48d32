//! The table columns of Deployments, ReplicaSets, Scales and CertificateSigningRequests.

use serde_json::Value;

use super::render_selector::render_selector;
use super::{
    AGE, BuiltInTable, Column, NAME, age_cell, integer_column, name_cell, text_column,
    text_or_placeholder, wide_column,
};
use crate::human_age::format_age_seconds;
use crate::json_members::{integer_member, list_member, string_member, value_at_path};

const CONTAINERS: Column = wide_column("Containers", "The names of the containers of a pod.");
const IMAGES: Column = wide_column("Images", "What the containers run.");
const SELECTOR: Column = wide_column("Selector", "Which pods belong to it.");

pub(super) static DEPLOYMENT: BuiltInTable = BuiltInTable {
    columns: &[
        NAME,
        text_column("Ready", "How many pods are ready, of how many wanted."),
        text_column("Up-to-date", "How many pods are of the newest kind."),
        text_column("Available", "How many pods have been ready for long enough."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    make_cells: |tree, now| {
        let (spec, status) = (value_at_path(tree, &["spec"]), value_at_path(tree, &["status"]));
        vec![
            name_cell(tree),
            format!("{}/{}", integer_member(status, "readyReplicas"), desired_replicas(spec))
                .into(),
            integer_member(status, "updatedReplicas").into(),
            integer_member(status, "availableReplicas").into(),
            age_cell(tree, now),
            join_container_values(spec, "name"),
            join_container_values(spec, "image"),
            render_selector(value_at_path(spec, &["selector"])).into(),
        ]
    },
};

pub(super) static REPLICA_SET: BuiltInTable = BuiltInTable {
    columns: &[
        NAME,
        integer_column("Desired", "How many pods are wanted."),
        integer_column("Current", "How many pods there are."),
        integer_column("Ready", "How many pods are ready."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    make_cells: |tree, now| {
        let (spec, status) = (value_at_path(tree, &["spec"]), value_at_path(tree, &["status"]));
        vec![
            name_cell(tree),
            desired_replicas(spec).into(),
            integer_member(status, "replicas").into(),
            integer_member(status, "readyReplicas").into(),
            age_cell(tree, now),
            join_container_values(spec, "name"),
            join_container_values(spec, "image"),
            render_selector(value_at_path(spec, &["selector"])).into(),
        ]
    },
};

pub(super) static SCALE: BuiltInTable = BuiltInTable {
    columns: &[
        NAME,
        integer_column("Desired", "How many pods are wanted."),
        integer_column("Available", "How many pods there are."),
        AGE,
    ],
    make_cells: |tree, now| {
        let (spec, status) = (value_at_path(tree, &["spec"]), value_at_path(tree, &["status"]));
        vec![
            name_cell(tree),
            integer_member(spec, "replicas").into(),
            integer_member(status, "replicas").into(),
            age_cell(tree, now),
        ]
    },
};

/// The desired number of replicas; 1 if the spec does not set it.
fn desired_replicas(spec: &Value) -> i64 {
    spec.get("replicas").and_then(Value::as_i64).unwrap_or(1)
}

fn join_container_values(spec: &Value, key: &str) -> Value {
    let containers = list_member(value_at_path(spec, &["template", "spec"]), "containers").iter();
    containers.map(|it| string_member(it, key)).collect::<Vec<_>>().join(",").into()
}

pub(super) static CERTIFICATE_SIGNING_REQUEST: BuiltInTable = BuiltInTable {
    columns: &[
        NAME,
        AGE,
        text_column("SignerName", "Who is to sign it."),
        text_column("Requestor", "Who asked for it."),
        text_column("RequestedDuration", "How long it is to be valid."),
        text_column("Condition", "What became of it."),
    ],
    make_cells: |tree, now| {
        let spec = value_at_path(tree, &["spec"]);
        let duration = match spec.get("expirationSeconds").and_then(Value::as_i64) {
            Some(seconds) => format_age_seconds(seconds),
            None => "<none>".to_owned(),
        };
        vec![
            name_cell(tree),
            age_cell(tree, now),
            text_or_placeholder(string_member(spec, "signerName"), "<none>").into(),
            string_member(spec, "username").into(),
            duration.into(),
            render_approval_status(value_at_path(tree, &["status"])).into(),
        ]
    },
};

fn render_approval_status(status: &Value) -> String {
    let is = |r#type: &str| {
        list_member(status, "conditions").iter().any(|it| string_member(it, "type") == r#type)
    };
    // A denial takes precedence over an approval.
    let mut words = vec![match (is("Denied"), is("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    }];
    if is("Failed") {
        words.push("Failed");
    }
    if !string_member(status, "certificate").is_empty() {
        words.push("Issued");
    }
    words.join(",")
}
