//! Columns of what runs pods, and of requests for certificates.

use serde_json::Value;

use super::selector::selector;
use super::{
    AGE, Column, NAME, Table, age_of, integer_column, name_of, or_placeholder, text_column,
    wide_column,
};
use crate::human_age::human_seconds;
use crate::tree::{at, items, number, text};

const CONTAINERS: Column = wide_column("Containers", "The names of the containers of a pod.");
const IMAGES: Column = wide_column("Images", "What the containers run.");
const SELECTOR: Column = wide_column("Selector", "Which pods belong to it.");

pub(super) static DEPLOYMENT: Table = Table {
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
    cells: |tree, now| {
        let (spec, status) = (at(tree, &["spec"]), at(tree, &["status"]));
        vec![
            name_of(tree),
            format!("{}/{}", number(status, "readyReplicas"), replicas(spec)).into(),
            number(status, "updatedReplicas").into(),
            number(status, "availableReplicas").into(),
            age_of(tree, now),
            container_values(spec, "name"),
            container_values(spec, "image"),
            selector(at(spec, &["selector"])).into(),
        ]
    },
};

pub(super) static REPLICA_SET: Table = Table {
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
    cells: |tree, now| {
        let (spec, status) = (at(tree, &["spec"]), at(tree, &["status"]));
        vec![
            name_of(tree),
            replicas(spec).into(),
            number(status, "replicas").into(),
            number(status, "readyReplicas").into(),
            age_of(tree, now),
            container_values(spec, "name"),
            container_values(spec, "image"),
            selector(at(spec, &["selector"])).into(),
        ]
    },
};

/// One is wanted if nothing else is said.
fn replicas(spec: &Value) -> i64 {
    spec.get("replicas").and_then(Value::as_i64).unwrap_or(1)
}

fn container_values(spec: &Value, key: &str) -> Value {
    let containers = items(at(spec, &["template", "spec"]), "containers").iter();
    containers.map(|it| text(it, key)).collect::<Vec<_>>().join(",").into()
}

pub(super) static CERTIFICATE_SIGNING_REQUEST: Table = Table {
    columns: &[
        NAME,
        AGE,
        text_column("SignerName", "Who is to sign it."),
        text_column("Requestor", "Who asked for it."),
        text_column("RequestedDuration", "How long it is to be valid."),
        text_column("Condition", "What became of it."),
    ],
    cells: |tree, now| {
        let spec = at(tree, &["spec"]);
        let duration = match spec.get("expirationSeconds").and_then(Value::as_i64) {
            Some(seconds) => human_seconds(seconds),
            None => "<none>".to_owned(),
        };
        vec![
            name_of(tree),
            age_of(tree, now),
            or_placeholder(text(spec, "signerName"), "<none>").into(),
            text(spec, "username").into(),
            duration.into(),
            approval_status(at(tree, &["status"])).into(),
        ]
    },
};

fn approval_status(status: &Value) -> String {
    let is = |r#type: &str| items(status, "conditions").iter().any(|it| text(it, "type") == r#type);
    // A denial counts, whatever else was said.
    let mut words = vec![match (is("Denied"), is("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    }];
    if is("Failed") {
        words.push("Failed");
    }
    if !text(status, "certificate").is_empty() {
        words.push("Issued");
    }
    words.join(",")
}
