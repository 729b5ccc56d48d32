//! Columns of what runs pods, and of requests for certificates.

use serde_json::Value;

use super::selector::selector;
use super::{AGE, Column, NAME, Table, age_of, integers, name_of, or, shown, wide};
use crate::age::human_seconds;
use crate::tree::{at, items, number, text};

const CONTAINERS: Column = wide("Containers", "The names of the containers of a pod.");
const IMAGES: Column = wide("Images", "What the containers run.");
const SELECTOR: Column = wide("Selector", "Which pods belong to it.");

pub(super) static DEPLOYMENT: Table = Table {
    columns: &[
        NAME,
        shown("Ready", "How many pods are ready, of how many wanted."),
        shown("Up-to-date", "How many pods are of the newest kind."),
        shown("Available", "How many pods have been ready for long enough."),
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
            of_containers(spec, "name"),
            of_containers(spec, "image"),
            selector(at(spec, &["selector"])).into(),
        ]
    },
};

pub(super) static REPLICA_SET: Table = Table {
    columns: &[
        NAME,
        integers("Desired", "How many pods are wanted."),
        integers("Current", "How many pods there are."),
        integers("Ready", "How many pods are ready."),
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
            of_containers(spec, "name"),
            of_containers(spec, "image"),
            selector(at(spec, &["selector"])).into(),
        ]
    },
};

/// One is wanted if nothing else is said.
fn replicas(spec: &Value) -> i64 {
    spec.get("replicas").and_then(Value::as_i64).unwrap_or(1)
}

fn of_containers(spec: &Value, key: &str) -> Value {
    let containers = items(at(spec, &["template", "spec"]), "containers").iter();
    containers.map(|it| text(it, key)).collect::<Vec<_>>().join(",").into()
}

pub(super) static CERTIFICATE_SIGNING_REQUEST: Table = Table {
    columns: &[
        NAME,
        AGE,
        shown("SignerName", "Who is to sign it."),
        shown("Requestor", "Who asked for it."),
        shown("RequestedDuration", "How long it is to be valid."),
        shown("Condition", "What became of it."),
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
            or(text(spec, "signerName"), "<none>").into(),
            text(spec, "username").into(),
            duration.into(),
            outcome(at(tree, &["status"])).into(),
        ]
    },
};

fn outcome(status: &Value) -> String {
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
